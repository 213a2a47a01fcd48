"""The power of two that fp16 weights are divided by."""

import gc

import numpy as np
import pytest

from gpu_backend.cuda.launches import weight_exponent as module
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


@pytest.mark.parametrize("place", [0, 300_000, -1])
@pytest.mark.parametrize(("number", "exponent"), [(-5.0, 2), (5.0, 2), (np.nan, 0), (-np.inf, 0)])
def test_every_weight_of_a_large_layer_counts(place: int, number: float, exponent: int) -> None:
    weight = np.full((300, 120, 3, 3), 0.3, np.float32)
    weight.reshape(-1)[place] = number
    assert weight_exponent(weight) == exponent


def test_weights_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = np.full((2, 2, 3, 3), 5.0, np.float32), np.full((2, 2, 3, 3), 9.0, np.float32)
    assert [weight_exponent(weight) for weight in (first, other)] == [2, 3]
    monkeypatch.setattr(module, "_largest", None)
    assert [weight_exponent(weight) for weight in (first, other)] == [2, 3]
    assert weight_exponent(first, 0.25) == 0


@pytest.mark.parametrize("scale", [1 / 3, 0.2, -4.0, 0.0, 1e30])
def test_weights_that_are_packed_scaled_have_the_exponent_of_their_products(scale: float) -> None:
    weight = np.array([[[[1e-9, -7.5e9]]]], np.float32)
    with np.errstate(over="ignore"):
        scaled = weight * np.float32(scale)
    assert weight_exponent(weight, scale) == weight_exponent(scaled)


def test_nothing_is_kept_of_weights_that_are_gone() -> None:
    gc.collect()  # models of earlier tests
    before = len(module._known)
    weights = [np.full((1, 1, 1, 1), 2.0**power, np.float32) for power in range(9)]
    assert [weight_exponent(weight) for weight in weights] == list(range(9))
    assert len(module._known) == before + 9
    del weights
    gc.collect()
    assert len(module._known) == before
