import math
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import DirectionAmount, RequestError, RowRange
from gpu_backend.latent.directions import Directions, add_direction, covers_all_rows

DIRECTIONS = Directions(
    names=("sefa/0", "sefa/1"),
    vectors=np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]], dtype=np.float32),
    reach=(5.0, 5.0),
)


def pushed(item: DirectionAmount) -> np.ndarray:
    rows = np.zeros((5, 3))
    add_direction(rows, item, DIRECTIONS, len(rows))
    return rows


def test_a_direction_is_added_to_every_row_by_default() -> None:
    assert pushed(DirectionAmount("sefa/0", -2.0)) == pytest.approx(np.tile([-1.2, -1.6, 0.0], (5, 1)), abs=1e-6)


def test_both_ends_of_a_range_are_included() -> None:
    touched = pushed(DirectionAmount("sefa/1", 3.0, RowRange(1, 3)))[:, 2]
    assert touched.tolist() == [0.0, 3.0, 3.0, 3.0, 0.0]


def test_an_open_range_goes_to_the_last_row() -> None:
    assert pushed(DirectionAmount("sefa/1", 1.0, RowRange(3)))[:, 2].tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["sefa/0", "axis/1"])
def test_one_row_may_stand_for_all_that_a_direction_covers(name: str) -> None:
    for rows in (RowRange(), RowRange(0, 4)):
        item = DirectionAmount(name, 1.7, rows)
        assert covers_all_rows(item, DIRECTIONS, 5)
        one = np.zeros((1, 3))
        add_direction(one, item, DIRECTIONS, 5)
        assert np.array_equal(np.repeat(one, 5, axis=0), pushed(item))
    assert not covers_all_rows(DirectionAmount(name, 1.7, RowRange(0, 3)), DIRECTIONS, 5)
    assert not covers_all_rows(DirectionAmount(name, 1.7, RowRange(1)), DIRECTIONS, 5)


@pytest.mark.parametrize(
    ("rows", "moved"),
    [(RowRange(), [1, 2]), (RowRange(2), [2]), (RowRange(0, 1), [1]), (RowRange(3), [])],
)
def test_a_direction_within_its_own_rows_moves_those_that_its_range_has_of_them(
    rows: RowRange, moved: list[int]
) -> None:
    own = replace(DIRECTIONS, rows=(RowRange(1, 2),) * len(DIRECTIONS))
    item = DirectionAmount("sefa/1", 1.0, rows, within_own=True)
    pushed_rows = np.zeros((5, 3))
    add_direction(pushed_rows, item, own, 5)
    assert np.flatnonzero(pushed_rows[:, 2]).tolist() == moved
    assert not covers_all_rows(item, own, 5)


def test_an_axis_pushes_one_dimension_of_w() -> None:
    rows = pushed(DirectionAmount("axis/2", 0.5, RowRange(0, 0)))
    assert rows[0].tolist() == [0.0, 0.0, 0.5]
    assert not rows[1:].any()


def test_amounts_add_in_w() -> None:
    rows = np.zeros((5, 3))
    for item in (DirectionAmount("sefa/0", 1.0), DirectionAmount("axis/0", 0.4), DirectionAmount("sefa/0", 0.5)):
        add_direction(rows, item, DIRECTIONS, len(rows))
    assert rows[0] == pytest.approx([0.6 * 1.5 + 0.4, 0.8 * 1.5, 0.0], abs=1e-6)


@pytest.mark.parametrize("name", ["sefa/2", "sefa/", "", "pca/0", "sefa/00"])
def test_an_unknown_direction_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(RequestError, match=r"one of sefa/0\.\.sefa/1 or axis/0\.\.axis/2, not"):
        pushed(DirectionAmount(name, 1.0))


@pytest.mark.parametrize("name", ["axis/3", "axis/-1", "axis/", "axis/1.0", "axis/²", "axis/٣", "axis/" + "9" * 5000])
def test_an_axis_outside_w_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match=r"one of axis/0\.\.axis/2 for this network") as caught:
        pushed(DirectionAmount(name, 1.0))
    assert len(caught.value.sentence) < 150


@pytest.mark.parametrize("rows", [RowRange(0, 5), RowRange(5), RowRange(3, 2), RowRange(-1, 2)])
def test_rows_outside_the_network_are_refused(rows: RowRange) -> None:
    with pytest.raises(RequestError, match=r"must be in 0\.\.4 for this network"):
        pushed(DirectionAmount("sefa/0", 1.0, rows))


@pytest.mark.parametrize("amount", [math.nan, -math.inf])
def test_an_amount_that_is_not_finite_is_refused(amount: float) -> None:
    with pytest.raises(RequestError, match="must be a finite number"):
        pushed(DirectionAmount("sefa/0", amount))
