"""FIR filters and upsampling by 2, on channels-last rows and on planes.

Along rows, a filter is a banded matrix times (rows, columns * channels): one product for each strip, for any number of
taps. Along columns it is a sum of shifted copies, contiguous in channels-last memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.ops.upfirdn import doubling_phases


class BandedRows:
    """A banded (rows out, rows in) matrix, divided into strips of rows that read only their nonzero columns."""

    def __init__(self, matrix: NDArray[np.float64], strip: int) -> None:
        self._bands: list[tuple[int, int, Tensor]] = []
        for first in range(0, matrix.shape[0], strip):
            rows = matrix[first : first + strip]
            used = np.flatnonzero(rows.any(axis=0))
            low, high = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 1)
            self._bands.append((low, high, torch.from_numpy(np.ascontiguousarray(rows[:, low:high], np.float32))))

    def filter(self, strip: int, x: Tensor, out: Tensor) -> None:
        """Write strip number `strip` of the output: `x` is (rows in, n), `out` (rows of the strip, n)."""
        low, high, band = self._bands[strip]
        torch.mm(band, x[low:high], out=out)


def filter_columns(x: Tensor, taps: Sequence[float], out: Tensor) -> None:
    """out[:, u] = sum over k of taps[k] * x[:, u + len(taps) - 1 - k]: a valid convolution along axis 1."""
    width, last = out.shape[1], len(taps) - 1
    torch.mul(x[:, last : last + width], taps[0], out=out)
    for k in range(1, len(taps)):
        out.add_(x[:, last - k : last - k + width], alpha=taps[k])


class Doubling:
    """Upsampling along one axis: both phases as shifted sums over an axis with `margin` zeros at either end."""

    def __init__(self, taps: Sequence[float]) -> None:
        self._phases = doubling_phases(taps)
        self.margin = max(abs(shift) for phase in self._phases for shift, _ in phase)

    def run(self, x: Tensor, axis: int, out: Tensor) -> None:
        """Upsample `axis` of `x`, margins included, into `out`, which has twice the length without margins."""
        length = x.shape[axis] - 2 * self.margin
        for r, phase in enumerate(self._phases):
            index = [slice(None)] * out.ndim
            index[axis] = slice(r, None, 2)
            target = out[tuple(index)]
            for place, (shift, weight) in enumerate(phase):
                source = x.narrow(axis, self.margin + shift, length)
                if place == 0:
                    torch.mul(source, weight, out=target)
                else:
                    target.add_(source, alpha=weight)
            if not phase:
                target.zero_()
