"""Filters as matrices for tensor cores: bands of taps, cut into the words that the lanes of a warp hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend.ops.kernels.filter_tile import TAPS

_PARTS = 2


def band_words(before: NDArray[np.float32], after: NDArray[np.float32], up: int, phase: int) -> NDArray[np.uint32]:
    """Return the words of ``filtered_lrelu.cu``, (parts, lanes).

    Parameters
    ----------
    before, after
        (6 * up,); (12,), or (12, 12) of a filter that is the same in all directions; gains in them.
    phase
        Of the `up` samples that belong to one that is read, the first one's place.
    """
    results, samples = np.arange(8)[:, None], np.arange(16)
    ups, downs = [], []
    for part in range(_PARTS):
        place = 8 * part + results + phase
        tap = place // up + TAPS - 1 - samples
        ups.append(np.where((tap >= 0) & (tap < TAPS), before[np.clip(tap, 0, TAPS - 1) * up + place % up], 0.0))
    for taps in after[:TAPS] if after.ndim == 2 else (after,):
        for part in range(_PARTS):
            tap = 2 * TAPS - 1 - (16 * part + samples - 2 * results)
            downs.append(np.where((tap >= 0) & (tap < 2 * TAPS), taps[np.clip(tap, 0, 2 * TAPS - 1)], 0.0))
    return np.concatenate([_words(part) for part in (*ups, *ups, *downs)])


def _words(matrix: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return an 8 x 16 matrix as lanes hold it, (2, 32): two neighbours of a row a word, first of its first half."""
    halves = np.ascontiguousarray(matrix, np.float16).view(np.uint32).reshape(8, 2, 4)
    return np.ascontiguousarray(halves.transpose(1, 0, 2).reshape(2, 32))
