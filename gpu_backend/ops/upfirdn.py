"""Upsampling by zero insertion, padding and an FIR filter, per axis.

With taps f[0 .. n-1], true convolution, zero insertion by `up` and `left` zeros before the first sample::

    y[u] = gain * sum_a  f[u + n - 1 - left - up * a] * x[a]          (f and x are 0 outside their range)

StyleGAN2 uses it twice (Karras et al. 2020b, section 4.1 and appendix B): to upsample a picture or features by 2, and
as the filter after the transposed convolution of an up-convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def doubling_left_pad(taps: int) -> int:
    """Zeros before the first sample when an axis is doubled with a filter of `taps` taps."""
    return (taps + 1) // 2


def up_conv_left_pad(taps: int, kernel: int = 3) -> int:
    """Zeros before the first sample of the filter that follows a stride-2 transposed convolution."""
    return 1 + (taps + 1) // 2 - (kernel - 1)


def resampling_matrix(
    size_in: int, size_out: int, taps: Sequence[float], *, up: int, left: int, gain: float
) -> NDArray[np.float64]:
    """Return the (size_out, size_in) matrix of the formula above; it is banded."""
    count = len(taps)
    matrix = np.zeros((size_out, size_in))
    for k, tap in enumerate(taps):
        # k = u + n - 1 - left - up * a  <=>  a = (u + n - 1 - left - k) / up
        u = np.arange(size_out)
        position = u + count - 1 - left - k
        a, rest = np.divmod(position, up)
        valid = (rest == 0) & (a >= 0) & (a < size_in)
        matrix[u[valid], a[valid]] = gain * tap
    return matrix


def doubling_phases(taps: Sequence[float]) -> tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]:
    """Return (shift, weight) pairs of both phases: y[2 i + r] = sum weight * x[i + shift], gain 2 included."""
    count, left = len(taps), doubling_left_pad(len(taps))

    def phase(r: int) -> tuple[tuple[int, float], ...]:
        pairs = []
        for shift in range(-count, count + 1):
            k = r + count - 1 - left - 2 * shift
            if 0 <= k < count:
                pairs.append((shift, 2.0 * taps[k]))
        return tuple(pairs)

    return phase(0), phase(1)
