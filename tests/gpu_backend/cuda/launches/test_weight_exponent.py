"""The power of two that fp16 weights are divided by."""

import numpy as np
import pytest

from gpu_backend.cuda.launches.weight_exponent import weight_exponent


@pytest.mark.parametrize("largest", [1.0, 1.999, 2.0, 0.3, 2.0**-40, 7e20, 65504.0])
def test_the_largest_magnitude_comes_to_lie_between_one_and_two(largest: float) -> None:
    weight = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 5, 3, 3)).astype(np.float32) * np.float32(largest)
    weight[1, 2, 0, 1] = -largest
    scaled = np.abs(weight).max() * 2.0 ** -weight_exponent(weight)
    assert 1 <= scaled < 2


def test_weights_that_have_no_magnitude_have_exponent_zero() -> None:
    assert weight_exponent(np.zeros((2, 2, 3, 3), np.float32)) == 0
    assert weight_exponent(np.full((1, 1, 1, 1), np.inf, np.float32)) == 0
    assert weight_exponent(np.full((1, 1, 1, 1), np.nan, np.float32)) == 0


def test_the_exponent_stays_where_two_to_it_is_a_number() -> None:
    assert weight_exponent(np.full((1, 1, 1, 1), 1e38, np.float32)) == 100
    assert weight_exponent(np.full((1, 1, 1, 1), 1e-38, np.float32)) == -100
