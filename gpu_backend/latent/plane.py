"""Seed plane: real coordinates to a bilinear blend of the surrounding seeds.

Integer coordinates are seeds: seed = x + 100 y. The official viewer uses the same layout, so coordinates carry over.
"""

from __future__ import annotations

import math

from gpu_backend.errors import RequestError
from gpu_backend.recipe import SEED_COUNT, Point

ROW_STEP = 100
"""Seed offset for one unit of y."""


def plane_point(x: float, y: float) -> Point:
    """Return the blend at a position on the seed plane.

    The corners (cx, cy) around the position have seed (cx + 100 * cy) mod 2**32 and weight
    (1 - |x - cx|) * (1 - |y - cy|). Corners of weight 0 are left out, so integer coordinates give a single seed.

    Raises
    ------
    RequestError
        If a coordinate is not finite.
    """
    _check(x, y)
    left, top = math.floor(x), math.floor(y)
    right_weight, bottom_weight = x - left, y - top
    corners = (
        (left, top, (1.0 - right_weight) * (1.0 - bottom_weight)),
        (left + 1, top, right_weight * (1.0 - bottom_weight)),
        (left, top + 1, (1.0 - right_weight) * bottom_weight),
        (left + 1, top + 1, right_weight * bottom_weight),
    )
    return Point(seeds=tuple((_seed_at(cx, cy), weight) for cx, cy, weight in corners if weight > 0.0))


def plane_seed(x: float, y: float) -> int:
    """Return the seed nearest to a position on the seed plane. Raises RequestError if a coordinate is not finite."""
    _check(x, y)
    return _seed_at(math.floor(x + 0.5), math.floor(y + 0.5))


def _seed_at(column: int, row: int) -> int:
    return (column + ROW_STEP * row) % SEED_COUNT


def _check(x: float, y: float) -> None:
    if not (math.isfinite(x) and math.isfinite(y)):
        raise RequestError(f"A place on the seed plane must have finite coordinates, not ({x}, {y}).")
