"""e4m3 in NumPy, against torch's."""

from __future__ import annotations

import numpy as np
import torch

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
    weight = np.ldexp(np.linspace(1.0, 1.9, 14, dtype=np.float32), -np.arange(14))
    error = np.abs(rounded(weight) / WEIGHT_SCALE - weight) / weight
    assert error.max() <= 2.0**-4
