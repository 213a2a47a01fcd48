"""Parameters of local edits: the numbers of bends, style channels, and blends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.local_edits import QUANTITIES, StyleChannel, style_lengths
from explorer_app.session.parameter_row import Kind, Parameter, Value
from explorer_app.session.session import Session
from gpu_backend import BEND_REST

_BEND_RANGES: dict[str, tuple[float, float, str]] = {
    "gain": (-10.0, 10.0, "{:z.2f}"),
    "ablate": (0.0, 1.0, "{:z.2f}"),
    "threshold": (0.0, 100.0, "{:z.2f}"),
    "right": (-2.0, 2.0, "{:z.2f}"),
    "down": (-2.0, 2.0, "{:z.2f}"),
    "turn": (-math.inf, math.inf, "{:z.1f}°"),
    "scale": (0.05, 20.0, "{:z.2f}"),
}


def bend_number(path: str, number: str, quantity: str) -> Parameter:
    """Return the parameter of a number of a bend; writing to a bend that has none does nothing."""
    kind, field = QUANTITIES[quantity]
    low, high, text = _BEND_RANGES[quantity]
    rest = BEND_REST[kind] if field == "amount" else 0.0

    def read(session: Session) -> float:
        bend = session.bend(int(number))
        return getattr(bend, field) if bend is not None and bend.kind == kind else rest

    def write(session: Session, value: float) -> Session:
        return _with_bend(session, int(number), kind, **{field: value})

    angle: Kind = "angle" if quantity == "turn" else "number"
    return Parameter(
        path, "Bend", angle, rest, read, write, low=low, high=high, is_geometric=quantity == "scale", text=text
    )


def bend_field(name: str, label: str, kind: Kind, default: Value) -> Callable[[str, str], Parameter]:
    """Return what makes the parameter of a field that every bend has."""

    def make(path: str, number: str) -> Parameter:
        return Parameter(
            path,
            label,
            kind,
            default,
            read=lambda session: getattr(session.bend(int(number)), name, default),
            write=lambda session, value: _with_bend(session, int(number), **{name: value}),
            is_merged=False,
        )

    return make


def _with_bend(session: Session, number: int, kind: str = "", **changes: Value) -> Session:
    """Return the session with fields of a bend changed, if it has one of that number and kind."""
    bends = tuple(
        replace(bend, **changes) if bend.number == number and kind in ("", bend.kind) else bend
        for bend in session.bends
    )
    return session if bends == session.bends else replace(session, bends=bends)


def style_field(name: str, label: str, kind: Kind, **options: Any) -> Callable[[str, str, str], Parameter]:
    """Return what makes the parameter of one field of a style channel; writing makes one that is not there."""

    def make(path: str, layer: str, channel: str) -> Parameter:
        def read(session: Session) -> Value:
            return getattr(session.style_channel(layer, int(channel)), name)

        def write(session: Session, value: Value) -> Session:
            if value == read(session):
                return session
            return session.with_style_channel(replace(session.style_channel(layer, int(channel)), **{name: value}))

        return Parameter(
            path,
            label,
            kind,
            getattr(StyleChannel(layer, 0), name),
            read,
            write,
            is_available=lambda facts: int(channel) < style_lengths(facts).get(layer, 0),
            **options,
        )

    return make


def blend_field(name: str, label: str, kind: Kind, **options: Any) -> Callable[[str, str], Parameter]:
    """Return what makes the parameter of one field of a blend; writing to a blend that is not there does nothing."""
    default = getattr(LocalBlend(0), name)

    def make(path: str, number: str) -> Parameter:
        def write(session: Session, value: Value) -> Session:
            blends = tuple(
                replace(blend, **{name: value}) if blend.number == int(number) else blend for blend in session.blends
            )
            return session if blends == session.blends else replace(session, blends=blends)

        return Parameter(
            path,
            label,
            kind,
            default,
            read=lambda session: getattr(session.blend(int(number)), name, default),
            write=write,
            **options,
        )

    return make
