"""Directions in w that somebody found and named, as they lie in a file beside a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        A slider goes from centre - reach to centre + reach; 0 lies between.
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
