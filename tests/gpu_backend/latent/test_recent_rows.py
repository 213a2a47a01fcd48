"""Rows of recent recipes: the same bits as computed anew, and computed once."""

import numpy as np
import pytest

from gpu_backend.errors import RequestError
from gpu_backend.latent.directions import Directions
from gpu_backend.latent.mapped import MappedAnchors
from gpu_backend.latent.plane import plane_point
from gpu_backend.latent.recent_rows import CAPACITY, RecentRows
from gpu_backend.latent.rows import Blend, LatentSpace, anchors_of, blend_rows
from gpu_backend.limits import MAX_RECIPE_SEEDS
from gpu_backend.recipe import Latent, MixSource, Point, Recipe, Truncation

W_DIM = 8
SPACE = LatentSpace(
    4, np.linspace(-1, 1, W_DIM, dtype=np.float32), Directions(("sefa/0",), np.zeros((1, W_DIM), np.float32), (5.0,))
)


class Mapping:
    """A mapping network that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.mapped = MappedAnchors(self._one, W_DIM, 0)
        self.recent = RecentRows(SPACE, self.mapped)

    def _one(self, z: np.ndarray, label: np.ndarray) -> np.ndarray:
        self.runs += 1
        return np.tanh(z)


def recipe(seed: int, psi: float = 0.7) -> Recipe:
    latent = Latent(Point(((seed, 1.0),)), mix=(MixSource(Latent(Point(((seed + 100, 1.0),))), (0.0, 0.5)),))
    return Recipe(latent, Truncation(psi))


def anew(blend: Blend) -> np.ndarray:
    return blend_rows(blend, SPACE, Mapping().mapped.fetch(anchors_of(blend)))


def test_a_path_between_two_recipes_gives_the_bits_of_each_frame_alone() -> None:
    mapping, first, second = Mapping(), recipe(1), recipe(2, 0.5)
    for share in np.linspace(0.0, 1.0, 7).tolist():
        blend = ((first, 1.0 - share), (second, share))
        assert np.array_equal(mapping.recent.rows_of(blend), anew(blend))
    assert np.array_equal(mapping.recent.rows_of(((second, 1.0),)), anew(((second, 1.0),)))


def test_frames_of_a_plane_drag_share_their_anchors_and_have_the_bits_of_each_alone() -> None:
    mapping = Mapping()
    points = [plane_point(10.2 + 0.01 * step, 4.7) for step in range(8)]
    blends = [((Recipe(Latent(point), Truncation(0.7)), 1.0),) for point in points]
    assert all(anchors_of(blend) is anchors_of(blends[0]) for blend in blends)
    for blend in (*blends, blends[0]):
        assert np.array_equal(mapping.recent.rows_of(blend), anew(blend))
    assert mapping.runs == len(points[0].seeds)


def test_recipes_that_are_repeated_are_neither_mapped_nor_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mapping, blend = Mapping(), ((recipe(1), 0.5), (recipe(2), 0.5))
    expected = mapping.recent.rows_of(blend)
    mapping.mapped.clear()
    runs = mapping.runs
    assert np.array_equal(mapping.recent.rows_of(blend), expected)
    assert mapping.runs == runs


def test_an_equal_recipe_that_is_another_object_gives_the_same_rows() -> None:
    mapping = Mapping()
    assert np.array_equal(mapping.recent.rows_of(((recipe(1), 1.0),)), mapping.recent.rows_of(((recipe(1), 1.0),)))


def test_only_recent_recipes_are_kept_and_large_blends_keep_none() -> None:
    mapping = Mapping()
    mapping.recent.rows_of(((recipe(0), 1.0),))
    one = mapping.recent.nbytes
    for seed in range(CAPACITY + 5):
        mapping.recent.rows_of(((recipe(seed), 1.0),))
    assert mapping.recent.nbytes == CAPACITY * one
    mapping.recent.clear()
    blend = tuple((recipe(seed), 1.0 / 64) for seed in range(2 * CAPACITY))
    assert np.array_equal(mapping.recent.rows_of(blend), anew(blend))
    assert mapping.recent.nbytes == 0


def test_too_many_seeds_together_are_refused_also_if_each_recipe_is_kept() -> None:
    mapping = Mapping()
    half = MAX_RECIPE_SEEDS // 2 + 1
    both = tuple(
        Recipe(Latent(Point(tuple((seed, 1.0 / half) for seed in range(first, first + half))))) for first in (0, half)
    )
    for item in both:
        mapping.recent.rows_of(((item, 1.0),))
    with pytest.raises(RequestError, match="seeds"):
        mapping.recent.rows_of(tuple((item, 0.5) for item in both))


def test_an_empty_blend_and_a_weight_that_is_not_finite_are_refused() -> None:
    mapping, item = Mapping(), recipe(1)
    with pytest.raises(RequestError):
        mapping.recent.rows_of(())
    mapping.recent.rows_of(((item, 1.0),))
    with pytest.raises(RequestError):
        mapping.recent.rows_of(((item, float("nan")),))
