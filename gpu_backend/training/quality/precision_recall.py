"""Improved precision and recall (Kynkaanniemi et al. 2019, section 2).

A set of features represents the union of balls around its members, each as wide as the distance to the member's k-th
nearest neighbour in the set. Precision: the share of generated features within the real set's balls. Recall: the share
of real features within the generated set's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NEIGHBOURS = 3
"""k, as in the paper."""

_CHUNK = 1024
"""Rows of the distance matrix per block, which bounds memory."""


class PrecisionRecall(NamedTuple):
    """Fractions in 0..1."""

    precision: float
    recall: float


def precision_recall(
    real: NDArray[np.floating], generated: NDArray[np.floating], neighbours: int = NEIGHBOURS, chunk: int = _CHUNK
) -> PrecisionRecall:
    """Return precision and recall of generated features (m, d) against real ones (n, d).

    Both sets need more than `neighbours` members.
    """
    # Distances of far-away clusters lose digits by cancellation; around the common mean they are shorter.
    mean = real.astype(np.float64).mean(axis=0)
    here, there = real.astype(np.float64) - mean, generated.astype(np.float64) - mean
    return PrecisionRecall(
        precision=_share_within(here, _radii(here, neighbours, chunk), there, chunk),
        recall=_share_within(there, _radii(there, neighbours, chunk), here, chunk),
    )


def _radii(features: NDArray[np.float64], neighbours: int, chunk: int) -> NDArray[np.float64]:
    """Return the squared distance of each feature to its k-th nearest other, (n,)."""
    count = features.shape[0]
    if not 1 <= neighbours < count:
        raise ValueError(f"expected more than {neighbours} features, not {count}")
    radii = np.empty(count)
    for first in range(0, count, chunk):
        block = _squared_distances(features[first : first + chunk], features)
        # Counted among the others: each one's distance to itself is taken away, wherever rounding would sort it.
        rows = np.arange(block.shape[0])
        block[rows, first + rows] = np.inf
        radii[first : first + chunk] = np.partition(block, neighbours - 1, axis=1)[:, neighbours - 1]
    return radii


def _share_within(
    centres: NDArray[np.float64], radii: NDArray[np.float64], points: NDArray[np.float64], chunk: int
) -> float:
    within = 0
    for first in range(0, points.shape[0], chunk):
        block = _squared_distances(points[first : first + chunk], centres)
        within += int((block <= radii).any(axis=1).sum())
    return within / len(points)


def _squared_distances(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return |a - b|^2 = |a|^2 - 2 ab + |b|^2 for all pairs, (n, m)."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)
    distances: NDArray[np.float64] = np.maximum(squares - 2.0 * (left @ right.T), 0.0)
    return distances
