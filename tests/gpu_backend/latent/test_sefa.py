import numpy as np
import pytest
from hypothesis import given, strategies as st

from gpu_backend.latent.sefa import calm, sefa_directions
from tests.helpers.strategies import tries


def affines(w_dim: int, widths: tuple[int, ...], seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=(width, w_dim)).astype(np.float32) for width in widths]
    biases = [(1 + 0.1 * rng.normal(size=width)).astype(np.float32) for width in widths]
    return weights, biases


def test_directions_are_the_right_singular_vectors_of_the_stacked_affines() -> None:
    weights, biases = affines(32, (40, 24, 7))
    found = sefa_directions(weights, biases, np.zeros(32, np.float32))
    _, _, expected = np.linalg.svd(np.concatenate(weights).astype(np.float64))
    assert found.vectors.shape == (24, 32)
    assert found.names == tuple(f"sefa/{index}" for index in range(24))
    assert np.abs((found.vectors * expected[:24]).sum(axis=1)) == pytest.approx(np.ones(24), abs=1e-5)


def test_the_strongest_direction_comes_first() -> None:
    weights, biases = affines(16, (64, 64))
    found = sefa_directions(weights, biases, np.zeros(16, np.float32))
    lengths = np.linalg.norm(np.concatenate(weights) @ found.vectors.T, axis=0)
    assert np.all(np.diff(lengths) <= 1e-3)


def test_directions_are_unit_vectors_whose_largest_component_is_positive() -> None:
    weights, biases = affines(48, (50, 50))
    vectors = sefa_directions(weights, biases, np.zeros(48, np.float32)).vectors
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(24), abs=1e-6)
    assert np.all(vectors[np.arange(24), np.abs(vectors).argmax(axis=1)] > 0)


def test_a_small_w_has_as_many_directions_as_dimensions() -> None:
    weights, biases = affines(6, (9,))
    assert len(sefa_directions(weights, biases, np.zeros(6, np.float32))) == 6


def test_the_reach_changes_the_styles_by_about_half_of_their_length() -> None:
    weights, biases = affines(64, (128, 96, 64))
    w_avg = np.random.default_rng(5).normal(size=64).astype(np.float32)
    found = sefa_directions(weights, biases, w_avg)

    def styles(w: np.ndarray) -> np.ndarray:
        return np.concatenate([weight @ w / 8.0 + bias for weight, bias in zip(weights, biases, strict=True)])

    for vector, reach in zip(found.vectors, found.reach, strict=True):
        share = np.linalg.norm(styles(w_avg + reach * vector) - styles(w_avg)) / np.linalg.norm(styles(w_avg))
        assert 0.35 < share < 0.65
        assert reach == calm(reach), "a slider ends at a calm number"


def test_directions_that_do_nothing_get_a_finite_reach() -> None:
    weights = [np.diag([2.0, 1.0, 0.0, 0.0]).astype(np.float32)]
    reach = sefa_directions(weights, [np.ones(4, np.float32)], np.zeros(4, np.float32)).reach
    assert np.isfinite(reach).all()
    assert reach[0] < reach[1] < reach[3] < 12 * reach[0]
    dead = sefa_directions([np.zeros((4, 4), np.float32)], [np.ones(4, np.float32)], np.zeros(4, np.float32))
    assert dead.reach == (1.0,) * 4


def test_an_average_that_is_not_finite_leaves_the_directions_whole() -> None:
    weights, biases = affines(8, (16,))
    found = sefa_directions(weights, biases, np.full(8, np.nan, np.float32))
    assert np.isfinite(found.vectors).all()
    assert np.isfinite(found.reach).all()


@tries(40)
@given(st.floats(1e-6, 1e9))
def test_a_calm_number_is_near(value: float) -> None:
    assert 0.75 <= calm(value) / value <= 1.3


@pytest.mark.parametrize(("value", "number"), [(1.0, 1.0), (4.4, 5.0), (0.031, 0.03), (9.0, 10.0), (180.0, 200.0)])
def test_calm_numbers_are_short(value: float, number: float) -> None:
    assert calm(value) == number
