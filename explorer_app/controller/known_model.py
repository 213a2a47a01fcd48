"""Facts of a model before its file is read: cached by the last start, or shipped beside the bundled model."""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from explorer_app.rendering.renderer_like import DirectionsLike
from gpu_backend import ModelFacts, RowRange, dataclass

VERSION = 1
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class KnownDirections:
    """Implements `DirectionsLike` without the vectors, which only a renderer needs."""

    names: tuple[str, ...] = ()
    reach: tuple[float, ...] = ()
    rows: tuple[RowRange, ...] = ()
    centre: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.reach) == len(self.rows) == len(self.centre):
            raise ValueError("each direction has a reach, rows and a centre")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Facts and directions of a file, as long as the file has this size and time.

    Attributes
    ----------
    mtime_ns
        When the file was changed last; 0 for a file that is recognised by its size alone.
    """

    facts: ModelFacts
    directions: KnownDirections
    mtime_ns: int = 0

    @staticmethod
    def of(facts: ModelFacts, directions: DirectionsLike) -> KnownModel:
        """Return the record of an open model.

        Raises
        ------
        OSError
            If its file no longer exists.
        """
        known = KnownDirections(directions.names, directions.reach, directions.rows, directions.centre)
        return KnownModel(facts, known, Path(facts.path).stat().st_mtime_ns)

    def at(self, path: Path) -> KnownModel | None:
        """Return the record of the file at a path; None if it is another file."""
        try:
            there = path.stat()
        except OSError:
            return None
        is_same = self.mtime_ns == 0 or (self.mtime_ns == there.st_mtime_ns and self.facts.path == str(path))
        if not is_same or there.st_size != self.facts.nbytes:
            return None
        return replace(self, facts=replace(self.facts, path=str(path)))


def known_to_json(known: KnownModel) -> bytes:
    """Return the bytes of a file that `known_from_json` reads."""
    return json.dumps({"version": VERSION, **asdict(known)}, ensure_ascii=False, separators=(",", ":")).encode()


def known_from_json(data: bytes) -> KnownModel:
    """Return the content of a file.

    Raises
    ------
    ValueError
        If it is of another version, or a field is missing, unknown or of the wrong type.
    """
    document = json.loads(data)
    if not isinstance(document, dict) or document.pop("version", None) != VERSION:
        raise ValueError("another version")
    return _read(KnownModel, document)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: type[_T], data: Any) -> _T:
    """Return data as a field's type: a dataclass, a tuple of one type, a union with None or a plain type."""
    if is_dataclass(kind):
        if not isinstance(data, dict):
            raise ValueError(f"{kind.__name__} is no object")
        hints = _hints(kind)
        needed = {field.name for field in fields(kind) if field.default is MISSING}
        if not needed <= data.keys() <= hints.keys():
            raise ValueError(f"{kind.__name__} has other fields")
        return kind(**{name: _read(hints[name], value) for name, value in data.items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError("no list")
        return tuple(_read(arguments[0], item) for item in data)  # type: ignore[return-value]
    if origin in (types.UnionType, Union):
        return data if data is None else _read(arguments[0], data)  # type: ignore[return-value]
    if kind is float and isinstance(data, int) and not isinstance(data, bool) and abs(data) < 1 << 53:
        return float(data)  # type: ignore[return-value]
    if type(data) is not kind:
        raise ValueError(f"{data!r:.40} is no {kind.__name__}")
    return data
