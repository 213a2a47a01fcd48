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

from gpu_backend.ops.upfirdn import doubling_left_pad, doubling_phases, resampling_matrix

_PICTURE_STRIP = 32
"""Rows or columns of an upsampled picture that one matrix gives: more have more zeros, fewer need more calls."""


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


class PictureDoubling:
    """Upsampling of rows of (side, side, channels) pictures by 2, both axes as banded matrices.

    With few channels, sums of shifted copies would be many operations on short rows.

    Parameters
    ----------
    taps
        Taps of the filter.
    side, channels
        Of the picture before it is upsampled.
    rows
        Rows of the output (first and end).
    """

    def __init__(self, taps: Sequence[float], side: int, channels: int, rows: tuple[int, int]) -> None:
        matrix = resampling_matrix(side, 2 * side, taps, up=2, left=doubling_left_pad(len(taps)), gain=2.0)
        self._strips = range(0, rows[1] - rows[0], _PICTURE_STRIP)
        self._rows = BandedRows(matrix[slice(*rows)], _PICTURE_STRIP)
        pixels = np.eye(channels)
        self._columns: list[tuple[slice, slice, Tensor]] = []
        for first in range(0, 2 * side, _PICTURE_STRIP):
            columns = matrix[first : first + _PICTURE_STRIP]
            used = np.flatnonzero(columns.any(axis=0))
            band = np.kron(columns[:, used[0] : used[-1] + 1], pixels).T
            low, start = int(used[0]) * channels, first * channels
            source, target = slice(low, low + band.shape[0]), slice(start, start + band.shape[1])
            self._columns.append((source, target, torch.from_numpy(np.ascontiguousarray(band, np.float32))))

    def run(self, picture: Tensor, tall: Tensor, out: Tensor) -> None:
        """Upsample.

        Parameters
        ----------
        picture
            (side, side, channels), contiguous.
        tall
            Working memory, (rows, side * channels).
        out
            (rows, 2 side, channels), contiguous.
        """
        for number, first in enumerate(self._strips):
            self._rows.filter(number, picture.flatten(1), tall[first : first + _PICTURE_STRIP])
        wide = out.flatten(1)
        for source, target, band in self._columns:
            torch.mm(tall[:, source], band, out=wide[:, target])


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
