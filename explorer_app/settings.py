"""Preferences: typed, versioned, read field by field, so that no file can ever stop a start.

A field that is missing, of the wrong type or out of range gets its default; the rest of the file is still used. A file
of a newer version is read the same way: what this program knows is taken, what it does not know is left alone until
the next save.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import platformdirs

from explorer_app.messages import MessageLog
from gpu_backend import write_whole

VERSION = 1

MAX_RECENT = 12
"""Models in the menu of recent ones."""

Theme = Literal["system", "dark", "light"]
Font = Literal["inter", "system"]

_MAX_NBYTES = 4 << 20
_MAX_TEXT = 1 << 20
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RecentModel:
    """A model that was opened: where, its display name and its SHA-256."""

    path: str
    name: str
    model_id: str


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the person prefers, and where the window was.

    Attributes
    ----------
    theme
        ``"system"`` follows the system's scheme.
    font
        ``"inter"`` is the font that comes with the program, ``"system"`` the system's UI font.
    window_geometry
        What QMainWindow gives, as base64 text; empty for the first time.
    workspace
        The workspace that was shown last.
    layouts
        Workspace -> where its docks are, for those that a person has rearranged.
    recent_models
        Newest first.
    last_model
        Path of the model to open at start; empty for the bundled one.
    folders
        Purpose ("model", "picture", "session", "export") -> folder that was used last.
    drift_speed
        Seeds a second along the plane while drifting, -4..4.
    flick_glide
        A flick of the canvas keeps gliding until clicked.
    performance_visible
        Whether the performance panel measures steps.
    device, precision
        On what a person wants pictures to be rendered, as `gpu_backend.Renderer` names it: "auto", "cpu", "cuda:0"; and
        how exact on a GPU.
    choices
        Small choices of panels that have no field of their own: key -> text.
    """

    theme: Theme = "system"
    font: Font = "inter"
    window_geometry: str = ""
    workspace: str = "explore"
    layouts: Mapping[str, str] = field(default_factory=dict)
    recent_models: tuple[RecentModel, ...] = ()
    last_model: str = ""
    folders: Mapping[str, str] = field(default_factory=dict)
    drift_speed: float = 0.25
    flick_glide: bool = False
    performance_visible: bool = True
    device: str = "auto"
    precision: Literal["fp16", "fp32"] = "fp16"
    choices: Mapping[str, str] = field(default_factory=dict)


class Settings:
    """Preferences and their file.

    Parameters
    ----------
    path
        The file; None keeps everything in memory.
    messages
        Where to say that a file was broken or could not be written.
    """

    def __init__(self, path: Path | None, messages: MessageLog) -> None:
        self._path = path
        self._messages = messages
        self._values = Preferences() if path is None else _read(path, messages)
        self._saved = self._values

    @staticmethod
    def default_path() -> Path:
        """Return where this system keeps preferences."""
        return platformdirs.user_config_path("latentloom", appauthor=False) / "settings.json"

    @property
    def values(self) -> Preferences:
        """The preferences as they are now."""
        return self._values

    def change(self, **fields: Any) -> None:
        """Replace fields by name: ``settings.change(theme="dark")``. `save` brings them to the disk.

        Raises
        ------
        TypeError
            If there is no such field.
        """
        self._values = replace(self._values, **fields)

    def folder(self, purpose: str) -> Path | None:
        """Return the folder that was used last for a purpose, None if there is none any more."""
        name = self._values.folders.get(purpose, "")
        return Path(name) if name and Path(name).is_dir() else None

    def remember_folder(self, purpose: str, folder: Path) -> None:
        """Remember the folder that was used for a purpose."""
        self.change(folders={**self._values.folders, purpose: str(folder)})

    def remember_model(self, model: RecentModel) -> None:
        """Put a model in front of the recent ones; one path appears once."""
        others = tuple(item for item in self._values.recent_models if item.path != model.path)
        self.change(recent_models=(model, *others)[:MAX_RECENT])

    def forget_model(self, path: str) -> None:
        """Take a model out of the recent ones."""
        self.change(recent_models=tuple(item for item in self._values.recent_models if item.path != path))

    def choice(self, key: str, default: str = "") -> str:
        """Return a small choice of a panel."""
        return self._values.choices.get(key, default)

    def choose(self, key: str, value: str) -> None:
        """Remember a small choice of a panel."""
        self.change(choices={**self._values.choices, key: value})

    def save(self) -> None:
        """Write the file in one atomic move, if anything changed; a refusal becomes a message."""
        if self._path is None or self._values == self._saved:
            return
        try:
            text = json.dumps({"version": VERSION, **asdict(self._values)}, indent=1)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, text.encode())
            self._saved = self._values
        except OSError as error:
            self._messages.warning(
                f"The preferences could not be written to {self._path} ({error.strerror}); they last until you close.",
                str(error),
            )


def _read(path: Path, messages: MessageLog) -> Preferences:
    try:
        if not path.exists():
            return Preferences()
        if path.stat().st_size > _MAX_NBYTES:
            raise ValueError(f"{path.stat().st_size} bytes")
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict):
            raise ValueError(f"a {type(data).__name__}")
    except (OSError, ValueError, RecursionError) as error:
        messages.warning(
            f"The preferences in {path} cannot be read, so the defaults are used; the file is replaced when you close.",
            str(error),
        )
        return Preferences()
    reader = _FieldReader(data)
    default = Preferences()
    preferences = Preferences(
        theme=reader.take("theme", _theme, default.theme),
        font=reader.take("font", _font, default.font),
        window_geometry=reader.take("window_geometry", _text, ""),
        workspace=reader.take("workspace", _text, default.workspace),
        layouts=reader.take("layouts", _texts, {}),
        recent_models=reader.take("recent_models", _recent_models, ()),
        last_model=reader.take("last_model", _text, ""),
        folders=reader.take("folders", _texts, {}),
        drift_speed=reader.take("drift_speed", _speed, default.drift_speed),
        flick_glide=reader.take("flick_glide", _flag, default.flick_glide),
        performance_visible=reader.take("performance_visible", _flag, default.performance_visible),
        device=reader.take("device", _device, default.device),
        precision=reader.take("precision", _precision, default.precision),
        choices=reader.take("choices", _texts, {}),
    )
    if reader.broken:
        messages.warning(
            f"Some preferences cannot be read and get their defaults: {', '.join(reader.broken)}.", f"In {path}."
        )
    return preferences


class _FieldReader:
    """Takes fields one by one and notes the ones that are broken."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.broken: list[str] = []

    def take(self, name: str, read: Callable[[Any], _T], default: _T) -> _T:
        if name not in self._data:
            return default
        try:
            return read(self._data[name])
        except (TypeError, ValueError, KeyError, OverflowError):
            self.broken.append(name)
            return default


def _theme(data: Any) -> Theme:
    for theme in ("system", "dark", "light"):
        if data == theme:
            return theme
    raise ValueError(data)


def _font(data: Any) -> Font:
    for font in ("inter", "system"):
        if data == font:
            return font
    raise ValueError(data)


def _device(data: Any) -> str:
    if not isinstance(data, str) or not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,3})?", data):
        raise ValueError(data)
    return data


def _precision(data: Any) -> Literal["fp16", "fp32"]:
    if data == "fp16":
        return "fp16"
    if data == "fp32":
        return "fp32"
    raise ValueError(data)


def _text(data: Any) -> str:
    if not isinstance(data, str) or len(data) > _MAX_TEXT:
        raise TypeError(data)
    return data


def _flag(data: Any) -> bool:
    if not isinstance(data, bool):
        raise TypeError(data)
    return data


def _speed(data: Any) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data) or abs(data) > 4:
        raise ValueError(data)
    return float(data)


def _texts(data: Any) -> dict[str, str]:
    return {_text(key): _text(value) for key, value in dict(data).items()}


def _recent_models(data: Any) -> tuple[RecentModel, ...]:
    if not isinstance(data, list):
        raise TypeError(data)
    return tuple(
        RecentModel(_text(item["path"]), _text(item["name"]), _text(item["model_id"])) for item in data[:MAX_RECENT]
    )
