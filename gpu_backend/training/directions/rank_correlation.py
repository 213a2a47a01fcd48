"""Spearman's rank correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spearman(left: NDArray[np.floating], right: NDArray[np.floating]) -> float:
    """Return the correlation of the ranks of two (n,) arrays, in -1..1; 0 where one of them is constant."""
    a, b = _ranks(left), _ranks(right)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0.0 else 0.0


def _ranks(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return ranks (n,); equal values share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2.0)[places]
    return ranks
