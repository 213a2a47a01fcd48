"""Weights of fused convolutions in the order in which a block reads them.

For each block of output channels and each step through the input channels, one run of memory that goes to shared memory
as it is: ``[tap][output channel][group of 8 input channels]``, the groups of a row exchanged as `exchanged` in
``parts/tensor_core.cuh`` does, so that rows read together lie in different banks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_GROUP = 8


def pack_weight(weight: NDArray[np.float32], channels: int, depth: int, exponent: int) -> NDArray[np.float16]:
    """Return (blocks, steps, taps, channels, depth) float16, zero where there is no channel.

    Parameters
    ----------
    weight
        (out_channels, in_channels, k, k).
    channels, depth
        Of the tile.
    exponent
        The weight is divided by two to this power.
    """
    cout, cin, height, width = weight.shape
    blocks, steps, taps = -(-cout // channels), -(-cin // depth), height * width
    padded: NDArray[Any] = np.zeros((blocks * channels, steps * depth, taps), np.float32)
    padded[:cout, :cin] = np.ldexp(weight, -exponent).reshape(cout, cin, taps)
    ordered = padded.reshape(blocks, channels, steps, depth // _GROUP, _GROUP, taps).transpose(0, 2, 5, 1, 3, 4)
    rows = np.arange(channels)[:, None]
    groups = np.arange(depth // _GROUP)[None, :]
    packed = np.empty(ordered.shape, np.float16)
    packed[:, :, :, rows, exchanged(groups, rows, depth)] = ordered
    return packed.reshape(blocks, steps, taps, channels, depth)


def exchanged(group: NDArray[Any], row: NDArray[Any], depth: int) -> NDArray[Any]:
    """Return the place of a group of eight numbers in its row."""
    shift = {64: 0, 32: 1, 16: 2}[depth]
    place: NDArray[Any] = group ^ ((row >> shift) & (depth // _GROUP - 1))
    return place
