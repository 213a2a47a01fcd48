import numpy as np
import pytest

from gpu_backend.training.quality.precision_recall import precision_recall

RNG = np.random.default_rng(0)
CLOUD = RNG.normal(size=(400, 4))


def by_hand(real: np.ndarray, made: np.ndarray, k: int) -> float:
    """Share of `made` within the balls of `real`, one by one."""
    radii = [np.sort(np.linalg.norm(real - item, axis=1))[k] for item in real]
    inside = [any(np.linalg.norm(item - centre) <= r for centre, r in zip(real, radii, strict=True)) for item in made]
    return float(np.mean(inside))


def test_it_is_what_one_counts_by_hand() -> None:
    real, made = CLOUD[:60], CLOUD[60:100] * 1.3
    found = precision_recall(real, made, 3)
    assert found.precision == pytest.approx(by_hand(real, made, 3))
    assert found.recall == pytest.approx(by_hand(made, real, 3))


def test_the_same_set_is_precise_and_complete() -> None:
    assert precision_recall(CLOUD, CLOUD.copy()) == (1.0, 1.0)


def test_another_place_is_neither() -> None:
    assert precision_recall(CLOUD, CLOUD + 100.0) == (0.0, 0.0)


def test_a_part_is_precise_but_not_complete() -> None:
    real = np.concatenate([CLOUD, CLOUD + 50.0])
    found = precision_recall(real, CLOUD[:200] + 0.01)
    assert found.precision > 0.95
    assert found.recall < 0.55


@pytest.mark.parametrize("chunk", [1, 7, 400, 1000])
def test_the_size_of_chunks_changes_nothing(chunk: int) -> None:
    made = CLOUD[::2] + 0.2
    assert precision_recall(CLOUD, made, chunk=chunk) == precision_recall(CLOUD, made)


def test_more_features_than_neighbours_are_needed() -> None:
    with pytest.raises(ValueError, match="more than 3"):
        precision_recall(CLOUD[:3], CLOUD)
