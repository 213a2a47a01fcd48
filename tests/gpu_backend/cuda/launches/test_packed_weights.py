"""Weights in the order in which blocks of a convolution read them, bit for bit."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend.cuda.launches import shared_work
from gpu_backend.cuda.launches.packed_weights import (
    from_bf16,
    lane_order,
    pack_reordered,
    pack_weight,
    pack_weight_bf16x3,
    pack_weight_fp8,
    pack_weight_tf32,
    swizzle,
    to_bf16,
    to_tf32,
)
from gpu_backend.ops.kernels.e4m3 import rounded, to_e4m3


def packed_plainly(numbers: NDArray[Any], channels: int, depth: int) -> NDArray[Any]:
    """Numbers (out, in, k, k) of any type by the order's definition, in single steps."""
    cout, cin, height, width = numbers.shape
    blocks, steps, taps = -(-cout // channels), -(-cin // depth), height * width
    padded = np.zeros((blocks * channels, steps * depth, taps), numbers.dtype)
    padded[:cout, :cin] = numbers.reshape(cout, cin, taps)
    size = 16 // numbers.itemsize
    groups = padded.reshape(blocks, channels, steps, depth // size, size, taps)
    packed = np.empty((blocks, steps, taps, channels, depth // size, size), numbers.dtype)
    for row in range(channels):
        for group in range(depth // size):
            place = swizzle(np.array(group), np.array(row), depth // size)
            packed[:, :, :, row, place] = groups[:, row, :, group].transpose(0, 1, 3, 2)
    return packed.reshape(blocks, steps, taps, channels, depth)


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("scale", [1.0, 0.0417])
@pytest.mark.parametrize(
    ("shape", "channels", "depth", "exponent"),
    [
        ((128, 128, 3, 3), 64, 64, 3),
        ((130, 70, 3, 3), 96, 32, -9),
        ((20, 9, 1, 1), 16, 16, 0),
        ((3, 5, 3, 3), 8, 64, 1),
        ((41, 33, 3, 3), 24, 16, -20),
    ],
)
def test_weights_are_packed_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int, int, int],
    channels: int,
    depth: int,
    exponent: int,
    scale: float,
    cores: int,
) -> None:
    monkeypatch.setattr(shared_work, "core_count", lambda: cores)
    weight = np.random.default_rng(0).standard_normal(shape, np.float32) * np.float32(2.0**exponent / 4)
    weight[0, 0, 0, 0] = 2.0 ** (exponent - 24)  # as small as fp16 gets
    divided = np.ldexp(weight * np.float32(scale), -exponent)
    expected = packed_plainly(divided.astype(np.float16), channels, depth)
    packed = pack_weight(weight, channels, depth, exponent, scale)
    assert packed.shape == expected.shape
    assert np.array_equal(packed.view(np.uint16), expected.view(np.uint16))
    assert np.count_nonzero(packed) > 0


@pytest.mark.parametrize(("shape", "channels", "depth"), [((130, 70, 3, 3), 96, 64), ((20, 41, 1, 1), 16, 32)])
def test_weights_of_e4m3_are_those_of_the_plain_kernels(
    shape: tuple[int, int, int, int], channels: int, depth: int
) -> None:
    weight = np.random.default_rng(4).standard_normal(shape, np.float32)
    packed = pack_weight_fp8(weight, channels, depth, 2, 0.3)
    assert packed.dtype == np.int8
    plain = rounded(weight * np.float32(0.3 / 4))
    assert np.array_equal(packed, packed_plainly(to_e4m3(plain), channels, depth))


@pytest.mark.parametrize(("shape", "channels", "depth"), [((130, 70, 3, 3), 96, 16), ((20, 9, 1, 1), 16, 8)])
def test_weights_of_tf32_lie_as_two_halves_each_would(
    shape: tuple[int, int, int, int], channels: int, depth: int
) -> None:
    weight = np.random.default_rng(1).standard_normal(shape, np.float32)
    packed = pack_weight_tf32(weight, channels, depth, 0, 0.5)
    assert packed.dtype == np.float32
    cout, cin = shape[:2]
    halves = np.zeros((cout, 2 * cin, *shape[2:]), np.uint16)  # the two halves of each number as channels side by side
    bits = np.ascontiguousarray(to_tf32(weight * np.float32(0.5)))
    halves[:, 0::2], halves[:, 1::2] = bits.view(np.uint32) & 0xFFFF, bits.view(np.uint32) >> 16
    # Small integers in fp16 stand for the halves, of which each has one place.
    low = pack_weight((halves & 0xFF).astype(np.float32), channels, 2 * depth, 0).astype(np.uint16)
    high = pack_weight((halves >> 8).astype(np.float32), channels, 2 * depth, 0).astype(np.uint16)
    assert (packed.view(np.uint16) == low + 256 * high).all()


def test_numbers_are_rounded_to_ten_bits_of_fraction_ties_away_from_zero() -> None:
    unit = np.float32(2.0**-10)
    given = np.array(
        [1 + unit / 2, -1 - unit / 2, 1 + unit * np.float32(0.499), 3e38, 0.0, np.inf, -np.inf, np.nan], np.float32
    )
    found = to_tf32(given)
    assert found[:3].tolist() == [1 + unit, -1 - unit, 1.0]
    assert found[3] == pytest.approx(3e38, rel=2**-11)
    assert (found[4:7] == given[4:7]).all()
    assert np.isnan(found[7])


@pytest.mark.parametrize(
    ("shape", "channels", "depth"), [((130, 70, 3, 3), 96, 16), ((20, 41, 1, 1), 16, 32), ((9, 16, 3, 3), 16, 16)]
)
def test_weights_of_bf16x3_are_high_and_low_parts_of_sixteen_channels_in_the_order_of_activations(
    shape: tuple[int, int, int, int], channels: int, depth: int
) -> None:
    weight = np.random.default_rng(2).standard_normal(shape, np.float32)
    packed = pack_weight_bf16x3(weight, channels, depth, 1, 0.5)
    cout, cin, taps = shape[0], shape[1], shape[2] * shape[3]
    blocks, steps = -(-cout // channels), -(-cin // depth)
    assert packed.shape == (blocks, steps, taps, channels, 2 * depth)
    groups = depth // 4  # of 16 bytes in a row
    expected = np.zeros((blocks * channels, steps * depth, taps), np.float32)
    expected[:cout, :cin] = weight.reshape(cout, cin, taps) / 4
    found = np.full_like(expected, np.nan)
    numbers = from_bf16(packed).reshape(blocks, steps, taps, channels, groups, 8)
    for row in range(channels):
        at = np.array(row)
        for step in range(steps):
            for channel in range(depth):
                product, inner = divmod(channel, 16)
                group, place = divmod(inner, 8)  # the fourth after a channel lies beside it
                place = place % 4 * 2 + place // 4
                high, low = (
                    numbers[:, step, :, row, swizzle(np.array(4 * product + 2 * part + group), at, groups), place]
                    for part in (0, 1)
                )
                assert (np.abs(low) <= np.abs(high) * 2.0**-7).all()
                found[row::channels, step * depth + channel] = high + low
    assert (np.abs(found - expected) <= np.abs(expected) * 2.0**-16).all()


def test_bf16_rounds_to_nearest_even() -> None:
    unit = np.float32(2.0**-7)
    given = np.array(
        [1 + unit / 2, 1 + unit * 1.5, -1 - unit * np.float32(0.51), 0.0, np.inf, -np.inf, np.nan, 3e38], np.float32
    )
    found = from_bf16(to_bf16(given))
    assert found[:6].tolist() == [1.0, 1 + 2 * unit, -1 - unit, 0.0, np.inf, -np.inf]
    assert np.isnan(found[6])
    assert found[7] == pytest.approx(3e38, rel=2**-8)
    assert np.isnan(from_bf16(to_bf16(np.array([0x7FFFFFFF], np.uint32).view(np.float32)))).all()


def test_weights_of_bf16x3_that_are_not_finite_have_no_low_part() -> None:
    packed = pack_weight_bf16x3(np.full((16, 16, 1, 1), np.inf, np.float32), 16, 16, 0)
    numbers = from_bf16(packed)
    assert sorted(set(numbers.ravel().tolist())) == [0.0, np.inf]


@pytest.mark.parametrize("groups", [2, 4, 8])
def test_groups_lie_where_a_copy_by_the_tensor_memory_accelerator_puts_them(groups: int) -> None:
    row, group = np.divmod(np.arange(32 * groups), groups)
    address = 16 * (row * groups + group)
    # CUDA's swizzles of 32, 64 and 128 bytes: address bits from 4 on are XORed with those from 7 on.
    swizzled = address ^ ((address >> 3) & (16 * (groups - 1)))
    assert np.array_equal(16 * (row * groups + swizzle(group, row, groups)), swizzled)


@pytest.mark.parametrize("is_fp8", [False, True])
def test_reordered_weights_are_those_of_a_layer_whose_channels_and_taps_lie_in_that_order(*, is_fp8: bool) -> None:
    weight = np.random.default_rng(3).standard_normal((40, 16, 3, 3), np.float32)  # the second block has 8 channels
    order, taps = lane_order(32, 2), (0, 1, 3, 4, 8, 6, 7, 2, 5)
    numbers = (
        rounded(weight / np.float32(8)) if is_fp8 else weight
    )  # rounded before: taps together, in the layer's own order
    whole = np.concatenate((numbers, np.zeros((24, 16, 3, 3), np.float32))).reshape(64, 16, 9)
    expected = np.stack([whole[32 * (n // 32) + order[n % 32]][:, list(taps)] for n in range(64)])
    packed = pack_reordered(weight, order, taps, 32, 2, 0.5, is_fp8=is_fp8)
    layer = expected.reshape(64, 16, 3, 3)
    wanted = packed_plainly(to_e4m3(layer), 32, 32) if is_fp8 else pack_weight(layer, 32, 32, 2, 0.5)
    assert np.array_equal(packed, wanted)


@pytest.mark.parametrize("fragments", [1, 2, 4])
def test_the_channels_that_a_lane_stores_at_once_are_neighbours(fragments: int) -> None:
    order = lane_order(64, fragments)
    assert sorted(order) == list(range(64))
    for quarter in range(4):
        for first in range(0, 8, fragments):
            held = [8 * n + 2 * quarter + part for n in range(first, first + fragments) for part in (0, 1)]
            stored = order[held]
            assert list(stored) == list(range(stored[0], stored[0] + 2 * fragments))
