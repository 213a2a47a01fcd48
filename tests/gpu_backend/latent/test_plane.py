import math

import pytest
from hypothesis import given, strategies as st

from gpu_backend import RequestError, plane_point, plane_seed
from tests.helpers.strategies import tries

coordinates = st.floats(-1e6, 1e6, allow_nan=False)


def viewer_corners(x: float, y: float) -> dict[int, float]:
    """The official viewer's seeds and weights, written from its description."""
    corners: dict[int, float] = {}
    for i in (0, 1):
        for j in (0, 1):
            cx, cy = math.floor(x) + i, math.floor(y) + j
            weight = (1 - abs(x - cx)) * (1 - abs(y - cy))
            if weight > 0:
                corners[(cx + 100 * cy) & (2**32 - 1)] = weight
    return corners


@tries(40)
@given(coordinates, coordinates)
def test_a_place_blends_the_seeds_that_the_viewer_blends(x: float, y: float) -> None:
    seeds = dict(plane_point(x, y).seeds)
    expected = viewer_corners(x, y)
    assert {seed for seed, weight in expected.items() if weight > 1e-9} <= set(seeds)
    for seed, weight in seeds.items():
        assert weight == pytest.approx(expected.get(seed, 0.0), abs=1e-9)


@tries(40)
@given(coordinates, coordinates)
def test_weights_are_positive_and_sum_to_one(x: float, y: float) -> None:
    point = plane_point(x, y)
    assert all(weight > 0.0 for _, weight in point.seeds)
    assert sum(weight for _, weight in point.seeds) == pytest.approx(1.0, abs=1e-12)
    assert all(0 <= seed < 2**32 for seed, _ in point.seeds)


@tries(40)
@given(st.integers(-(10**7), 10**7), st.integers(-(10**5), 10**5))
def test_whole_numbers_are_one_seed_exactly(x: int, y: int) -> None:
    seed = (x + 100 * y) % 2**32
    assert plane_point(float(x), float(y)).seeds == ((seed, 1.0),)
    assert plane_seed(float(x), float(y)) == seed


def test_a_half_step_in_both_directions_has_four_equal_corners() -> None:
    assert plane_point(12.5, 3.5).seeds == ((312, 0.25), (313, 0.25), (412, 0.25), (413, 0.25))


def test_left_of_zero_the_seeds_go_around_the_end() -> None:
    assert plane_point(-0.25, 0.0).seeds == ((2**32 - 1, 0.25), (0, 0.75))


@pytest.mark.parametrize(("x", "y", "seed"), [(4.4, 0.4, 4), (4.5, 0.0, 5), (-0.6, 1.0, 99), (0.0, -0.7, 2**32 - 100)])
def test_the_nearest_seed_is_the_nearest_corner(x: float, y: float, seed: int) -> None:
    assert plane_seed(x, y) == seed


@pytest.mark.parametrize("place", [(math.nan, 0.0), (0.0, math.inf), (-math.inf, 0.0)])
def test_a_place_that_is_not_finite_is_refused_with_a_sentence(place: tuple[float, float]) -> None:
    with pytest.raises(RequestError, match="finite coordinates"):
        plane_point(*place)
    with pytest.raises(RequestError, match="finite coordinates"):
        plane_seed(*place)
