import math

import numpy as np
import pytest

from gpu_backend.errors import RequestError
from gpu_backend.latent.truncation import label_averages, truncate

W_AVG = np.array([1.0, -2.0, 0.5], dtype=np.float32)
ROWS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def test_rows_below_the_cutoff_move_towards_the_average_and_the_others_stay() -> None:
    moved = truncate(ROWS, W_AVG, 0.5, 3)
    assert moved[:3] == pytest.approx(W_AVG + 0.5 * (ROWS[:3] - W_AVG), abs=1e-6)
    assert np.array_equal(moved[3], ROWS[3].astype(np.float64))


def test_no_cutoff_moves_all_rows() -> None:
    assert truncate(ROWS, W_AVG, 0.0) == pytest.approx(np.tile(W_AVG, (4, 1)))


def test_a_batch_is_truncated_row_by_row() -> None:
    batch = np.stack([ROWS, -ROWS])
    assert np.array_equal(truncate(batch, W_AVG, -1.0, 2)[1], truncate(-ROWS, W_AVG, -1.0, 2))


@pytest.mark.parametrize(("psi", "cutoff"), [(1.0, None), (0.3, 0)])
def test_psi_one_and_cutoff_zero_change_nothing_bit_for_bit(psi: float, cutoff: int | None) -> None:
    assert np.array_equal(truncate(ROWS, W_AVG, psi, cutoff), ROWS.astype(np.float64))


def test_the_rows_that_came_are_left_alone() -> None:
    rows = ROWS.astype(np.float64)
    truncate(rows, W_AVG, 0.0)
    assert np.array_equal(rows, ROWS)


@pytest.mark.parametrize("cutoff", [-1, 5])
def test_a_cutoff_outside_the_rows_is_refused_with_a_sentence(cutoff: int) -> None:
    with pytest.raises(RequestError, match=f"must be in 0..4 for this network, not {cutoff}"):
        truncate(ROWS, W_AVG, 0.5, cutoff)


def test_a_psi_that_is_not_finite_is_refused() -> None:
    with pytest.raises(RequestError, match="psi must be a finite number"):
        truncate(ROWS, W_AVG, math.nan)


def test_an_average_that_is_not_finite_is_refused_only_where_it_matters() -> None:
    broken = np.array([math.nan, 0.0, 0.0], dtype=np.float32)
    assert np.array_equal(truncate(ROWS, broken, 1.0), ROWS)
    with pytest.raises(RequestError, match="set psi to 1"):
        truncate(ROWS, broken, 0.7)


def test_one_average_serves_every_label() -> None:
    assert np.array_equal(label_averages(W_AVG, np.zeros((2, 0), np.float32)), np.tile(W_AVG, (2, 1)))
    assert np.array_equal(label_averages(W_AVG, np.eye(3, dtype=np.float32)), np.tile(W_AVG, (3, 1)))


def test_averages_of_classes_are_those_of_the_label_by_the_size_of_its_weights() -> None:
    averages = np.arange(12, dtype=np.float32).reshape(4, 3)
    labels = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 3], [-1, 1, 0, 0], [0, 0, 0, 0.2]], np.float32)
    found = label_averages(averages, labels)
    expected = [averages[2], averages[0], (averages[0] + 3 * averages[3]) / 4, averages[:2].mean(0), averages[3]]
    assert found == pytest.approx(np.array(expected))


def test_each_of_a_batch_may_move_towards_an_average_of_its_own() -> None:
    batch, averages = np.stack([ROWS, -ROWS]), np.stack([W_AVG, 2 * W_AVG])
    moved = truncate(batch, averages[:, None], 0.5, 3)
    assert np.array_equal(moved[0], truncate(ROWS, averages[0], 0.5, 3))
    assert np.array_equal(moved[1], truncate(-ROWS, averages[1], 0.5, 3))
