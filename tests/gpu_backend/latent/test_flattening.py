"""Flat latents, with the made-up mapping network of test_rows."""

import numpy as np
from hypothesis import given, settings, strategies as st

from gpu_backend import DirectionAmount, Latent, MixSource, Point, RowRange, flat_latent
from tests.gpu_backend.latent.test_rows import NUM_WS, recipe, rows_of
from tests.helpers.strategies import examples

_POINTS = st.builds(lambda seed: Point(((seed, 1.0),)), st.integers(0, 3))
_STRENGTHS = st.lists(st.sampled_from((0.0, 0.25, 0.5, 1.0)), max_size=NUM_WS).map(tuple)
_DIRECTIONS = st.lists(
    st.builds(
        DirectionAmount,
        st.sampled_from(("sefa/0", "axis/2", "world/sun")),
        st.floats(-2.0, 2.0),
        st.sampled_from((RowRange(), RowRange(1, 3), RowRange(4))),
        st.booleans(),
    ),
    max_size=2,
).map(tuple)
_CLASSES = st.sampled_from(((), ((0, 1.0),)))
_LATENTS = st.recursive(
    st.builds(Latent, _POINTS, _CLASSES, st.just(()), _DIRECTIONS),
    lambda inner: st.builds(
        Latent, _POINTS, _CLASSES, st.lists(st.builds(MixSource, inner, _STRENGTHS), max_size=3).map(tuple), _DIRECTIONS
    ),
    max_leaves=6,
)


@settings(max_examples=examples(40), deadline=None)
@given(_LATENTS, st.sampled_from(((1.0, None), (0.6, None), (0.6, 4))))
def test_a_flat_latent_gives_the_same_rows_and_its_sources_hold_none(
    latent: Latent, cut: tuple[float, int | None]
) -> None:
    flat = flat_latent(latent)
    assert not any(source.latent.mix or source.latent.directions for source in flat.mix)
    np.testing.assert_allclose(
        rows_of((recipe(flat, *cut), 1.0)), rows_of((recipe(latent, *cut), 1.0)), rtol=1e-5, atol=1e-5
    )


def test_a_latent_that_is_flat_comes_back_as_it_is_without_unused_sources() -> None:
    used, unused = MixSource(Latent(Point(((2, 1.0),))), (0.3, 0.1)), MixSource(Latent(), (0.0, 0.0))
    assert flat_latent(Latent(mix=(used, unused))) == Latent(mix=(used,))
    latent = Latent(mix=(used,), directions=(DirectionAmount("sefa/0", 1.0),))
    assert flat_latent(latent) is latent


def test_equal_points_become_one_source() -> None:
    inner = Latent(Point(((2, 1.0),)), mix=(MixSource(Latent(), (0.5,)),))
    flat = flat_latent(Latent(mix=(MixSource(inner, (0.5, 0.5)), MixSource(inner, (0.5, 0.5)))))
    assert [source.latent for source in flat.mix] == [Latent(Point(((2, 1.0),)))]
