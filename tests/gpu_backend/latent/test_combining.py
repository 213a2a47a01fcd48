"""Weighted sums of latents, with the made-up mapping network of test_rows."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gpu_backend import Latent, MixSource, Point, RequestError, StoredLatent, combined_latent
from tests.gpu_backend.latent.test_flattening import _LATENTS as LATENTS
from tests.gpu_backend.latent.test_rows import NUM_WS, W_DIM, recipe, rows_of
from tests.helpers.strategies import examples

_SHARES = st.lists(st.sampled_from((0.0, 0.2, 0.5, 1.0)), min_size=NUM_WS, max_size=NUM_WS)


def seed(number: int) -> Latent:
    return Latent(Point(((number, 1.0),)))


@settings(max_examples=examples(30), deadline=None)
@given(LATENTS, LATENTS, _SHARES, st.sampled_from(((1.0, None), (0.6, None), (0.6, 4))))
def test_the_combination_has_the_weighted_sum_of_the_rows(
    first: Latent, second: Latent, shares: list[float], cut: tuple[float, int | None]
) -> None:
    combined = combined_latent([(first, [1.0 - share for share in shares]), (second, shares)])
    assert not any(source.latent.mix or source.latent.directions for source in combined.mix)
    weights = np.array(shares)[:, None]
    expected = (1.0 - weights) * rows_of((recipe(first, *cut), 1.0)) + weights * rows_of((recipe(second, *cut), 1.0))
    np.testing.assert_allclose(rows_of((recipe(combined, *cut), 1.0)), expected, rtol=2e-4, atol=2e-4)


def test_seeds_weighted_alike_in_all_rows_are_one_point() -> None:
    combined = combined_latent([(seed(3), [0.75] * NUM_WS), (seed(5), [0.25] * NUM_WS)])
    assert combined == Latent(Point(((3, 0.75), (5, 0.25))))


def test_a_recipe_stays_small_however_often_it_is_combined() -> None:
    latent = seed(0)
    for number in range(1, 200):
        shares = [0.3 if row % 2 else 0.0 for row in range(NUM_WS)]
        latent = combined_latent([(latent, [1.0 - share for share in shares]), (seed(number), shares)])
    assert len(latent.mix) == 1
    points = [latent.point, *(source.latent.point for source in latent.mix)]
    assert sum(len(point.seeds) for point in points if isinstance(point, Point)) < 60


def test_seeds_may_be_subtracted_as_long_as_the_weights_sum_to_one() -> None:
    combined = combined_latent([(seed(1), [1.0] * NUM_WS), (seed(2), [0.5] * NUM_WS), (seed(3), [-0.5] * NUM_WS)])
    assert combined.point == Point(((1, 1.0), (2, 0.5), (3, -0.5)))


def test_a_stored_latent_can_be_mixed_in_but_not_subtracted() -> None:
    stored = Latent(StoredLatent(np.ones((1, W_DIM), "<f4").tobytes(), 1, W_DIM))
    half = [0.5] * NUM_WS
    combined = combined_latent([(seed(1), half), (stored, half)])
    expected = 0.5 * rows_of((recipe(seed(1)), 1.0)) + 0.5
    np.testing.assert_allclose(rows_of((recipe(combined), 1.0)), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(RequestError, match="cannot be subtracted"):
        combined_latent([(seed(1), [1.5] * NUM_WS), (stored, [-0.5] * NUM_WS)])


def test_seeds_that_cancel_each_other_or_no_latent_at_all_are_refused() -> None:
    stored = Latent(StoredLatent(np.ones((1, W_DIM), "<f4").tobytes(), 1, W_DIM))
    one = [1.0] * NUM_WS
    with pytest.raises(RequestError, match="cancel"):
        combined_latent([(stored, one), (seed(1), one), (seed(2), [-1.0] * NUM_WS)])
    with pytest.raises(RequestError, match="at least one"):
        combined_latent([])
    with pytest.raises(RequestError, match="weights for its rows"):
        combined_latent([(seed(1), [])])


def test_a_source_that_nothing_uses_is_dropped() -> None:
    unused = Latent(Point(((1, 1.0),)), mix=(MixSource(seed(2), (0.0,) * NUM_WS),))
    combined = combined_latent([(unused, [0.5] * NUM_WS), (seed(1), [0.5] * NUM_WS)])
    assert combined == Latent(Point(((1, 1.0),)))
