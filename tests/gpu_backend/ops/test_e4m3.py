"""e4m3 in NumPy, against torch's."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from gpu_backend.ops.kernels.e4m3 import WEIGHT_SCALE, from_e4m3, rounded, to_e4m3


def test_every_number_is_that_of_torch() -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = torch.from_numpy(codes).view(torch.float8_e4m3fn).float().numpy()
    np.testing.assert_array_equal(from_e4m3(codes.view(np.int8)), expected)


def test_numbers_are_rounded_as_by_torch_and_saturate() -> None:
    generator = np.random.default_rng(0)
    numbers = generator.standard_normal(20000) * 10.0 ** generator.uniform(-4, 4, 20000)
    ties = from_e4m3(np.arange(126, dtype=np.int8)) / 2 + from_e4m3(np.arange(1, 127, dtype=np.int8)) / 2
    ends = [0.0, -0.0, 448.0, 464.0, 1e9, -np.inf, 2.0**-10, 2.0**-11, 0.0156]
    every = np.concatenate([numbers, ties, -ties, ends]).astype(np.float32)
    expected = torch.from_numpy(every).clamp(-448.0, 448.0).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    np.testing.assert_array_equal(to_e4m3(every).view(np.uint8), expected)


def test_what_is_no_number_stays_so() -> None:
    assert np.isnan(from_e4m3(to_e4m3(np.array([np.nan, -np.nan], np.float32)))).all()


def test_weights_keep_three_bits_of_fraction_over_thirteen_doublings() -> None:
    numbers = np.ldexp(np.linspace(1.0, 1.9, 14), -np.arange(14))
    weight = numbers.astype(np.float32).reshape(14, 1, 1, 1)
    error = np.abs(rounded(weight) / WEIGHT_SCALE - weight) / weight
    assert error.max() <= 2.0**-4


def test_weights_of_one_tap_are_rounded_to_nearest() -> None:
    generator = np.random.default_rng(1)
    numbers = (generator.standard_normal(20000) * 10.0 ** generator.uniform(-4, 4, 20000)).astype(np.float32)
    ties = from_e4m3(np.arange(126, dtype=np.int8)) / 2 + from_e4m3(np.arange(1, 127, dtype=np.int8)) / 2
    ends = np.array([0.0, 464.0, -1e9, np.inf, np.nan, 2.0**-10, 2.0**-11], np.float32)
    every = np.concatenate([numbers, ties, ends]).astype(np.float32)
    found = rounded((every / np.float32(WEIGHT_SCALE)).reshape(-1, 1, 1, 1)).reshape(-1)
    np.testing.assert_array_equal(found, from_e4m3(to_e4m3(every)))


def test_the_errors_of_a_weights_taps_cancel_out() -> None:
    weight = np.random.default_rng(2).uniform(-1.9, 1.9, (64, 40, 3, 3)).astype(np.float32)
    together = rounded(weight) / WEIGHT_SCALE - weight
    alone = from_e4m3(to_e4m3(weight * WEIGHT_SCALE)) / WEIGHT_SCALE - weight
    # Of a flat input, and of one that rises from left to right.
    assert np.square(together.sum(axis=(2, 3))).mean() < 0.05 * np.square(alone.sum(axis=(2, 3))).mean()
    rising = np.array([-1.0, 0.0, 1.0])
    assert np.square((together * rising).sum(axis=(2, 3))).mean() < np.square((alone * rising).sum(axis=(2, 3))).mean()
    assert np.square(together).mean() < 2.0 * np.square(alone).mean()


def test_a_layer_of_smooth_pictures_errs_several_times_less_than_with_weights_rounded_to_nearest() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(1, 24, 60, 60, generator=generator, dtype=torch.float64)
    x = functional.avg_pool2d(noise, 15, stride=1)  # neighbours have a correlation of 0.93
    weight = (torch.randn(32, 24, 3, 3, generator=generator) / 3).clamp(-1.9, 1.9).numpy()

    def error(stored: NDArray[np.float32]) -> float:
        wrong = torch.from_numpy(stored.astype(np.float64) / WEIGHT_SCALE - weight)
        return float(functional.conv2d(x, wrong).square().mean())

    assert error(rounded(weight)) < 0.2 * error(from_e4m3(to_e4m3(weight * WEIGHT_SCALE)))


def test_a_weight_that_is_no_number_spoils_its_own_taps_alone() -> None:
    weight = np.random.default_rng(3).uniform(-1.9, 1.9, (3, 4, 3, 3)).astype(np.float32)
    clean = rounded(weight)
    weight[0, 0, 1, 1], weight[2, 3, 0, 0] = np.nan, np.inf
    found = rounded(weight)
    assert np.isnan(found[0, 0]).any()
    assert found[2, 3, 0, 0] == 448.0
    same = np.ones((3, 4), bool)
    same[0, 0] = same[2, 3] = False
    np.testing.assert_array_equal(found[same], clean[same])
