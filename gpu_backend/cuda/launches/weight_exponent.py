"""The power of two that a convolution's fp16 weights are divided by.

fp16 has 10 bits of fraction but only 5 of exponent: a layer whose weights are all small would lose bits, one whose
weights are large could overflow. So the packed weight is W 2^-e with its largest magnitude in [1, 2), and the layer's
demodulation coefficient, which the `styles` kernel makes, is d 2^e. Both are exact. In fp32 plans e is 0.
"""

from __future__ import annotations

import math
import weakref

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.shared_work import parallel_for

_LARGEST = 100
"""Bound of |e|: 2^e and d 2^e stay within float32. Weights beyond 2^100 make no picture."""

_PART = 1 << 18
"""Block size of the two passes, small enough for a core's cache."""

_known: dict[int, tuple[weakref.ref[NDArray[np.float32]], np.float32]] = {}
"""Largest magnitudes of arrays that live, by `id`: every schedule of a model needs the same."""


def weight_exponent(weight: NDArray[np.float32], scale: float = 1.0) -> int:
    """Return e with max|W scale| 2^-e in [1, 2); 0 where all weights are zero or one is not finite.

    The largest magnitude is kept as long as the array lives: a model's weights do not change.

    Parameters
    ----------
    weight
        The layer's weights as stored, (out, in, kernel, kernel). An up-convolution's e comes from these too, whatever
        its packing composes them with.
    scale
        What the packing multiplies them by, as float32.
    """
    key = id(weight)
    if key not in _known:
        _known[key] = weakref.ref(weight, lambda _: _known.pop(key, None)), _largest(weight)
    with np.errstate(over="ignore"):  # to infinity, as the packing would
        largest = float(abs(_known[key][1] * np.float32(scale)))
    if largest == 0.0 or not math.isfinite(largest):
        return 0
    return max(-_LARGEST, min(_LARGEST, math.frexp(largest)[1] - 1))


def _largest(weight: NDArray[np.float32]) -> np.float32:
    """Return max|W|; NaN or infinity where a weight is not finite."""
    flat = weight.reshape(-1)
    ends = np.zeros((-(-flat.size // _PART), 2), np.float32)

    def look(number: int) -> None:
        part = flat[number * _PART : (number + 1) * _PART]
        ends[number] = part.min(), part.max()

    parallel_for(look, len(ends))
    return np.float32(np.abs(ends).max(initial=0.0))
