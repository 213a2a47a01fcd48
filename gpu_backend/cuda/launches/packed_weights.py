"""Weights of fused convolutions in the order in which a block reads them.

For each block of output channels and each step through the input channels, one contiguous block that is copied to
shared memory unchanged: ``[tap][output channel][group of 16 bytes of input channels]``, the groups of a row swizzled as
`swizzle` in ``parts/tensor_core.cuh`` does, so that rows read together are in different banks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.shared_work import parallel_for
from gpu_backend.ops.kernels.e4m3 import weight_to_e4m3

_GROUP_NBYTES = 16
_ROWS = 16
"""Output channels that are packed at a time: their weights stay in a core's cache."""


def pack_weight(
    weight: NDArray[np.float32], channels: int, depth: int, exponent: int, scale: float = 1.0
) -> NDArray[np.float16]:
    """Return (blocks, steps, taps, channels, depth) float16, with zeros for padding channels.

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
    return _packed(weight, channels, depth, exponent, scale, np.dtype(np.float16))


def pack_reordered(
    weight: NDArray[np.float32],
    order: NDArray[np.int64],
    taps: tuple[int, ...],
    depth: int,
    exponent: int,
    scale: float,
    *,
    is_fp8: bool = False,
) -> NDArray[Any]:
    """Return what `pack_weight` or `pack_weight_fp8` does, with output channels of a block, and taps, in another order.

    Parameters
    ----------
    order
        For each place among a block's output channels, the channel there.
    taps
        The tap k ky + kx of each place; a tap may have several places.
    """
    channels = len(order)
    numbers: NDArray[Any] = _to_fp8(weight, exponent, scale) if is_fp8 else weight
    whole = np.zeros((-(-len(weight) // channels) * channels, *weight.shape[1:]), numbers.dtype)
    whole[: len(weight)] = numbers
    ordered = whole.reshape(-1, channels, weight.shape[1], weight.shape[2] * weight.shape[3])[:, order][..., list(taps)]
    ordered = ordered.reshape(len(whole), -1, len(taps), 1)
    if is_fp8:
        return _packed(ordered, channels, depth, 0, 1.0, ordered.dtype)
    return pack_weight(ordered, channels, depth, exponent, scale)


def lane_order(channels: int, fragments: int) -> NDArray[np.int64]:
    """Return the channel at each place among a block's output channels: those that a lane stores are neighbours.

    A lane quarter q holds, of fragment n, the places 8 n + 2 q and the next one. It stores so many fragments at once.
    """
    place = np.arange(channels)
    fragment, quarter, number = place // 8, place % 8 // 2, place % 2
    return fragment // fragments * 8 * fragments + (quarter * fragments + fragment % fragments) * 2 + number


def pack_weight_tf32(
    weight: NDArray[np.float32], channels: int, depth: int, exponent: int, scale: float = 1.0
) -> NDArray[np.float32]:
    """Return the same as float32, rounded to the 10 bits of fraction that tensor cores take."""
    return to_tf32(_packed(weight, channels, depth, exponent, scale, np.dtype(np.float32)))


def pack_weight_bf16x3(
    weight: NDArray[np.float32], channels: int, depth: int, exponent: int, scale: float = 1.0
) -> NDArray[np.uint16]:
    """Return the same as pairs of bf16, (blocks, steps, taps, channels, 2 * depth): the bits of each.

    In a row, sixteen high parts are followed by the sixteen low parts of the same input channels. Those of eight
    channels lie in the order 0 4 1 5 2 6 3 7, in which ``load_positions`` in ``parts/tile_loop.cuh`` holds activations.
    """
    cout, cin, height, width = weight.shape
    whole = -(-cin // depth) * depth
    scaled = weight.reshape(cout, cin, -1) * np.float32(scale * 2.0**-exponent)
    numbers = np.zeros((cout, whole, height * width), np.float32)
    numbers[:, :cin] = scaled
    in_order = numbers.reshape(cout, whole // 16, 2, 2, 4, -1).swapaxes(3, 4).reshape(cout, whole // 16, 16, -1)
    high = to_bf16(in_order)
    with np.errstate(invalid="ignore"):  # infinities have no low part
        rest = in_order - from_bf16(high)
    low = to_bf16(np.where(np.isfinite(rest), rest, np.float32(0.0)))
    parts = np.concatenate((high, low), axis=2).reshape(cout, 2 * whole, height, width)
    return _packed(parts, channels, 2 * depth, 0, 1.0, np.dtype(np.uint16))


def to_bf16(numbers: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the bits of the nearest bf16 numbers, ties to even; numbers that are not finite stay."""
    bits = np.ascontiguousarray(numbers).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    kept = bits | np.where(np.isnan(numbers), np.uint32(1 << 22), np.uint32(0))  # NaN, whatever its last bits are
    return (np.where(np.isfinite(numbers), rounded, kept) >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the numbers that these bits are."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def pack_weight_fp8(
    weight: NDArray[np.float32], channels: int, depth: int, exponent: int, scale: float = 1.0
) -> NDArray[np.int8]:
    """Return the same as e4m3, rounded by `weight_to_e4m3`."""
    numbers = _to_fp8(weight, exponent, scale)
    return _packed(numbers, channels, depth, 0, 1.0, numbers.dtype)


def _to_fp8(weight: NDArray[np.float32], exponent: int, scale: float) -> NDArray[np.int8]:
    """Round all taps of a weight together, before anything changes their order."""
    found, factor = np.empty(weight.shape, np.int8), np.float32(scale * 2.0**-exponent)

    def round_piece(number: int) -> None:
        part = slice(number * _ROWS, (number + 1) * _ROWS)
        found[part] = weight_to_e4m3(weight[part] * factor)

    parallel_for(round_piece, -(-len(weight) // _ROWS))
    return found


def to_tf32(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to 10 bits of fraction, ties away from zero, as ``cvt.rna.tf32.f32``; numbers that are not finite stay."""
    bits = (numbers.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(numbers), bits.view(np.float32), numbers)


def _packed(
    weight: NDArray[Any], channels: int, depth: int, exponent: int, scale: float, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Pack; integers as they are."""
    cout, cin, height, width = weight.shape
    blocks, steps, taps = -(-cout // channels), -(-cin // depth), height * width
    packed = np.zeros((blocks, steps, taps, channels, depth), dtype)
    stored, factor = weight.reshape(cout, cin, taps), np.float32(2.0**-exponent)
    pieces = -(-channels // _ROWS)  # of a block
    # The swizzle repeats every eight rows, so that one table serves all pieces.
    groups_a_step = depth * dtype.itemsize // _GROUP_NBYTES
    groups_a_row = steps * groups_a_step
    rows = np.arange(min(_ROWS, channels))[:, None]
    groups = swizzle(np.arange(groups_a_step)[None, :], rows, groups_a_step)
    places = rows * groups_a_row + groups + np.arange(0, groups_a_row, groups_a_step)[:, None, None]

    def pack_piece(number: int) -> None:
        block, piece = divmod(number, pieces)
        start = piece * _ROWS
        first, last = block * channels + start, min(block * channels + min(start + _ROWS, channels), cout)
        if last <= first:
            return
        count = last - first
        numbers: NDArray[Any] = stored[first:last]
        if dtype.kind == "f":
            scaled = numbers if scale == 1.0 else numbers * np.float32(scale)
            numbers = np.empty(scaled.shape, dtype)
            np.multiply(scaled, factor, out=numbers, casting="same_kind")
        planes = np.zeros((taps, count, steps * depth), dtype)
        planes[:, :, :cin] = numbers.transpose(2, 0, 1)
        # A complex number has the size of a group: groups are copied whole.
        taken = planes.view(np.complex128).reshape(taps, -1).take(places[:, :count], axis=1, mode="clip")
        packed[block, :, :, start : start + count] = taken.view(dtype).transpose(1, 0, 2, 3)

    parallel_for(pack_piece, blocks * pieces)
    return packed


def swizzle(group: NDArray[Any], row: NDArray[Any], groups: int) -> NDArray[Any]:
    """Return the place of a group of 16 bytes in its row of 2, 4 or 8 groups."""
    shift = {8: 0, 4: 1, 2: 2}[groups]
    place: NDArray[Any] = group ^ ((row >> shift) & (groups - 1))
    return place
