"""Weights of fused convolutions in the order in which a block reads them.

For each block of output channels and each step through the input channels, one contiguous block that is copied to
shared memory unchanged: ``[tap][output channel][group of 8 input channels]``, the groups of a row swizzled as `swizzle`
in ``parts/tensor_core.cuh`` does, so that rows read together are in different banks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.shared_work import parallel_for

_GROUP = 8
_ROWS = 16
"""Output channels that are packed at a time: their weights stay in a core's cache."""


def pack_weight(
    weight: NDArray[np.float32], channels: int, depth: int, exponent: int, scale: float = 1.0
) -> NDArray[np.float16]:
    """Return (blocks, steps, taps, channels, depth) float16, zero where there is no channel.

    Parameters
    ----------
    weight
        (out_channels, in_channels, k, k).
    channels, depth
        Of the tile.
    exponent
        The weight is divided by two to this power.
    scale
        Factor on the weight, taken in fp32 before that.
    """
    cout, cin, height, width = weight.shape
    blocks, steps, taps = -(-cout // channels), -(-cin // depth), height * width
    packed = np.zeros((blocks, steps, taps, channels, depth), np.float16)
    stored, factor = weight.reshape(cout, cin, taps), np.float32(2.0**-exponent)
    pieces = -(-channels // _ROWS)  # of a block
    # A row's exchange comes again every eight rows, so that one table is right for all pieces.
    width = steps * depth // _GROUP
    rows = np.arange(min(_ROWS, channels))[:, None]
    groups = swizzle(np.arange(depth // _GROUP)[None, :], rows, depth)
    places = rows * width + groups + np.arange(0, width, depth // _GROUP)[:, None, None]

    def pack_piece(number: int) -> None:
        block, piece = divmod(number, pieces)
        start = piece * _ROWS
        first, last = block * channels + start, min(block * channels + min(start + _ROWS, channels), cout)
        if last <= first:
            return
        count = last - first
        scaled = stored[first:last] if scale == 1.0 else stored[first:last] * np.float32(scale)
        halves = np.empty(scaled.shape, np.float16)
        np.multiply(scaled, factor, out=halves, casting="same_kind")
        planes = np.zeros((taps, count, steps * depth), np.float16)
        planes[:, :, :cin] = halves.transpose(2, 0, 1)
        # A complex number has the size of a group: groups are copied whole.
        taken = planes.view(np.complex128).reshape(taps, -1).take(places[:, :count], axis=1, mode="clip")
        packed[block, :, :, start : start + count] = taken.view(np.float16).transpose(1, 0, 2, 3)

    parallel_for(pack_piece, blocks * pieces)
    return packed


def swizzle(group: NDArray[Any], row: NDArray[Any], depth: int) -> NDArray[Any]:
    """Return the place of a group of eight numbers in its row."""
    shift = {64: 0, 32: 1, 16: 2}[depth]
    place: NDArray[Any] = group ^ ((row >> shift) & (depth // _GROUP - 1))
    return place
