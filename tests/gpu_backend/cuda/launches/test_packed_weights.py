"""Weights in the order in which blocks of a convolution read them, bit for bit."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend.cuda.launches import shared_work
from gpu_backend.cuda.launches.packed_weights import pack_weight, pack_weight_tf32, swizzle, to_tf32


def packed_plainly(weight: NDArray[np.float32], channels: int, depth: int, exponent: int) -> NDArray[np.float16]:
    """The same by the order's definition, in single steps."""
    cout, cin, height, width = weight.shape
    blocks, steps, taps = -(-cout // channels), -(-cin // depth), height * width
    padded = np.zeros((blocks * channels, steps * depth, taps), np.float32)
    padded[:cout, :cin] = np.ldexp(weight, -exponent).reshape(cout, cin, taps)
    halves = padded.astype(np.float16).reshape(blocks, channels, steps, depth // 8, 8, taps)
    packed = np.empty((blocks, steps, taps, channels, depth // 8, 8), np.float16)
    for row in range(channels):
        for group in range(depth // 8):
            place = swizzle(np.array(group), np.array(row), depth // 8)
            packed[:, :, :, row, place] = halves[:, row, :, group].transpose(0, 1, 3, 2)
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
    expected = packed_plainly(weight * np.float32(scale), channels, depth, exponent)
    packed = pack_weight(weight, channels, depth, exponent, scale)
    assert packed.shape == expected.shape
    assert np.array_equal(packed.view(np.uint16), expected.view(np.uint16))
    assert np.count_nonzero(packed) > 0


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
