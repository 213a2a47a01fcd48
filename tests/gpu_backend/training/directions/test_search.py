"""Searches for directions, step by step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gpu_backend.errors import RequestError
from gpu_backend.model.named_directions import is_direction_name
from gpu_backend.recipe import Latent, Point, Recipe, RowRange
from gpu_backend.renderer import Renderer
from gpu_backend.training.directions.components import pca_directions
from gpu_backend.training.directions.search import (
    DirectionFinder,
    DirectionSearch,
    example_direction,
    find_directions,
    free_example_name,
    free_set_name,
)
from gpu_backend.training.quality.generated import rows_of_seeds
from tests.helpers.networks import make_stylegan2


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(make_stylegan2(), "cpu") as renderer:
        yield renderer


def test_components_come_in_batches_and_are_those_of_all_latents_at_once(renderer: Renderer) -> None:
    where = RowRange(1, 3)
    finder = DirectionFinder(DirectionSearch("pca", "mine", where, 3, latents=150, seed=5))
    shares, found = [], None
    while found is None:
        found = finder.step(renderer)
        shares.append(finder.share)
    assert shares[0] == pytest.approx(64 / 150)
    assert shares[-1] == 1.0
    once = pca_directions(rows_of_seeds(renderer, range(5, 155), 0.7)[:, 0], where, 3, "mine")
    assert found.names == once.names == ("mine/0", "mine/1", "mine/2")
    np.testing.assert_allclose(found.vectors, once.vectors, atol=1e-5)
    assert set(found.rows) == {where}


def test_sefa_looks_at_the_rows_that_were_chosen(renderer: Renderer) -> None:
    coarse = find_directions(DirectionSearch("sefa", "coarse", RowRange(0, 1), 2), renderer)
    fine = find_directions(DirectionSearch("sefa", "fine", RowRange(2, None), 2), renderer)
    assert coarse.names == ("coarse/0", "coarse/1")
    assert coarse.rows == (RowRange(0, 1),) * 2
    assert not np.allclose(coarse.vectors, fine.vectors)


def test_a_direction_from_examples_leads_from_one_mean_to_the_other(renderer: Renderer) -> None:
    blends = [((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),) for seed in range(4)]
    where = RowRange(0, 2)
    search = DirectionSearch("examples", "smile", where, having=tuple(blends[:2]), lacking=tuple(blends[2:]))
    found = find_directions(search, renderer)
    rows = np.stack([renderer.rows_of(blend)[:3].mean(axis=0) for blend in blends])
    np.testing.assert_allclose(found.vectors[0], rows[:2].mean(axis=0) - rows[2:].mean(axis=0), atol=1e-5)
    assert (found.names, found.rows) == (("examples/smile",), (where,))


def test_many_examples_leave_out_what_varies_within_the_groups() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(400, 4)).astype(np.float32) * np.array([8.0, 0.2, 0.2, 0.2], np.float32)
    noise[:200, 1] += 2.0  # the groups differ in the second number, and vary in the first
    few = example_direction(noise[:3], noise[200:203], RowRange(0, 1), "few").vectors[0]
    many = example_direction(noise[:200], noise[200:], RowRange(0, 1), "many").vectors[0]
    way = noise[:200].mean(axis=0) - noise[200:].mean(axis=0)
    assert abs(many[0]) < 0.3 < abs(few[0])
    assert many[1] == pytest.approx(2.0, rel=0.3)
    assert float(many @ way) == pytest.approx(float(way @ way), rel=1e-4), "1 goes from mean to mean"


@pytest.mark.parametrize(
    "search",
    [
        DirectionSearch("pca", "pca", RowRange(0, 1), latents=3),
        DirectionSearch("examples", "x", RowRange(0, 1)),
    ],
)
def test_a_search_that_cannot_be_done_is_refused_at_once(search: DirectionSearch) -> None:
    with pytest.raises(RequestError):
        DirectionFinder(search)


def test_rows_that_the_model_does_not_have_are_refused(renderer: Renderer) -> None:
    with pytest.raises(RequestError, match="Rows of this model"):
        find_directions(DirectionSearch("sefa", "a", RowRange(0, 99)), renderer)


def test_examples_that_do_not_differ_are_refused() -> None:
    same = np.ones((3, 4), np.float32)
    with pytest.raises(RequestError, match="differ"):
        example_direction(same, same, RowRange(0, 1), "x")


@pytest.mark.parametrize(
    ("wanted", "names", "free"),
    [
        ("pca", (), "pca"),
        ("pca", ("pca/0", "pca-2/0"), "pca-3"),
        ("  My Set! ", (), "my-set"),
        ("42 ", (), "found"),
        ("", (), "found"),
        ("sefa", (), "sefa-own"),
    ],
)
def test_a_set_gets_a_name_that_is_free(wanted: str, names: tuple[str, ...], free: str) -> None:
    assert free_set_name(wanted, names) == free
    assert is_direction_name(f"{free}/0")


def test_an_example_gets_a_name_that_is_free() -> None:
    assert free_example_name("more / less  snow", ()) == "more less snow"
    assert free_example_name("snow", ("examples/snow",)) == "snow 2"
    for wanted in ("x" * 90, f"{'x' * 33} and more", "family \U0001f468\u200d\U0001f469", "\u200b"):
        assert is_direction_name(f"examples/{free_example_name(wanted, ())}")
