import numpy as np
import pytest

from gpu_backend.training.directions.ridge import combined, pushes, regress
from gpu_backend.training.quality.generated import rows_of_seeds
from tests.helpers.linear_model import LinearModel

RNG = np.random.default_rng(1)
W = RNG.normal(size=(600, 10)) @ (np.eye(10) + 0.3 * RNG.normal(size=(10, 10)))
TRUE = RNG.normal(size=(10, 3))


def test_linear_factors_are_found_and_explained() -> None:
    found = regress(W, W @ TRUE + 2.0, ridge=1e-9)
    assert found.slopes == pytest.approx(TRUE, abs=1e-5)
    assert found.explained == pytest.approx(np.ones(3), abs=1e-6)


def test_noise_is_not_explained() -> None:
    assert np.all(np.abs(regress(W, RNG.normal(size=(600, 2))).explained) < 0.2)


def test_each_push_moves_its_own_factor_by_one_and_no_other() -> None:
    found = pushes(regress(W, W @ TRUE, ridge=1e-9))
    assert found @ TRUE == pytest.approx(np.eye(3), abs=1e-5)


def test_a_push_is_the_shortest_as_w_spreads() -> None:
    found = regress(W, W @ TRUE, ridge=1e-9)
    push, inverse = pushes(found)[0], np.linalg.inv(found.covariance)
    for _ in range(20):
        aside = RNG.normal(size=10)
        aside -= TRUE @ np.linalg.lstsq(TRUE, aside, rcond=None)[0]  # moves no factor
        other = push + 0.3 * aside
        assert other @ inverse @ other >= push @ inverse @ push


def test_factors_that_say_the_same_do_not_blow_up() -> None:
    twice = np.concatenate([W @ TRUE, W @ TRUE[:, :1]], axis=1)
    assert np.linalg.norm(pushes(regress(W, twice))) < 100.0


def test_pushes_are_combined_against_measured_crosstalk() -> None:
    responses = np.eye(3) + 0.3 * RNG.normal(size=(3, 3))
    moves = combined(responses, 1, ridge=1e-9) @ responses
    assert moves == pytest.approx([0.0, 1.0, 0.0], abs=1e-5)


def test_a_push_that_does_nothing_gets_no_weight() -> None:
    weights = combined(np.diag([1.0, 1.0, 0.0]), 0)
    assert weights == pytest.approx([1.0, 0.0, 0.0], abs=0.02)


def test_a_push_that_does_next_to_nothing_is_not_blown_up() -> None:
    (_, weak) = combined(np.diag([1.0, 1e-3]), 1)
    assert 0.0 < weak < 1.0


def test_too_few_latents_are_refused() -> None:
    with pytest.raises(ValueError, match="ten latents"):
        regress(W[:9], W[:9])


def test_the_rows_of_seeds_are_those_that_requests_have() -> None:
    model = LinearModel()
    rows = rows_of_seeds(model, range(3), 0.7)
    assert rows.shape == (3, 8, 12)
    again = rows_of_seeds(model, [2], 0.7)
    assert np.array_equal(rows[2:], again)
