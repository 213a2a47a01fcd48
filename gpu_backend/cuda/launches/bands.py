"""Filters as matrices for tensor cores: bands of taps, cut into the words that the lanes of a warp hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend.ops.kernels.filter_tile import TAPS

_PARTS = 2
_MOST_PRODUCTS = 2
_LEFT_OUT = 2.5e-4
"""Of a filter, by its norm: half of what rounding its taps to fp16 may change."""


def rank_of(after: NDArray[np.float32]) -> int:
    """Return of how many products of both axes a filter (taps,) or (taps, taps) is the sum; 0: of more than two."""
    if after.ndim == 1:
        return 1
    sizes = np.linalg.svd(after.astype(np.float64), compute_uv=False)
    left_out = float(np.linalg.norm(sizes[_MOST_PRODUCTS:]))
    return _MOST_PRODUCTS if left_out <= _LEFT_OUT * float(np.linalg.norm(sizes)) else 0


def products_of(after: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the two products nearest to a filter (taps, taps): taps down the columns and along the rows, (2, taps)."""
    down, sizes, along = np.linalg.svd(after.astype(np.float64))
    roots = np.sqrt(sizes[:_MOST_PRODUCTS, None])
    return roots * down.T[:_MOST_PRODUCTS], roots * along[:_MOST_PRODUCTS]


def band_words(
    before: NDArray[np.float32], after: NDArray[np.float32], up: int, phase: int, rank: int = 1
) -> NDArray[np.uint32]:
    """Return the words of ``filtered_lrelu.cu``, (parts, lanes).

    Parameters
    ----------
    before, after
        (6 * up,); (12,), or (12, 12) of a filter that is the same in all directions; gains in them.
    phase
        Of the `up` samples that belong to one that is read, the first one's place.
    rank
        2: bands of the filter's two products, down the columns and then along the rows; 0: of its first six rows.
    """
    results, samples = np.arange(8)[:, None], np.arange(16)
    ups, downs = [], []
    for part in range(_PARTS):
        place = 8 * part + results + phase
        tap = place // up + TAPS - 1 - samples
        ups.append(np.where((tap >= 0) & (tap < TAPS), before[np.clip(tap, 0, TAPS - 1) * up + place % up], 0.0))
    for taps in _rows(after, rank):
        for part in range(_PARTS):
            tap = 2 * TAPS - 1 - (16 * part + samples - 2 * results)
            downs.append(np.where((tap >= 0) & (tap < 2 * TAPS), taps[np.clip(tap, 0, 2 * TAPS - 1)], 0.0))
    return np.concatenate([_words(part) for part in (*ups, *ups, *downs)])


def _rows(after: NDArray[np.float32], rank: int) -> NDArray[np.float64] | NDArray[np.float32]:
    if rank == 1:
        return after[None]
    return after[:TAPS] if rank == 0 else np.concatenate(products_of(after))


def _words(matrix: NDArray[np.floating]) -> NDArray[np.uint32]:
    """Return an 8 x 16 matrix as lanes hold it, (2, 32): two neighbours of a row a word, first of its first half."""
    halves = np.ascontiguousarray(matrix, np.float16).view(np.uint32).reshape(8, 2, 4)
    return np.ascontiguousarray(halves.transpose(1, 0, 2).reshape(2, 32))
