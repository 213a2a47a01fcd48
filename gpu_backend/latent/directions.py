"""Directions in w that a slider can push along: named ones, those of the model's weights, and the axes of w."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.recipe import DirectionAmount, RowRange

_AXIS = "axis/"
_SEFA = "sefa/"
_LISTED = 8
"""How many named directions an error repeats."""


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Vectors in w with names.

    Attributes
    ----------
    names
        Named ones first, ``"world/sun height"``; then ``"sefa/0"``, ``"sefa/1"`` and so on, the strongest first.
        ``"axis/17"`` exists too, without being listed.
    vectors
        (count, w_dim) float32: what an amount of 1 adds. Those of SeFa have length 1, named ones their own scale.
    reach
        A suggested slider end for each: that far changes the picture clearly and does not yet break it.
    rows
        The rows that each is for, as a suggestion: an amount says its rows itself. Left out, all rows.
    centre
        The middle of each one's slider, which goes from centre - reach to centre + reach. Left out, 0.
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


def add_direction(rows: NDArray[np.float64], item: DirectionAmount, directions: Directions) -> None:
    """Add `item.amount` times its direction to the rows of its range, in place.

    Parameters
    ----------
    rows
        (num_ws, w_dim).

    Raises
    ------
    RequestError
        If the direction or the range does not exist, or the amount is not finite.
    """
    num_ws, w_dim = rows.shape
    if not math.isfinite(item.amount):
        raise RequestError(f"The amount of direction {item.name!r} must be a finite number, but {item.amount} came.")
    first, last = item.rows.first, num_ws - 1 if item.rows.last is None else item.rows.last
    if not 0 <= first < num_ws or not first <= last < num_ws:
        raise RequestError(
            f"The rows of direction {item.name!r} must lie in 0..{num_ws - 1} for this network, "
            f"but {first}..{last} came."
        )
    if item.name.startswith(_AXIS):
        rows[first : last + 1, _axis(item.name, w_dim)] += item.amount
        return
    if item.name not in directions.names:
        raise RequestError(
            f"The direction must be one of {_listed(directions)} or axis/0..axis/{w_dim - 1}, "
            f"but {item.name[:40]!r} came."
        )
    rows[first : last + 1] += item.amount * directions.vectors[directions.names.index(item.name)].astype(np.float64)


def _listed(directions: Directions) -> str:
    named = [repr(name) for name in directions.names if not name.startswith(_SEFA)]
    count = len(directions) - len(named)
    if len(named) > _LISTED:
        named[_LISTED:] = [f"{len(named) - _LISTED} more named ones"]
    return ", ".join([*named, f"sefa/0..sefa/{count - 1}"])


def _axis(name: str, w_dim: int) -> int:
    digits = name.removeprefix(_AXIS)
    # isdecimal also takes other scripts' digits, which int() reads: only ASCII is a name that we write.
    index = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 6 else -1
    if not 0 <= index < w_dim:
        raise RequestError(f"An axis must be one of axis/0..axis/{w_dim - 1} for this network, but {name[:40]!r} came.")
    return index
