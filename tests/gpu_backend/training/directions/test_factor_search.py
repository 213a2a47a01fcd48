"""Directions of factors in a model whose truth is known."""

import numpy as np
import pytest

from gpu_backend.model.named_directions import is_direction_name
from gpu_backend.recipe import RowRange
from gpu_backend.training.directions.factor_search import (
    FactorDirection,
    FactorSearch,
    direction_name,
    find_factor_directions,
    named,
)
from gpu_backend.training.directions.probe import Probe, effect_of, pushed
from gpu_backend.training.directions.row_ranges import candidate_ranges, row_groups
from tests.helpers.linear_model import LinearModel, read_factors

SEARCH = FactorSearch(latents=400, probes=24, measured=24)


@pytest.fixture(scope="module")
def found() -> dict[str, FactorDirection]:
    model = LinearModel()
    directions = find_factor_directions(model, Probe(model, read_factors), model.factors, SEARCH)
    return {item.factor: item for item in directions}


def test_every_factor_that_can_be_moved_gets_a_direction(found: dict[str, FactorDirection]) -> None:
    assert list(found) == ["sun", "haze", "water"]


def test_each_moves_its_own_factor_monotonically_and_most(found: dict[str, FactorDirection]) -> None:
    for item in found.values():
        assert item.effect.spearman > 0.98
        assert item.effect.selectivity > 3.0


def test_rows_are_those_that_the_factor_comes_from(found: dict[str, FactorDirection]) -> None:
    assert found["sun"].rows.last is not None
    assert found["sun"].rows.last <= 3
    assert found["haze"].rows.first >= 4


def test_one_unit_is_one_standard_deviation(found: dict[str, FactorDirection]) -> None:
    model = LinearModel()
    rows = model.map(np.random.default_rng(9).normal(size=(64, 12)), psi=0.7)
    for own, item in enumerate(found.values()):
        up, down = (read_factors(model.synthesize(pushed(rows, way * item.vector, item.rows))) for way in (1.0, -1.0))
        assert (up - down)[:, own].mean() / 2 == pytest.approx(1.0, rel=0.2)


def test_a_slider_ends_where_its_factor_stops_following(found: dict[str, FactorDirection]) -> None:
    for item in found.values():
        assert -4.0 <= item.low <= -1.0
        assert 1.0 <= item.high <= 4.0
    assert found["water"].high == 4.0, "it never saturates"
    assert found["sun"].high < 4.0, "it does"


def test_it_is_the_same_each_time(found: dict[str, FactorDirection]) -> None:
    model = LinearModel()
    again = find_factor_directions(model, Probe(model, read_factors), model.factors, SEARCH, wanted=["haze"])
    assert len(again) == 1
    assert np.array_equal(again[0].vector, found["haze"].vector)
    assert again[0].effect == found["haze"].effect


def test_a_factor_that_nothing_moves_is_named_and_left_out() -> None:
    model = LinearModel()
    notes: list[str] = []

    def read(pictures: np.ndarray) -> np.ndarray:
        return np.concatenate([read_factors(pictures), np.zeros((len(pictures), 1))], axis=1)

    search = FactorSearch(latents=100, probes=4, measured=4)
    names = (*model.factors, "moon")
    directions = find_factor_directions(model, Probe(model, read), names, search, ["moon"], notes.append)
    assert directions == []
    assert "Nothing moves moon; it gets no direction" in notes


def test_they_are_named_by_their_set_with_what_was_measured(found: dict[str, FactorDirection]) -> None:
    directions = named(list(found.values()), "world")
    assert directions.names == ("world/sun", "world/haze", "world/water")
    assert directions.vectors.dtype == np.float32
    assert set(directions.measures[0]) == {"spearman", "selectivity", "mean selectivity", "shift", "explained"}
    low = [centre - reach for centre, reach in zip(directions.centre, directions.reach, strict=True)]
    assert low == pytest.approx([item.low for item in found.values()])


def test_selectivity_counts_what_goes_up_here_and_down_there() -> None:
    values = np.zeros((2, 2, 2))
    values[1, :, 0] = 2.0
    values[1, :, 1] = [1.0, -1.0]
    effect = effect_of(values, (0.0, 1.0), 0)
    assert effect.selectivity == 2.0
    assert effect.mean_selectivity == float("inf")
    assert effect.shift == 2.0


def test_only_the_rows_of_the_range_are_pushed() -> None:
    rows = np.zeros((1, 4, 2), np.float32)
    assert pushed(rows, np.array([1.0, 2.0]), RowRange(1, 2))[0, :, 1].tolist() == [0.0, 2.0, 2.0, 0.0]
    assert pushed(rows, np.array([1.0, 2.0]), RowRange(3))[0, :, 0].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert not rows.any()


@pytest.mark.parametrize(("num_ws", "count"), [(2, 3), (8, 10), (14, 10), (18, 10)])
def test_ranges_to_choose_from_are_neighbouring_quarters(num_ws: int, count: int) -> None:
    ranges = candidate_ranges(num_ws)
    assert ranges[0] == RowRange(0, num_ws - 1)
    assert len(set(ranges)) == len(ranges) == count
    assert all(item.last is not None and 0 <= item.first <= item.last < num_ws for item in ranges)


def test_groups_of_rows_are_coarse_middle_and_fine() -> None:
    sides = (4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 128, 256, 256, 256)
    assert row_groups(sides) == {"coarse": RowRange(0, 4), "middle": RowRange(5, 8), "fine": RowRange(9, 13)}
    assert row_groups((4, 8, 8)) == {"coarse": RowRange(0, 2)}


def test_a_name_that_is_cut_at_a_space_may_name_a_direction() -> None:
    name = direction_name("labels", "a" * 39 + " and so on")
    assert name == "labels/" + "a" * 39
    assert is_direction_name(name)
