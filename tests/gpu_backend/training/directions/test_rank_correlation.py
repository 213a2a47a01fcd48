import numpy as np
import pytest

from gpu_backend.training.directions.rank_correlation import spearman


def test_any_monotonic_curve_correlates_fully() -> None:
    steps = np.linspace(-2, 2, 9)
    assert spearman(steps, np.exp(steps)) == pytest.approx(1.0)
    assert spearman(steps, -(steps**3)) == pytest.approx(-1.0)


def test_it_is_one_less_six_times_the_squared_differences_of_ranks() -> None:
    right = np.array([2.0, 1.0, 4.0, 3.0, 5.0])
    assert spearman(np.arange(5.0), right) == pytest.approx(1 - 6 * 4 / (5 * 24))


def test_equal_values_share_a_rank() -> None:
    left, right = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 2.0, 3.0])
    assert spearman(left, right) == pytest.approx(np.corrcoef([1, 2, 3, 4], [1, 2.5, 2.5, 4])[0, 1])


def test_a_constant_correlates_with_nothing() -> None:
    assert spearman(np.arange(4.0), np.ones(4)) == 0.0
