"""Sums and differences of kept latents."""

from __future__ import annotations

from typing import Any

from explorer_app.messages import Level
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from gpu_backend import Point
from tests.helpers.controller_harness import Harness


def keep(harness: Harness, *seeds: int) -> list[int]:
    """Keep these seeds; return the numbers of their entries."""
    editing = harness.controller.editing
    for seed in seeds:
        editing.edit(GoToSeed(seed))
        assert editing.history.current is not None
        editing.kept.star(editing.history.current.number, True)
    return [entry.number for entry in editing.history.kept]


def shown(harness: Harness) -> object:
    ((recipe, _),) = resolve(harness.controller.editing.session).blend
    return recipe.latent.point


def test_the_average_is_one_step_that_undo_reverts(open_harness: Harness) -> None:
    numbers = keep(open_harness, 3, 5)
    open_harness.controller.arithmetic.average(numbers)
    assert shown(open_harness) == Point(((3, 0.5), (5, 0.5)))
    assert open_harness.labels[-1] == "Average of kept"
    open_harness.controller.editing.undo()
    assert shown(open_harness) == Point(((5, 1.0),))


def test_a_weighted_sum_takes_weights_as_typed_and_scales_them_to_one(open_harness: Harness) -> None:
    numbers = keep(open_harness, 3, 5, 7)
    open_harness.controller.arithmetic.weighted(numbers, "2, 1; -1")
    assert shown(open_harness) == Point(((3, 1.0), (5, 0.5), (7, -0.5)))


def test_a_difference_is_found_as_a_direction_that_is_named_after_both(open_harness: Harness) -> None:
    first, second = keep(open_harness, 3, 5)
    open_harness.controller.editing.kept.rename(first, "Größe / 图!")
    searches: list[Any] = []
    open_harness.controller.directions.find = lambda *arguments: searches.append(arguments)  # type: ignore[method-assign]
    open_harness.controller.arithmetic.difference(first, second)
    ((search, having, lacking),) = searches
    assert (search.method, search.name) == ("examples", "Größe  图 minus Seed 5")
    assert [session.position.x for session in (*having, *lacking)] == [3.0, 5.0]


def test_the_direction_from_the_picture_to_a_kept_one_is_named_after_it(open_harness: Harness) -> None:
    first, _ = keep(open_harness, 3, 5)
    searches: list[Any] = []
    open_harness.controller.directions.find = lambda *arguments: searches.append(arguments)  # type: ignore[method-assign]
    open_harness.controller.arithmetic.toward(first)
    ((search, having, lacking),) = searches
    assert search.name == "toward Seed 3"
    assert [session.position.x for session in (*having, *lacking)] == [3.0, 5.0]


def test_weights_that_do_not_fit_are_refused_with_a_sentence(open_harness: Harness) -> None:
    numbers = keep(open_harness, 3, 5)
    steps = list(open_harness.labels)
    for text, words in (
        ("1, two", "must be numbers"),
        ("1 1 1", "enter 2 weights"),
        ("1, -1", "must not sum to zero"),
        ("1, nan", "finite numbers"),
    ):
        open_harness.controller.arithmetic.weighted(numbers, text)
        assert words in open_harness.said(Level.WARNING)[-1]
    assert open_harness.labels == steps


def test_more_latents_than_a_sum_has_are_refused_and_not_left_out(open_harness: Harness) -> None:
    arithmetic, numbers = open_harness.controller.arithmetic, keep(open_harness, 3, 5)
    steps = list(open_harness.labels)
    arithmetic.average(numbers * 33)
    arithmetic.weighted(numbers * 33, ",".join("1" * 66))
    assert open_harness.said(Level.WARNING) == ["A sum has up to 64 latents, but 66 are selected."] * 2
    assert open_harness.labels == steps


def test_a_difference_to_a_picture_that_another_window_has_dropped_is_none(open_harness: Harness) -> None:
    first, second = keep(open_harness, 3, 5)
    searches: list[Any] = []
    open_harness.controller.directions.find = lambda *arguments: searches.append(arguments)  # type: ignore[method-assign]
    open_harness.controller.arithmetic.difference(first, first + second + 1)
    assert not searches
