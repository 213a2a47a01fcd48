"""The live grid, over a fake renderer."""

from __future__ import annotations

from PIL import Image

from explorer_app.controller import GridCell, VariationGrid
from explorer_app.controller.editing import Editing
from explorer_app.messages import Level
from explorer_app.session.edits import GoToSeed
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from explorer_app.session.row_groups import row_groups
from explorer_app.session.session import Slider
from explorer_app.session.variations import MIDDLE, GridAxis, crossed
from gpu_backend import RequestError, RowRange
from tests.helpers.controller_harness import Harness


def shown(harness: Harness, **changes: object) -> VariationGrid:
    grid = harness.controller.grid
    grid.change(side=3, **changes)
    grid.set_on(True)
    harness.until(lambda: is_whole(grid) and not any(has_draft(cell) for cell in grid.cells.values()))
    return grid


def has_draft(cell: GridCell) -> bool:
    return cell.frame is None or cell.frame.is_draft


def is_whole(grid: VariationGrid) -> bool:
    """Whether every cell has its picture."""
    return bool(grid.cells) and not any(cell.is_stale for cell in grid.cells.values())


def test_nothing_is_rendered_for_a_grid_that_is_off(open_harness: Harness) -> None:
    open_harness.controller.grid.change(side=4)
    open_harness.controller.editing.edit(GoToSeed(5))
    open_harness.rest()
    assert open_harness.engine.batches == []


def test_every_cell_gets_its_picture_and_the_middle_is_the_session(open_harness: Harness) -> None:
    open_harness.controller.editing.edit(GoToSeed(5))
    grid = shown(open_harness)
    assert grid.shape == (3, 3)
    assert len({cell.request for cell in grid.cells.values()}) == 9
    assert grid.cells[MIDDLE].request == resolve(open_harness.controller.editing.session)


def test_cells_follow_a_drag_before_it_ends(open_harness: Harness) -> None:
    grid = shown(open_harness)
    before = grid.cells[1, 1].request
    open_harness.drag(0.5, 0.7, release=False)
    open_harness.until(lambda: grid.cells[1, 1].request != before and is_whole(grid))
    frame = grid.cells[MIDDLE].frame
    assert frame is not None
    assert frame.request.blend == resolve(open_harness.controller.editing.session).blend


def test_adopting_is_one_step_of_undo_and_the_grid_goes_on_from_there(open_harness: Harness) -> None:
    grid = shown(open_harness)
    taken = grid.cells[1, 0].request
    grid.continue_from((1, 0))
    assert resolve(open_harness.controller.editing.session).blend == taken.blend
    assert open_harness.labels[-1] == "Variation"
    assert grid.cells[MIDDLE].request.blend == taken.blend
    open_harness.until(lambda: is_whole(grid))
    open_harness.controller.editing.undo()
    assert open_harness.controller.editing.session.pinned_blend == ()
    grid.continue_from(MIDDLE)
    assert len(open_harness.labels) == 2


def test_a_cell_is_kept_and_kept_no_longer(open_harness: Harness) -> None:
    grid = shown(open_harness)
    grid.toggle_kept((1, 1))
    (kept,) = open_harness.controller.editing.kept.sessions
    assert kept.session == grid.cells[1, 1].session
    assert kept.label == "Variation 1.9"
    assert grid.kept_number((1, 1)) is not None
    assert grid.kept_number((0, 1)) is None
    grid.toggle_kept((1, 1))
    assert open_harness.controller.editing.kept.sessions == ()


def test_rolling_draws_other_cells_but_locked_ones_stay(open_harness: Harness) -> None:
    grid = shown(open_harness)
    before = dict(grid.cells)
    grid.toggle_locked((1, 1))
    grid.roll()
    changed = {cell for cell, item in grid.cells.items() if item.session != before[cell].session}
    assert changed == set(before) - {MIDDLE, (1, 1)}
    assert grid.is_locked((1, 1))
    grid.toggle_locked((1, 1))
    assert grid.cells[1, 1].session != before[1, 1].session


def test_breeding_needs_two_cells_keeps_them_and_fills_the_rest_with_children(open_harness: Harness) -> None:
    grid = shown(open_harness)
    grid.toggle_picked((0, 1))
    grid.breed()
    assert grid.settings.kind == "random"
    grid.toggle_picked((1, 1))
    parents = [grid.cells[cell].session for cell in ((0, 1), (1, 1))]
    grid.breed()
    assert grid.settings.kind == "children"
    assert [grid.cells[cell].session for cell in ((0, 1), (1, 1))] == parents
    assert grid.is_parent((1, 1))
    assert grid.picked == ()
    assert len({cell.session for cell in grid.cells.values()}) == 9
    open_harness.until(lambda: is_whole(grid))


def test_axes_take_the_first_directions_of_the_model_and_move_its_sliders(open_harness: Harness) -> None:
    grid = shown(open_harness, kind="axes", spread=0.5)
    assert (grid.settings.across, grid.settings.down) == (GridAxis("sefa/0", 5.0), GridAxis("sefa/1", 5.0))
    assert grid.cells[-1, 1].session.sliders == (Slider("sefa/0", 2.5), Slider("sefa/1", 2.5))
    grid.continue_from((0, 1))
    assert open_harness.controller.editing.session.slider("sefa/0").amount == 2.5


def test_a_grid_of_directions_stays_one_with_another_model_on_the_same_directions(open_harness: Harness) -> None:
    grid = shown(open_harness, kind="axes", across=GridAxis("sefa/1", 5.0), down=GridAxis("sefa/0", 5.0))
    open_harness.open("dogs")
    open_harness.until(lambda: is_whole(grid))
    assert grid.settings.kind == "axes"
    assert (grid.settings.across, grid.settings.down) == (GridAxis("sefa/1", 5.0), GridAxis("sefa/0", 5.0))


def test_a_direction_that_was_remembered_waits_for_its_model(harness: Harness) -> None:
    grid = harness.controller.grid
    grid.change(kind="axes", across=GridAxis("sefa/1", 1.0), down=GridAxis("of another model", 1.0))
    harness.start()
    assert (grid.settings.across, grid.settings.down) == (GridAxis("sefa/1", 5.0), GridAxis("sefa/1", 5.0))


def with_kept_seeds(harness: Harness) -> Editing:
    """Keep seeds 3 to 6, and return what holds them."""
    editing = harness.controller.editing
    for seed in (3, 4, 5, 6):
        editing.edit(GoToSeed(seed))
        assert editing.history.current is not None
        editing.kept.star(editing.history.current.number, True)
    return editing


def test_a_mix_grid_crosses_kept_latents_and_shows_them_at_its_edges(open_harness: Harness) -> None:
    editing = with_kept_seeds(open_harness)
    grid = shown(open_harness, kind="mix", mix_rows=RowRange(0, 3))
    assert grid.shape == (3, 3)
    assert set(grid.cells) == {(row, column) for row in range(3) for column in range(3)} - {(0, 0)}
    assert grid.cells[1, 0].session.position.x == 3.0
    assert grid.cells[0, 2].session.position.x == 6.0
    ((recipe, _),) = grid.cells[1, 2].request.blend
    assert recipe.latent.mix[0].strengths[:5] == (1, 1, 1, 1, 0)
    kept = editing.kept.sessions
    grid.use_sides(kept[:1], kept)
    assert grid.shape == (2, 5)
    grid.continue_from((1, 4))
    assert open_harness.labels[-1] == "Mix"


def test_a_mix_that_is_kept_stays_in_its_place_until_the_grid_is_left(open_harness: Harness) -> None:
    editing = with_kept_seeds(open_harness)
    grid = shown(open_harness, kind="mix")
    before = {cell: shown_cell.session for cell, shown_cell in grid.cells.items()}
    for cell in ((1, 2), (2, 1)):
        grid.toggle_kept(cell)
    assert {cell: shown_cell.session for cell, shown_cell in grid.cells.items()} == before
    assert [cell for cell in grid.cells if grid.kept_number(cell) is not None] == [(1, 2), (2, 1)]
    assert [entry.label for entry in editing.history.kept][-2:] == ["Seed 3 over Seed 6", "Seed 4 over Seed 5"]
    grid.set_on(False)
    grid.set_on(True)
    assert grid.shape == (4, 4), "of six kept ones"


def test_a_mix_grid_takes_the_coarse_rows_from_the_left_at_first(open_harness: Harness) -> None:
    editing = open_harness.controller.editing
    for seed in (3, 4):
        editing.edit(GoToSeed(seed))
        assert editing.history.current is not None
        editing.kept.star(editing.history.current.number, True)
    grid = shown(open_harness, kind="mix")
    facts = open_harness.controller.engine.model.facts
    assert facts is not None
    coarse = row_groups(facts.row_resolutions)[0].rows
    assert grid.settings.rows_of(facts.row_resolutions) == coarse
    above, left, mixed = (grid.cells[cell].session for cell in ((0, 1), (1, 0), (1, 1)))
    assert mixed == crossed(above, left, coarse, facts.num_ws)
    assert mixed not in (above, left)
    grid.change(kind="random")
    assert grid.settings.rows_of(facts.row_resolutions) == RowRange()


def test_a_mix_grid_of_too_few_latents_is_empty(open_harness: Harness) -> None:
    grid = open_harness.controller.grid
    grid.change(kind="mix")
    grid.set_on(True)
    assert dict(grid.cells) == {}


def test_all_cells_are_saved_as_one_sheet_in_full(open_harness: Harness) -> None:
    grid = shown(open_harness)
    path = open_harness.folder / "sheet.png"
    grid.save_sheet(path)
    open_harness.until(path.exists)
    with Image.open(path) as sheet:
        assert sheet.size == (3 * 132 + 4, 3 * 132 + 4)
    open_harness.until(lambda: "sheet.png is saved." in open_harness.said())


def test_a_sheet_that_cannot_be_made_is_said_once(open_harness: Harness) -> None:
    grid = shown(open_harness)
    open_harness.engine.failing = RequestError("This cannot be drawn.")
    grid.save_sheet(open_harness.folder / "sheet.png")
    open_harness.until(lambda: open_harness.said(Level.WARNING))
    open_harness.engine.failing = None
    assert open_harness.said(Level.WARNING) == ["This cannot be drawn."]


def test_settings_keep_to_their_ranges(open_harness: Harness) -> None:
    grid = open_harness.controller.grid
    grid.change(side=20, spread=3.0)
    assert (grid.settings.side, grid.settings.spread) == (8, 1.0)
    grid.change(side=1, spread=-3.0)
    assert (grid.settings.side, grid.settings.spread) == (3, 0.0)


def test_another_model_starts_over_and_its_pictures_come(open_harness: Harness) -> None:
    grid = shown(open_harness)
    grid.toggle_locked((1, 1))
    open_harness.open("dogs")
    open_harness.until(lambda: is_whole(grid))
    assert not grid.is_locked((1, 1))
    assert {cell.request.model_id for cell in grid.cells.values()} == {"sha of dogs.pkl"}


def test_a_failure_is_said_once_and_the_next_pictures_come(open_harness: Harness) -> None:
    grid = shown(open_harness)
    open_harness.engine.failing = RequestError("This cannot be drawn.")
    grid.roll()
    open_harness.until(lambda: grid.error)
    assert "This cannot be drawn." in " ".join(open_harness.said())
    open_harness.engine.failing = None
    grid.roll()
    open_harness.until(lambda: is_whole(grid))
    assert grid.error == ""


def test_a_slider_moves_all_cells_but_those_that_are_locked(open_harness: Harness) -> None:
    grid = shown(open_harness)
    grid.toggle_locked((1, 1))
    before = {cell: item.request for cell, item in grid.cells.items()}
    open_harness.controller.editing.edit(SetParameter("slider/sefa/0", 3.0))
    assert [cell for cell, item in grid.cells.items() if item.request == before[cell]] == [(1, 1)]
