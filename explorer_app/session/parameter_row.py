"""One row of the table of parameters (`explorer_app.session.parameters`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import field
from typing import Any, Literal

from explorer_app.session.session import Position, Session
from gpu_backend import Arc, LoomError, ModelFacts, dataclass

Kind = Literal[
    "number",
    "angle",
    "integer",
    "choice",
    "point",
    "latent",
    "weights",
    "strengths",
    "rows",
    "layer",
    "source",
    "text",
    "flag",
    "mask",
]
"""What a parameter's values are.

================  ==================================================  =========================================
kind              value                                               between two values
================  ==================================================  =========================================
number            float                                               linear, or geometric if `is_geometric`
angle             float, degrees                                      the shorter way round
integer           int, or None for "all" where that is the default    linear, rounded
choice            str                                                 the first until the end
point             Position                                            linear
latent            ((recipe, weight), …) in place of the point         linear in w
weights           ((index, weight), …)                                linear for each index
strengths         one float in 0..1 per row of w                      linear in each row
rows              RowRange, or None: the direction's own             the first until the end
layer             Tap, None for the picture                           the first until the end
source            Latent                                              the first until the end
text              str                                                 the first until the end
flag              bool                                                the first until the end
mask              PictureMask, None for nothing frozen                the first until the end
================  ==================================================  =========================================
"""

Value = Any
"""A value of a parameter; its `Kind` defines the type."""


class ParameterError(LoomError):
    """There is no such parameter, or it cannot have the value."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of the table.

    Attributes
    ----------
    label
        Words for undo and for users: "Truncation".
    default
        Its value in a new session.
    low, high
        Range of a number, angle or integer; `clamped` keeps to it.
    is_geometric
        Equal steps are equal factors, as for a scale.
    is_merged
        Several changes by key in a row are one step of undo.
    text
        How a number is shown: a format with one field.
    read, write
        Value of a session; session with another value.
    is_available
        Whether a model has it.
    fit
        The value that comes nearest and that a model can have.
    is_batched
        Whether `SessionWriter` writes it in one copy of the session with others of its `part`.
    """

    path: str
    label: str
    kind: Kind
    default: Value
    read: Callable[[Session], Value]
    write: Callable[[Session, Value], Session]
    low: float = -math.inf
    high: float = math.inf
    is_geometric: bool = False
    is_merged: bool = True
    text: str = "{:z.2f}"
    is_available: Callable[[ModelFacts], bool] = lambda facts: True
    fit: Callable[[Value, ModelFacts], Value] = lambda value, facts: value
    is_batched: bool = False
    part: str = field(init=False)
    """First word of the path. Parameters of different parts can be written in any order."""

    def __post_init__(self) -> None:
        """Take the part from the path."""
        object.__setattr__(self, "part", re.split(r"[./]", self.path, maxsplit=1)[0])

    def clamped(self, value: Value) -> Value:
        """Return the value within the parameter's range; whole for an integer.

        Raises
        ------
        ParameterError
            If a number is not finite.
        """
        if value is None or self.kind not in ("number", "angle", "integer"):
            return value
        if not math.isfinite(value):
            raise ParameterError(f"{self.label} must be a finite number, not {value}.")
        inside = min(max(value, self.low), self.high)
        return round(inside) if self.kind == "integer" else float(inside)

    def between(self, first: Value, second: Value, share: float) -> Value:
        """Return the value at `share` of the way, 0..1, from one value to another; `Kind` says how it goes."""
        if share <= 0.0 or first == second:
            return first
        if share >= 1.0:
            return second
        match self.kind:
            case "number" if self.is_geometric and first > 0 and second > 0:
                return first * (second / first) ** share
            case "number":
                return first + share * (second - first)
            case "angle":
                return first + share * ((second - first + 180.0) % 360.0 - 180.0)
            case "integer" if first is not None and second is not None:
                return round(first + share * (second - first))
            case "point":
                return Position(first.x + share * (second.x - first.x), first.y + share * (second.y - first.y))
            case "latent" if first and second:
                total = {recipe: (1.0 - share) * weight for recipe, weight in first}
                for recipe, weight in second:
                    total[recipe] = total.get(recipe, 0.0) + share * weight
                return tuple(total.items())
            case "weights":
                a, b = dict(first), dict(second)
                mixed = {key: (1.0 - share) * a.get(key, 0.0) + share * b.get(key, 0.0) for key in {**a, **b}}
                return tuple((key, weight) for key, weight in sorted(mixed.items()) if weight)
            case "strengths" if len(first) == len(second):
                return tuple(a + share * (b - a) for a, b in zip(first, second, strict=True))
            case _:
                return first

    def shown(self, value: Value) -> str:
        """Return a value as a user reads it."""
        match self.kind:
            case "number" | "angle":
                return self.text.format(value).replace("-", "−")
            case "point":
                return f"{value.x:.2f}, {value.y:.2f}".replace("-", "−")
            case "weights":
                return ", ".join(f"{key}: {weight:.2f}" for key, weight in value) or "none"
            case "strengths":
                return " ".join(f"{strength:.2f}" for strength in value)
            case "rows":
                return "own" if value is None else f"{value.first}–{'end' if value.last is None else value.last}"
            case "latent":
                return "pinned" if value else "on the plane"
            case "layer":
                return "picture" if value is None else str(value.layer)
            case "source" if isinstance(value.point, Arc):
                return "between points"
            case "source":
                return ", ".join(f"seed {seed}" for seed, _ in getattr(value.point, "seeds", ())) or "stored"
            case "mask":
                return "painted" if value else "none"
            case "flag":
                return "on" if value else "off"
            case "choice":
                return {"const": "constant", "none": "off"}.get(value, str(value))
            case _:
                return "all" if value is None else str(value)
