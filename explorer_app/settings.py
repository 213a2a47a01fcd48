"""Preferences: typed, versioned, read field by field, so that no file can ever stop a start.

A field that is missing, of the wrong type or out of range gets its default; the rest of the file is still used, and
the file is kept as ``.broken``. Fields of a newer version stay in the file. Several windows share it: each saves only
what was changed in it.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import platformdirs

from explorer_app.file_lock import HeldLock
from explorer_app.messages import MessageLog
from gpu_backend import SETTINGS_LIMITS, LimitError, dataclass, parse_json, read_regular_file, write_whole

VERSION = 1

MAX_RECENT = 12
"""Models in the menu of recent ones."""

Theme = Literal["system", "dark", "light"]
Font = Literal["inter", "system"]

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
    """Preferences, and the geometry of the window.

    Attributes
    ----------
    theme
        ``"system"`` follows the system's scheme.
    font
        ``"inter"`` is the font that comes with the program, ``"system"`` the system's UI font.
    window_geometry
        From `QMainWindow.saveGeometry`, as base64; empty for the first start.
    workspace
        The workspace that was shown last.
    layouts
        Workspace -> layout of its docks, if the user has rearranged them.
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
        Preferred device, as `gpu_backend.Renderer` names it: "auto", "cpu", "cuda:0"; and the precision on a GPU.
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
    precision: Literal["fp16", "fp8", "tf32", "bf16x3", "fp32"] = "fp16"
    choices: Mapping[str, str] = field(default_factory=dict)


class Settings:
    """Preferences and their file.

    Parameters
    ----------
    path
        The file; None keeps everything in memory.
    messages
        Receives warnings about a broken file or one that cannot be written.
    """

    def __init__(self, path: Path | None, messages: MessageLog) -> None:
        self._path = path
        self._messages = messages
        self._values = Preferences() if path is None else _read(path, messages)
        self._saved = self._values
        self._saving = threading.Lock()
        self._told = ""
        """The last message that they could not be written; empty once they are."""

    @staticmethod
    def default_path() -> Path:
        """Return where this system keeps preferences."""
        return platformdirs.user_config_path("latentloom", appauthor=False) / "settings.json"

    @property
    def has_file(self) -> bool:
        """Whether preferences are remembered after the program ends."""
        return self._path is not None

    @property
    def has_changed(self) -> bool:
        """Whether `save` would write something."""
        return self._values != self._saved

    @property
    def values(self) -> Preferences:
        """The current preferences."""
        return self._values

    def change(self, **fields: Any) -> None:
        """Replace fields by name: ``settings.change(theme="dark")``. `save` writes them to the disk.

        Raises
        ------
        TypeError
            If there is no such field.
        """
        self._values = replace(self._values, **fields)

    def folder(self, purpose: str) -> Path | None:
        """Return the folder that was used last for a purpose, or None if it no longer exists."""
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
        """Remove a model from the recent ones."""
        self.change(recent_models=tuple(item for item in self._values.recent_models if item.path != path))

    def choice(self, key: str, default: str = "") -> str:
        """Return a small choice of a panel."""
        return self._values.choices.get(key, default)

    def choose(self, key: str, value: str) -> None:
        """Remember a small choice of a panel."""
        self.change(choices={**self._values.choices, key: value})

    def save(self) -> None:
        """Write what changed in one atomic move; a refusal becomes a message, once until it is written.

        The file is read again first: what another window saved meanwhile stays, unless it was changed here too. Any
        thread may call it.
        """
        with self._saving:
            if self._path is not None and self.has_changed:
                self._save(self._path)

    def _save(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with HeldLock(path.with_name(f".{path.name}.lock")):
                data = _load(path, self._messages)
                own = self._values
                values = _merged(_FieldReader(data).preferences(), self._saved, own)
                text = json.dumps({**data, "version": VERSION, **asdict(values)}, indent=1)
                write_whole(path, text.encode())
            self._saved, self._told = own, ""
        except OSError as error:
            why = f"The preferences could not be written to {path} ({error.strerror}); they last until you close."
            if why != self._told:  # several parts save when the window closes
                self._told = why
                self._messages.warning(why, str(error))


def _read(path: Path, messages: MessageLog) -> Preferences:
    try:
        reader = _FieldReader(_load(path, messages))
    except OSError as error:
        messages.warning(
            f"The preferences in {path} cannot be read ({error.strerror}), so the defaults are used.", str(error)
        )
        return Preferences()
    preferences = reader.preferences()
    if reader.broken:
        kept = _kept_aside(path, keeps_original=True)
        messages.warning(
            f"Some preferences cannot be read and get their defaults: {', '.join(reader.broken)}{kept}.", f"In {path}."
        )
    return preferences


def _load(path: Path, messages: MessageLog) -> dict[str, Any]:
    """Return the file's fields, none if there is no file. One that is no JSON object is kept as ``.broken``.

    Raises
    ------
    OSError
        If the system refuses to read it.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        data = parse_json(
            read_regular_file(path, SETTINGS_LIMITS.nbytes, "preferences"), SETTINGS_LIMITS, "preferences"
        )
        if not isinstance(data, dict):
            raise ValueError(f"a {type(data).__name__}")
    except FileNotFoundError:
        return {}
    except (LimitError, ValueError) as error:
        kept = _kept_aside(path)
        messages.warning(f"The preferences in {path} cannot be read, so the defaults are used{kept}.", str(error))
        return {}
    return data


_MOST_KEPT_ASIDE = 16 * SETTINGS_LIMITS.nbytes


def _kept_aside(path: Path, *, keeps_original: bool = False) -> str:
    """Keep a broken file as ``.broken``, unless it is a folder; return the words that say so."""
    target = path.with_name(f"{path.name}.broken")
    try:
        if keeps_original or path.is_symlink():  # a link stays; saving replaces the file that it leads to
            write_whole(target, read_regular_file(path, _MOST_KEPT_ASIDE, "preferences"))
        else:
            path.replace(target)
    except (OSError, LimitError):
        return ""
    return f"; the file is kept as {target.name}"


def _merged(theirs: Preferences, before: Preferences, after: Preferences) -> Preferences:
    """Return what a file holds now with the changes from `before` to `after`."""
    changes: dict[str, Any] = {}
    for item in fields(Preferences):
        old, new = getattr(before, item.name), getattr(after, item.name)
        if new == old:
            continue
        found = getattr(theirs, item.name)
        if item.name == "recent_models":
            new = _merged_models(found, old, new)
        elif isinstance(new, Mapping):
            kept = {key: text for key, text in found.items() if key in new or key not in old}
            new = {**kept, **{key: text for key, text in new.items() if old.get(key) != text}}
        changes[item.name] = new
    return replace(theirs, **changes)


def _merged_models(
    theirs: tuple[RecentModel, ...], before: tuple[RecentModel, ...], after: tuple[RecentModel, ...]
) -> tuple[RecentModel, ...]:
    """Return the models opened here, then the file's models that were not removed here."""

    def is_as_before(items: tuple[RecentModel, ...]) -> bool:
        rest = iter(before)
        return all(item in rest for item in items)

    # Opened models move to the front; the others keep their order.
    count = next(count for count in range(len(after) + 1) if is_as_before(after[count:]))
    opened = after[:count]
    gone = {item.path for item in before} - {item.path for item in after} | {item.path for item in opened}
    return (*opened, *(item for item in theirs if item.path not in gone))[:MAX_RECENT]


class _FieldReader:
    """Reads fields one by one and records broken ones."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.broken: list[str] = []

    def preferences(self) -> Preferences:
        """Return every field; missing or broken ones have their defaults."""
        take, default = self._take, Preferences()
        return Preferences(
            theme=take("theme", _theme, default.theme),
            font=take("font", _font, default.font),
            window_geometry=take("window_geometry", _text, ""),
            workspace=take("workspace", _text, default.workspace),
            layouts=take("layouts", _texts, {}),
            recent_models=take("recent_models", _recent_models, ()),
            last_model=take("last_model", _text, ""),
            folders=take("folders", _texts, {}),
            drift_speed=take("drift_speed", _speed, default.drift_speed),
            flick_glide=take("flick_glide", _flag, default.flick_glide),
            performance_visible=take("performance_visible", _flag, default.performance_visible),
            device=take("device", _device, default.device),
            precision=take("precision", _precision, default.precision),
            choices=take("choices", _texts, {}),
        )

    def _take(self, name: str, read: Callable[[Any], _T], default: _T) -> _T:
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


def _precision(data: Any) -> Literal["fp16", "fp8", "tf32", "bf16x3", "fp32"]:
    if data == "fp16":
        return "fp16"
    if data == "fp8":
        return "fp8"
    if data == "tf32":
        return "tf32"
    if data == "bf16x3":
        return "bf16x3"
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
