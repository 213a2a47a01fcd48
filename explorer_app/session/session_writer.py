"""Sets many parameters of a session at the price of a few copies: a frame may have hundreds of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from explorer_app.session.parameters import Parameter, Value, with_layers, with_strengths, with_truncation
from explorer_app.session.session import Session, moved_sliders


class SessionWriter:
    """Sets many parameters of a session and copies it once for all of them instead of once for each.

    The result equals writing them in sequence, except for the order of new sliders.
    """

    __slots__ = ("_amounts", "_pending", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pending: dict[str, dict[str, Value]] = {}
        """Values that are not in `_session` yet, by part and path."""
        self._amounts: dict[str, float] | None = None
        """Amounts of `_session`'s sliders, by path; looked up once instead of once for each slider."""

    def read(self, row: Parameter) -> Value:
        """Return the value of a parameter, with what was set before."""
        pending = self._pending.get(row.part)
        if pending is not None:
            if row.path in pending:
                return pending[row.path]
            if not row.is_batched:
                self._flush(row.part)
        if row.part == "slider":
            if self._amounts is None:
                self._amounts = {_SLIDER + slider.direction: slider.amount for slider in self._session.sliders}
            return self._amounts.get(row.path, row.default)
        return row.read(self._session)

    def write(self, row: Parameter, value: Value) -> None:
        """Set a parameter to a value within its range."""
        if row.is_batched:
            pending = self._pending.get(row.part)
            if pending is None:
                pending = self._pending[row.part] = {}
            pending[row.path] = value
        else:
            self._flush(row.part)
            self._session = row.write(self._session, value)

    def write_part(self, part: str, values: Mapping[str, Value]) -> None:
        """Set batched parameters of one part, by path, to values within their ranges."""
        pending = self._pending.get(part)
        if pending is None:
            self._pending[part] = dict(values)
        else:
            pending.update(values)

    def finish(self) -> Session:
        """Return the session with every value that was set."""
        self._flush(*self._pending)
        return self._session

    def _flush(self, *parts: str) -> None:
        changes: dict[str, Any] = {}
        for part in parts:
            values = self._pending.pop(part, None)
            if values:
                changes |= _CHANGES[part](self._session, values)
        if changes:
            self._session = replace(self._session, **changes)
            self._amounts = None


_SLIDER = "slider/"


def _sliders(session: Session, values: Mapping[str, float]) -> dict[str, Any]:
    return {"sliders": moved_sliders(session.sliders, {path[len(_SLIDER) :]: value for path, value in values.items()})}


def _noise(session: Session, values: Mapping[str, Value]) -> dict[str, Any]:
    changes: dict[str, Value] = {}
    layers: dict[int, float] = {}
    for path, value in values.items():
        name, layer = _noise_field(path)
        if layer is None:
            changes[name] = value
        else:
            layers[layer] = value
    if layers:
        changes["layer_gains"] = with_layers(session.noise.layer_gains, layers)
    return {"noise": replace(session.noise, **changes)}


@lru_cache(maxsize=4096)
def _noise_field(path: str) -> tuple[str, int | None]:
    """Return the field of the noise that a path names, and the layer."""
    name, _, index = path.partition("/")
    return name.partition(".")[2], int(index) if index else None


def _mix(session: Session, values: Mapping[str, float]) -> dict[str, Any]:
    changes: dict[int, dict[int, float]] = {}
    for path, value in values.items():
        source, row = _mix_strength(path)
        changes.setdefault(source, {})[row] = value
    mix = tuple(
        replace(source, strengths=with_strengths(source.strengths, changes[index])) if index in changes else source
        for index, source in enumerate(session.mix)
    )
    return {"mix": mix}


@lru_cache(maxsize=4096)
def _mix_strength(path: str) -> tuple[int, int]:
    """Return the mix source and the row of w that a path names."""
    _, source, _, row = path.split("/")
    return int(source), int(row)


def _fields(session: Session, values: Mapping[str, Value]) -> dict[str, Any]:
    part = next(iter(values)).partition(".")[0]
    changes = {path[len(part) + 1 :]: value for path, value in values.items()}
    return {part: replace(getattr(session, part), **changes)}


def _truncation(session: Session, values: Mapping[str, Value]) -> dict[str, Any]:
    return with_truncation(session, {path.partition(".")[2]: value for path, value in values.items()})


_CHANGES: dict[str, Callable[[Session, Mapping[str, Value]], dict[str, Any]]] = {
    "slider": _sliders,
    "noise": _noise,
    "mix": _mix,
    "truncation": _truncation,
    "transform": _fields,
    "position": _fields,
}
"""By part: values by path -> the fields of the session that change."""
