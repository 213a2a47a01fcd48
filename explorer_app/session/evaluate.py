"""Session, modulation, time -> the session that is in effect: pure, and random access in time.

    effective = evaluate(session, modulation, t)        what every source of change makes of the session at a time
    request   = resolve(effective)                      what the renderer is asked for

Modulation never goes through the undo history: a controller, sound or a timeline moves what is in effect, and the
session that a person has set stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from explorer_app.session.parameters import Parameter, Value, parameter
from explorer_app.session.session import Position, Session


class Curve(Protocol):
    """A value for every time: a track of a timeline, a controller, an envelope."""

    def at(self, t: float) -> Value:
        """Return the value at a time in seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Modulator:
    """One parameter that is moved.

    Attributes
    ----------
    path
        The parameter's path.
    curve
        Its values over time, of the parameter's kind.
    mode
        ``"set"`` takes the curve's value, ``"add"`` adds it to the session's. Only numbers, angles, integers, points
        and strengths can be added.
    """

    path: str
    curve: Curve
    mode: Literal["set", "add"] = "set"


@dataclass(frozen=True, slots=True)
class Modulation:
    """Everything that moves a session besides the person's edits; later modulators see what earlier ones made."""

    modulators: tuple[Modulator, ...] = ()


NO_MODULATION = Modulation()


def evaluate(session: Session, modulation: Modulation = NO_MODULATION, t: float = 0.0) -> Session:
    """Return the session that is in effect at a time in seconds. Every value is kept within its parameter's range.

    Raises
    ------
    ParameterError
        If a path names no parameter, or a value is not finite.
    """
    for modulator in modulation.modulators:
        row = parameter(modulator.path)
        value = modulator.curve.at(t)
        if modulator.mode == "add":
            value = _sum(row, row.read(session), value)
        session = row.write(session, row.clamped(value))
    return session


def _sum(row: Parameter, base: Value, added: Value) -> Value:
    match row.kind:
        case "number" | "angle":
            return base + added
        case "integer" if base is not None:
            return base + added
        case "point":
            return Position(base.x + added.x, base.y + added.y)
        case "strengths":
            return tuple(min(max(a + b, 0.0), 1.0) for a, b in zip(base, added, strict=False))
        case _:
            return base
