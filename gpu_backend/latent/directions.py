"""Directions in w for sliders: named ones, SeFa directions of the model's weights, and the axes of w."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.recipe import DirectionAmount, RowRange

_AXIS = "axis/"
_SEFA = "sefa/"
_LISTED = 8
"""Maximum number of named directions that an error lists."""


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Named vectors in w.

    Attributes
    ----------
    names
        Named directions (``"world/sun height"``), then ``"sefa/0"``, ``"sefa/1"`` and so on, strongest first.
        ``"axis/17"`` is valid too, but not listed.
    vectors
        (count, w_dim) float32, the displacement for an amount of 1. SeFa vectors have length 1, named ones any length.
    reach
        Suggested slider range: large enough to change the picture clearly, small enough not to break it.
    rows
        Suggested rows of each direction, which a `DirectionAmount` may leave or choose others than. Default: all rows.
    centre
        Middle of each slider, which ranges from centre - reach to centre + reach. Default: 0.
    """

    names: tuple[str, ...]
    vectors: NDArray[np.float32]
    reach: tuple[float, ...]
    rows: tuple[RowRange, ...] = ()
    centre: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.rows:
            object.__setattr__(self, "rows", (RowRange(),) * len(self.names))
        if not self.centre:
            object.__setattr__(self, "centre", (0.0,) * len(self.names))

    def __len__(self) -> int:
        return len(self.names)


def rows_of(item: DirectionAmount, directions: Directions, num_ws: int) -> RowRange:
    """Return the rows to which a direction is added: its range, cut to the direction's own rows if it says so."""
    if not item.within_own or item.name.startswith(_AXIS) or item.name not in directions.names:
        return item.rows
    own = directions.rows[directions.names.index(item.name)]
    ends = [last for last in (item.rows.last, own.last) if last is not None]
    return RowRange(max(item.rows.first, own.first), min(ends, default=num_ws - 1))


def covers_all_rows(item: DirectionAmount, directions: Directions, num_ws: int) -> bool:
    """Return whether a direction is added to every row of w."""
    rows = rows_of(item, directions, num_ws)
    return rows.first == 0 and rows.last in (None, num_ws - 1)


def add_direction(rows: NDArray[np.float64], item: DirectionAmount, directions: Directions, num_ws: int) -> None:
    """Add `item.amount` times its direction to the rows of its range, in place.

    Parameters
    ----------
    rows
        (num_ws, w_dim); or (1, w_dim) for all rows, if the direction covers all.

    Raises
    ------
    RequestError
        If the direction or the range does not exist, or the amount is not finite.
    """
    w_dim = rows.shape[1]
    if not math.isfinite(item.amount):
        raise RequestError(f"The amount of direction {item.name!r} must be a finite number, not {item.amount}.")
    first, last = item.rows.first, num_ws - 1 if item.rows.last is None else item.rows.last
    if not 0 <= first < num_ws or not first <= last < num_ws:
        raise RequestError(
            f"The rows of direction {item.name!r} must be in 0..{num_ws - 1} for this network, not {first}..{last}."
        )
    if item.name.startswith(_AXIS):
        rows[first : last + 1, _axis(item.name, w_dim)] += item.amount
        return
    if item.name not in directions.names:
        raise RequestError(
            f"The direction must be one of {_listed(directions)} or axis/0..axis/{w_dim - 1}, not {item.name[:40]!r}."
        )
    acts_on = rows_of(item, directions, num_ws)
    part = rows[acts_on.first : num_ws if acts_on.last is None else acts_on.last + 1]
    part += item.amount * directions.vectors[directions.names.index(item.name)].astype(np.float64)


def _listed(directions: Directions) -> str:
    named = [repr(name) for name in directions.names if not name.startswith(_SEFA)]
    count = len(directions) - len(named)
    if len(named) > _LISTED:
        named[_LISTED:] = [f"{len(named) - _LISTED} more named ones"]
    return ", ".join([*named, f"sefa/0..sefa/{count - 1}"])


def _axis(name: str, w_dim: int) -> int:
    digits = name.removeprefix(_AXIS)
    # isdecimal also accepts digits of other scripts, which int() reads; only ASCII names are written.
    index = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 6 else -1
    if not 0 <= index < w_dim:
        raise RequestError(f"An axis must be one of axis/0..axis/{w_dim - 1} for this network, not {name[:40]!r}.")
    return index
