"""Named directions in w, from a file beside a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_backend.quick_dataclass import dataclass
from gpu_backend.recipe import RowRange

RESERVED = ("sefa", "axis")
"""Sets that every model has by itself."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,15}/[^/]{1,40}")


@dataclass(frozen=True, slots=True, eq=False)
class NamedDirections:
    """Directions with the rows that each is for, a range for its slider and what was measured of it.

    Attributes
    ----------
    names
        A set and a name in it: ``"world/sun height"``. No two are the same.
    vectors
        (count, w_dim) float32: what an amount of 1 adds to w. For a factor that is so much of w as moves the factor by
        one standard deviation.
    rows
        The rows of w that each is for.
    reach, centre
        A slider goes from centre - reach to centre + reach; 0 is between them.
    measures
        Figures of each by a short name, ``"spearman"`` for instance; may be empty.
    """

    names: tuple[str, ...]
    vectors: NDArray[np.float32]
    rows: tuple[RowRange, ...]
    reach: tuple[float, ...]
    centre: tuple[float, ...]
    measures: tuple[Mapping[str, float], ...]

    def __len__(self) -> int:
        return len(self.names)


def is_direction_name(name: str) -> bool:
    """Say whether a direction of a file may be called so: ``set/name``, printable, and no set that models have."""
    kind, _, own = name.partition("/")
    return _NAME.fullmatch(name) is not None and name.isprintable() and own == own.strip() and kind not in RESERVED


def selected(directions: NamedDirections, places: Sequence[int]) -> NamedDirections | None:
    """Return the directions at these places, None for none."""
    if not places:
        return None
    return NamedDirections(
        names=tuple(directions.names[place] for place in places),
        vectors=directions.vectors[list(places)],
        rows=tuple(directions.rows[place] for place in places),
        reach=tuple(directions.reach[place] for place in places),
        centre=tuple(directions.centre[place] for place in places),
        measures=tuple(directions.measures[place] for place in places),
    )


def concatenated(first: NamedDirections, second: NamedDirections) -> NamedDirections:
    """Return the directions of both; no name may be in both."""
    return NamedDirections(
        names=first.names + second.names,
        vectors=np.concatenate([first.vectors, second.vectors]),
        rows=first.rows + second.rows,
        reach=first.reach + second.reach,
        centre=first.centre + second.centre,
        measures=first.measures + second.measures,
    )


def joined_directions(kept: NamedDirections | None, found: NamedDirections) -> NamedDirections:
    """Return both; of two directions of one name the found one."""
    if kept is None:
        return found
    rest = selected(kept, [place for place, name in enumerate(kept.names) if name not in found.names])
    return found if rest is None else concatenated(rest, found)
