import numpy as np
import pytest

from gpu_backend.training.quality.frechet import Gaussian, frechet_distance, gaussian_of


def random_covariance(size: int, seed: int) -> np.ndarray:
    part = np.random.default_rng(seed).normal(size=(size, size))
    return part @ part.T / size


def test_a_gaussian_is_at_no_distance_from_itself() -> None:
    same = Gaussian(np.arange(6.0), random_covariance(6, 0))
    assert frechet_distance(same, same) == pytest.approx(0.0, abs=1e-9)


def test_equal_covariances_leave_the_squared_distance_of_the_means() -> None:
    covariance = random_covariance(4, 1)
    there = Gaussian(np.array([3.0, 0.0, 4.0, 0.0]), covariance)
    assert frechet_distance(Gaussian(np.zeros(4), covariance), there) == pytest.approx(25.0)


def test_diagonal_covariances_give_the_sum_of_squared_differences_of_deviations() -> None:
    left, right = np.array([1.0, 4.0, 9.0]), np.array([4.0, 1.0, 16.0])
    expected = float(((np.sqrt(left) - np.sqrt(right)) ** 2).sum())
    found = frechet_distance(Gaussian(np.zeros(3), np.diag(left)), Gaussian(np.zeros(3), np.diag(right)))
    assert found == pytest.approx(expected)


def test_covariances_that_do_not_commute_give_the_trace_of_the_root_of_their_product() -> None:
    left, right = random_covariance(5, 2), random_covariance(5, 3)
    roots = np.sqrt(np.linalg.eigvals(left @ right).astype(complex)).real.sum()
    expected = np.trace(left) + np.trace(right) - 2 * roots
    distance = frechet_distance(Gaussian(np.zeros(5), left), Gaussian(np.zeros(5), right))
    assert distance == pytest.approx(expected)
    assert distance == pytest.approx(frechet_distance(Gaussian(np.zeros(5), right), Gaussian(np.zeros(5), left)))


def test_a_singular_covariance_gives_a_finite_distance() -> None:
    flat = np.zeros((3, 3))
    assert frechet_distance(Gaussian(np.zeros(3), flat), Gaussian(np.zeros(3), np.eye(3))) == pytest.approx(3.0)


def test_samples_of_known_gaussians_come_close_to_their_distance() -> None:
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=(40000, 3)), 2.0 * rng.normal(size=(40000, 3)) + [1.0, 0.0, 0.0]
    # Means one apart, and three deviations of 1 against 2.
    assert frechet_distance(gaussian_of(left), gaussian_of(right)) == pytest.approx(1.0 + 3.0, rel=0.03)


def test_one_feature_is_no_gaussian() -> None:
    with pytest.raises(ValueError, match="at least two"):
        gaussian_of(np.zeros((1, 3)))
