"""Variations of a session, as recipes."""

from __future__ import annotations

import math

import pytest

from explorer_app.session.edits import TakeLatent
from explorer_app.session.resolve import resolve
from explorer_app.session.row_groups import row_groups
from explorer_app.session.session import Position, Session, Slider, Source
from explorer_app.session.session_json import session_from_json, session_to_json
from explorer_app.session.variations import (
    MIDDLE,
    GridAxis,
    along_axes,
    child,
    children,
    combined_session,
    crossed,
    grid_cells,
    neighbour,
    random_neighbours,
    weighted_session,
)
from gpu_backend import Latent, Noise, Point, RequestError, RowRange, Truncation

NUM_WS = 6
GROUPS = row_groups((4, 8, 8, 16, 16, 32))
ALL, FINE = RowRange(), RowRange(4, 5)


def at(seed: int, **fields: object) -> Session:
    return Session(position=Position(float(seed), 0.0), **fields)  # type: ignore[arg-type]


def seeds(session: Session) -> dict[int, float]:
    ((recipe, _),) = resolve(session).blend
    assert isinstance(recipe.latent.point, Point)
    return dict(recipe.latent.point.seeds)


def test_cells_are_named_by_their_offset_so_that_a_larger_grid_keeps_them() -> None:
    assert grid_cells(3, 3)[4] == grid_cells(4, 4)[10] == MIDDLE
    assert set(grid_cells(3, 3)) < set(grid_cells(5, 5)) < set(grid_cells(8, 8))


def test_a_neighbour_is_the_given_share_of_the_way_to_a_seed() -> None:
    near = neighbour(at(3), 70, 0.25, ALL, NUM_WS)
    assert seeds(near) == {3: 0.75, 70: 0.25}
    assert seeds(neighbour(at(3), 70, 1.0, ALL, NUM_WS)) == {70: 1.0}
    assert resolve(neighbour(at(3), 70, 0.0, ALL, NUM_WS)) == resolve(at(3))


def test_a_neighbour_in_some_rows_leaves_the_others() -> None:
    ((recipe, _),) = resolve(neighbour(at(3), 70, 0.25, FINE, NUM_WS)).blend
    assert recipe.latent.point == Point(((3, 1.0),))
    (source,) = recipe.latent.mix
    assert source.strengths == (0, 0, 0, 0, 1, 1)
    assert source.latent.point == Point(((3, 0.75), (70, 0.25)))


def test_sliders_stay_sliders_and_the_mix_becomes_part_of_the_latent() -> None:
    mixed = at(
        3,
        sliders=(Slider("sefa/0", 2.0),),
        mix=(Source(Latent(Point(((9, 1.0),))), (1.0,) * NUM_WS, "seed 9"),),
        noise=Noise(gain=0.3),
        truncation=Truncation(0.5),
    )
    near = neighbour(mixed, 70, 0.25, ALL, NUM_WS)
    assert (near.sliders, near.mix, near.noise, near.truncation) == (mixed.sliders, (), mixed.noise, mixed.truncation)
    ((recipe, _),) = resolve(near).blend
    assert recipe.latent.point == Point(((9, 0.75), (70, 0.25)))
    assert recipe.latent.directions[0].amount == 2.0
    assert recipe.truncation == Truncation(0.5)


def test_the_same_seed_gives_the_same_neighbours_and_another_seed_others() -> None:
    cells = grid_cells(3, 3)
    first = random_neighbours(at(3), cells, 1, 0.3, ALL, NUM_WS)
    assert first == random_neighbours(at(3), cells, 1, 0.3, ALL, NUM_WS)
    assert len(set(first)) == 9
    others = random_neighbours(at(3), cells, 2, 0.3, ALL, NUM_WS)
    assert [a == b for a, b in zip(first, others, strict=True)] == [cell == MIDDLE for cell in cells]
    larger = dict(zip(grid_cells(5, 5), random_neighbours(at(3), grid_cells(5, 5), 1, 0.3, ALL, NUM_WS), strict=True))
    assert first == tuple(larger[cell] for cell in cells)


def test_the_middle_is_the_session_itself() -> None:
    found = dict(zip(grid_cells(4, 4), random_neighbours(at(3), grid_cells(4, 4), 1, 0.3, ALL, NUM_WS), strict=True))
    assert found[MIDDLE] == at(3)


def test_variations_of_variations_do_not_grow() -> None:
    session = at(3)
    for number in range(150):
        session = neighbour(session, 1000 + number, 0.3, FINE if number % 2 else ALL, NUM_WS)
    ((recipe, _),) = session.pinned_blend
    assert len(recipe.latent.mix) <= 1
    assert len(seeds(session)) < 80


def test_axes_move_two_sliders_across_and_up() -> None:
    moved = dict(
        zip(
            grid_cells(3, 3),
            along_axes(
                at(3, sliders=(Slider("sefa/0", 1.0),)),
                grid_cells(3, 3),
                GridAxis("sefa/0", 4.0),
                GridAxis("world/sun", 2.0),
            ),
            strict=True,
        )
    )
    assert moved[MIDDLE].sliders == (Slider("sefa/0", 1.0),)
    right, top = moved[0, 1], moved[-1, 0]
    assert (right.slider("sefa/0").amount, right.slider("world/sun").amount) == (5.0, 0.0)
    assert top.slider("world/sun") == Slider("world/sun", 2.0)
    assert moved[1, -1].slider("sefa/0").amount == -3.0


def test_a_cell_of_a_mix_grid_has_the_rows_of_the_row_and_the_rest_of_the_column() -> None:
    mixed = crossed(at(3), at(9), RowRange(0, 1), NUM_WS)
    ((recipe, _),) = resolve(mixed).blend
    assert recipe.latent.point == Point(((3, 1.0),))
    assert [(source.latent.point, source.strengths) for source in recipe.latent.mix] == [
        (Point(((9, 1.0),)), (1, 1, 0, 0, 0, 0))
    ]
    assert resolve(crossed(at(3), at(3), RowRange(0, 1), NUM_WS)) == resolve(at(3))
    assert resolve(crossed(at(3), at(9), ALL, NUM_WS)) == resolve(at(9))


def test_sliders_that_differ_are_mixed_with_their_rows() -> None:
    mixed = crossed(at(3, sliders=(Slider("sefa/0", 2.0, label="mine"),)), at(9), RowRange(0, 1), NUM_WS)
    ((recipe, _),) = resolve(mixed).blend
    assert [(item.amount, item.rows) for item in recipe.latent.directions] == [(2.0, RowRange(2))]
    assert mixed.slider("sefa/0") == Slider("sefa/0", 0.0, label="mine")


def test_a_child_has_each_group_from_a_parent_or_a_mean_of_them() -> None:
    parents = [at(3), at(9)]
    bred = children(parents, grid_cells(5, 5), 4, 0.0, GROUPS, NUM_WS)
    assert bred == children(parents, grid_cells(5, 5), 4, 0.0, GROUPS, NUM_WS)
    assert len(set(bred)) > 15
    for session in bred:
        ((recipe, _),) = resolve(session).blend
        points = [recipe.latent.point, *(source.latent.point for source in recipe.latent.mix)]
        assert all(isinstance(point, Point) and {seed for seed, _ in point.seeds} <= {3, 9} for point in points)
    mutated = child(parents, (1, 1), 4, 0.2, GROUPS, NUM_WS)
    assert mutated != child(parents, (1, 1), 4, 0.0, GROUPS, NUM_WS)


def test_children_of_children_do_not_grow() -> None:
    parents = [at(3), at(9)]
    for generation in range(60):
        parents = [child(parents, cell, generation, 0.2, GROUPS, NUM_WS) for cell in ((0, 1), (1, 0))]
    ((recipe, _),) = parents[0].pinned_blend
    assert len(recipe.latent.mix) < len(GROUPS)


def test_a_weighted_sum_is_scaled_to_one() -> None:
    assert seeds(weighted_session([(at(3), 1.0), (at(9), 1.0)], NUM_WS)) == {3: 0.5, 9: 0.5}
    assert seeds(weighted_session([(at(3), 2.0), (at(9), 1.0), (at(5), -1.0)], NUM_WS)) == {3: 1.0, 9: 0.5, 5: -0.5}
    for weights in (
        (1.0, -1.0, 0.0),
        (0.1, 0.2, -0.3),
        (math.nan, 1.0, 1.0),
        (math.inf, 1.0, 1.0),
        (1e308, 1e308, 0.0),
    ):
        with pytest.raises(RequestError, match=r"must not sum to zero|finite numbers"):
            weighted_session(list(zip((at(3), at(9), at(5)), weights, strict=True)), NUM_WS)


def test_a_variation_survives_a_file_and_is_taken_as_one_edit_that_leaves_the_rest() -> None:
    near = neighbour(at(3), 70, 0.25, FINE, NUM_WS)
    assert session_from_json(session_to_json(near)) == near
    taken = TakeLatent(near).apply(at(50, noise=Noise(gain=0.5)))
    assert resolve(taken).blend == resolve(near).blend
    assert taken.noise == Noise(gain=0.5)


def test_combining_with_a_session_of_other_classes_keeps_both() -> None:
    both = combined_session(
        at(3), [(at(3, classes=((1, 1.0),)), [0.5] * NUM_WS), (at(9, classes=((2, 1.0),)), [0.5] * NUM_WS)]
    )
    ((recipe, _),) = resolve(both).blend
    assert recipe.latent.classes == both.classes == ((1, 1.0),)
    (source,) = recipe.latent.mix
    assert source.latent == Latent(Point(((9, 1.0),)), ((2, 1.0),))
    assert source.strengths == (0.5,) * NUM_WS
