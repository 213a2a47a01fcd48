"""Recipe -> rows, with a made-up mapping network."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import (
    DirectionAmount,
    Latent,
    MixSource,
    Point,
    Recipe,
    RequestError,
    RowRange,
    Truncation,
    path_blends,
    plane_point,
    stored_latent,
)
from gpu_backend.latent.directions import Directions
from gpu_backend.latent.rows import Anchor, LatentSpace, Mapped, anchors_of, blend_rows

NUM_WS, W_DIM = 6, 4
W_AVG = np.array([0.5, -0.5, 0.25, 1.0], dtype=np.float32)
VECTORS = np.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]], dtype=np.float32)
OWN_ROWS = RowRange(), RowRange(1, 2)
SPACE = LatentSpace(NUM_WS, W_AVG, Directions(("sefa/0", "world/sun"), VECTORS, (5.0, 5.0), OWN_ROWS))


def fake_map(anchor: Anchor) -> np.ndarray:
    """A mapping network that no sum commutes with."""
    z = sum(weight * np.random.default_rng(seed).normal(size=W_DIM) for seed, weight in anchor.seeds)
    shift = sum(weight * (index + 1) for index, weight in anchor.classes)
    return np.asarray(np.tanh(z) + shift, dtype=np.float32)


def rows_of(*blend: tuple[Recipe, float]) -> np.ndarray:
    return blend_rows(blend, SPACE, Mapped({anchor: fake_map(anchor) for anchor in anchors_of(blend)}))


def w(seed: int, *classes: tuple[int, float]) -> np.ndarray:
    return fake_map(Anchor(((seed, 1.0),), classes))


def recipe(latent: Latent, psi: float = 1.0, cutoff: int | None = None) -> Recipe:
    return Recipe(latent, Truncation(psi, cutoff))


def test_one_seed_is_its_w_in_every_row_bit_for_bit() -> None:
    rows = rows_of((recipe(Latent(Point(((7, 1.0),)))), 1.0))
    assert rows.dtype == np.float32
    assert np.array_equal(rows, np.tile(w(7), (NUM_WS, 1)))


def test_the_plane_is_blended_by_the_viewers_formula() -> None:
    psi, cutoff = 0.6, 4
    point = plane_point(3.25, 1.5)
    found = rows_of((recipe(Latent(point), psi, cutoff), 1.0))

    expected = np.tile(W_AVG.astype(np.float64), (NUM_WS, 1))
    for seed, weight in point.seeds:
        ws = np.tile(w(seed), (NUM_WS, 1)).astype(np.float64)
        ws[:cutoff] = W_AVG + psi * (ws[:cutoff] - W_AVG)
        expected += weight * (ws - W_AVG)
    assert found == pytest.approx(expected, abs=1e-6)


def test_seeds_are_weighted_in_float32_and_summed_in_float64_in_their_order() -> None:
    point = Point(((3, 0.1), (1, 1 / 3), (2, -0.7), (9, 1e-5)))
    expected = np.zeros(W_DIM)
    for seed, weight in point.seeds:
        expected += np.float32(weight) * w(seed)
    rows = rows_of((recipe(Latent(point)), 1.0))
    assert np.array_equal(rows, np.tile(expected.astype(np.float32), (NUM_WS, 1)))


def test_a_point_in_z_is_blended_before_mapping() -> None:
    seeds = ((1, 0.5), (2, 0.5))
    in_z = rows_of((recipe(Latent(Point(seeds, "z"))), 1.0))
    assert in_z[0] == pytest.approx(fake_map(Anchor(seeds, ())))
    in_w = rows_of((recipe(Latent(Point(seeds, "w"))), 1.0))
    assert in_w[0] == pytest.approx(0.5 * w(1) + 0.5 * w(2))
    assert not np.allclose(in_z, in_w)


def test_classes_reach_the_mapping_of_every_seed() -> None:
    latent = Latent(plane_point(0.5, 0.0), classes=((2, 0.5), (0, 1.0)))
    expected = 0.5 * w(0, (2, 0.5), (0, 1.0)) + 0.5 * w(1, (2, 0.5), (0, 1.0))
    assert rows_of((recipe(latent), 1.0))[0] == pytest.approx(expected)


def test_sources_are_laid_over_one_another_row_by_row_with_the_same_truncation() -> None:
    first = MixSource(Latent(Point(((1, 1.0),))), (1.0, 0.5))
    second = MixSource(Latent(Point(((2, 1.0),))), (0.0, 0.5, 0.25))
    found = rows_of((recipe(Latent(Point(((0, 1.0),)), mix=(first, second)), psi=0.5, cutoff=2), 1.0))

    def truncated(seed: int, row: int) -> np.ndarray:
        return W_AVG + 0.5 * (w(seed) - W_AVG) if row < 2 else w(seed)

    assert found[0] == pytest.approx(truncated(1, 0))
    halfway = 0.5 * truncated(0, 1) + 0.5 * truncated(1, 1)
    assert found[1] == pytest.approx(0.5 * halfway + 0.5 * truncated(2, 1), abs=1e-6)
    assert found[2] == pytest.approx(0.75 * truncated(0, 2) + 0.25 * truncated(2, 2), abs=1e-6)
    assert found[3] == pytest.approx(w(0))


def test_a_source_brings_its_own_mix_and_directions() -> None:
    inner = MixSource(Latent(Point(((2, 1.0),))), (1.0,))
    source = Latent(Point(((1, 1.0),)), mix=(inner,), directions=(DirectionAmount("axis/3", 2.0),))
    found = rows_of((recipe(Latent(Point(((0, 1.0),)), mix=(MixSource(source, (1.0, 1.0)),))), 1.0))
    push = np.array([0.0, 0.0, 0.0, 2.0])
    assert found[0] == pytest.approx(w(2) + push)
    assert found[1] == pytest.approx(w(1) + push)
    assert found[2] == pytest.approx(w(0))


def test_directions_come_last_and_are_not_truncated() -> None:
    latent = Latent(Point(((0, 1.0),)), directions=(DirectionAmount("sefa/0", 3.0, RowRange(1, 2)),))
    found = rows_of((recipe(latent, psi=0.0), 1.0))
    assert found[0] == pytest.approx(W_AVG)
    assert found[1] - W_AVG == pytest.approx([0.0, 3.0, 0.0, 0.0])


def test_a_blend_of_recipes_is_their_weighted_sum() -> None:
    first = recipe(Latent(plane_point(0.5, 0.5)), 0.7)
    second = recipe(Latent(Point(((9, 1.0),)), directions=(DirectionAmount("sefa/0", 1.0),)))
    expected = 0.3 * rows_of((first, 1.0)) + 0.7 * rows_of((second, 1.0))
    assert rows_of((first, 0.3), (second, 0.7)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("loop", [True, False])
def test_each_frame_of_a_path_in_w_is_the_interpolation_of_the_keyframes_rows(loop: bool) -> None:
    keys = [((recipe(Latent(plane_point(x, 0.25)), 0.8), 1.0),) for x in (0.0, 3.5, 7.75, 11.0)]
    corners = np.array([rows_of(*key) for key in keys], dtype=np.float64)
    frames = path_blends(keys, "w-linear", 3, loop)
    for index, blend in enumerate(frames):
        key, u = index // 3, index % 3 / 3
        expected = (1 - u) * corners[key] + u * corners[(key + 1) % 4]
        assert rows_of(*blend) == pytest.approx(expected, abs=1e-6)


def test_every_anchor_is_named_once_in_order_of_use() -> None:
    latent = Latent(plane_point(0.5, 0.0), mix=(MixSource(Latent(Point(((1, 1.0),))), (1.0,)),))
    blend = ((recipe(latent), 0.5), (recipe(latent, 0.5), 0.5))
    assert anchors_of(blend) == (Anchor(((0, 1.0),), ()), Anchor(((1, 1.0),), ()))


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_weight_that_is_not_finite_is_refused(number: float) -> None:
    fine = recipe(Latent())
    with pytest.raises(RequestError, match="weight must be a finite number"):
        rows_of((fine, number))
    with pytest.raises(RequestError, match="weight must be a finite number"):
        rows_of((recipe(Latent(Point(((0, number),)))), 1.0))


def test_rows_that_overflow_are_refused_rather_than_rendered() -> None:
    huge = recipe(Latent(directions=(DirectionAmount("axis/0", 1e300),)))
    with pytest.raises(RequestError, match="too large together"):
        rows_of((huge, 1.0))


def test_an_empty_blend_and_an_empty_point_are_refused() -> None:
    with pytest.raises(RequestError, match="blend is empty"):
        rows_of()
    with pytest.raises(RequestError, match="at least one seed"):
        rows_of((recipe(Latent(Point(()))), 1.0))


def test_sources_nested_without_end_are_refused() -> None:
    latent = Latent()
    for _ in range(9):
        latent = replace(Latent(), mix=(MixSource(latent, (1.0,)),))
    with pytest.raises(RequestError, match="8 deep"):
        rows_of((recipe(latent), 1.0))


def test_stored_rows_are_used_as_they_are_and_mixed_and_pushed_like_others() -> None:
    stored_rows = np.random.default_rng(3).standard_normal((NUM_WS, W_DIM)).astype(np.float32)
    stored = stored_latent(stored_rows)
    assert np.array_equal(rows_of((recipe(Latent(stored), 0.5), 1.0)), stored_rows)
    pushed = rows_of((recipe(Latent(stored, directions=(DirectionAmount("sefa/0", 1.0, RowRange(0, 1)),))), 1.0))
    assert np.array_equal(pushed[2:], stored_rows[2:])
    assert not np.array_equal(pushed[:2], stored_rows[:2])
    over = rows_of((recipe(Latent(Point(((7, 1.0),)), mix=(MixSource(Latent(stored), (1.0, 1.0)),))), 1.0))
    assert np.array_equal(over[:2], stored_rows[:2])
    assert np.array_equal(over[2:], np.tile(w(7), (NUM_WS - 2, 1)))


def test_one_stored_row_stands_in_every_row() -> None:
    row = np.arange(W_DIM, dtype=np.float32)
    assert np.array_equal(rows_of((recipe(Latent(stored_latent(row))), 1.0)), np.tile(row, (NUM_WS, 1)))


def test_stored_rows_of_another_model_are_refused() -> None:
    with pytest.raises(RequestError, match="belongs to another model"):
        rows_of((recipe(Latent(stored_latent(np.zeros((NUM_WS + 1, W_DIM), np.float32)))), 1.0))


@pytest.mark.parametrize("cutoff", [None, 4])
def test_a_direction_of_all_rows_gives_the_same_bytes_as_beside_one_of_some(cutoff: int | None) -> None:
    pushes = (DirectionAmount("sefa/0", 1.7), DirectionAmount("axis/2", -0.3))
    nothing = DirectionAmount("axis/0", 0.0, RowRange(1, 2))
    point = plane_point(3.25, 1.5)
    one_row, own_rows = (
        rows_of((recipe(Latent(point, directions=made), 0.6, cutoff), 1.0)) for made in (pushes, (*pushes, nothing))
    )
    assert one_row.shape == (NUM_WS, W_DIM)
    assert one_row.tobytes() == own_rows.tobytes()
