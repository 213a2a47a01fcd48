"""The power of two that a convolution's fp16 weights are divided by.

fp16 has 10 bits of fraction but only 5 of exponent: a layer whose weights are all small would lose bits, one whose
weights are large could overflow. So the packed weight is W 2^-e with its largest magnitude in [1, 2), and the layer's
demodulation coefficient, which the `styles` kernel makes, is d 2^e. Both are exact. In fp32 plans e is 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_LARGEST = 100
"""Bound of |e|: 2^e and d 2^e stay within float32. Weights beyond 2^100 make no picture."""


def weight_exponent(weight: NDArray[np.float32]) -> int:
    """Return e with max|W| 2^-e in [1, 2); 0 where all weights are zero or one is not finite.

    Parameters
    ----------
    weight
        The layer's weights as stored, (out, in, kernel, kernel). An up-convolution's e comes from these too, whatever
        its packing composes them with.
    """
    largest = float(np.abs(weight).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return 0
    return max(-_LARGEST, min(_LARGEST, math.frexp(largest)[1] - 1))
