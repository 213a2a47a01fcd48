"""The grid of variations in the window, over fakes that paint at once: real clicks and keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.controller import GridKind
from explorer_app.messages import MessageLog
from explorer_app.session.edits import GoToSeed
from explorer_app.session.variations import MIDDLE, Cell
from explorer_app.window.grids.cells_view import CellLook, CellsView, fitting_word
from explorer_app.window.grids.variation_view import VariationView
from explorer_app.window.look import fonts, theme
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import RowRange
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.mouse import wheel
from tests.helpers.windows import lay_out

DIRECT = Qt.FindChildOption.FindDirectChildrenOnly
CTRL, SHIFT, NONE = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.NoModifier,
)


@pytest.fixture
def view(window: MainWindow, controller: FakeController) -> VariationView:
    """A grid of 3 x 3 that is shown."""
    controller.grid.change(side=3)
    QTest.keyClick(window.canvas, Qt.Key.Key_V)
    QApplication.processEvents()
    return window.variations


def place(view: VariationView, cell: Cell) -> QPoint:
    return view.cells.cell_rect(cell).center().toPoint()


def click(view: VariationView, cell: Cell, keys: Qt.KeyboardModifier = NONE) -> None:
    QTest.mouseClick(view.cells, Qt.MouseButton.LeftButton, keys, place(view, cell))


def test_v_shows_the_grid_over_the_canvas_and_escape_the_picture(view: VariationView, window: MainWindow) -> None:
    assert view.isVisible()
    assert view.geometry() == window.canvas.rect()
    assert view.cells.hasFocus()
    assert window.actions_by_key["variations"].isChecked()
    QTest.keyClick(view.cells, Qt.Key.Key_Escape)
    assert view.isHidden()
    assert window.canvas.hasFocus()
    assert not window.actions_by_key["variations"].isChecked()


def test_a_click_adopts_shift_keeps_and_ctrl_picks(view: VariationView, controller: FakeController) -> None:
    grid = controller.grid
    wanted = grid.cells[1, 1].session
    click(view, (1, 1))
    assert controller.editing.session.pinned_blend == wanted.pinned_blend
    assert controller.editing.history.entries[-1].label == "Variation"
    click(view, (0, 1), SHIFT)
    assert [kept.session for kept in controller.editing.kept.sessions] == [grid.cells[0, 1].session]
    click(view, (0, 1), CTRL)
    click(view, (0, -1), CTRL)
    assert grid.picked == ((0, 1), (0, -1))
    assert view.bar.breed.text() == "Breed 2"
    QTest.mouseClick(view.bar.breed, Qt.MouseButton.LeftButton)
    assert grid.settings.kind == "children"
    assert grid.is_parent((0, 1))


def test_stars_and_locks_at_the_corners_of_a_cell(view: VariationView, controller: FakeController) -> None:
    for badge in ("keep", "lock"):
        corner = view.cells.badge_rect((1, 0), badge).center().toPoint()
        QTest.mouseClick(view.cells, Qt.MouseButton.LeftButton, NONE, corner)
    assert controller.grid.is_locked((1, 0))
    assert controller.grid.kept_number((1, 0)) is not None
    assert controller.editing.session.pinned_blend == ()


def test_the_keyboard_does_all_that_the_mouse_does(view: VariationView, controller: FakeController) -> None:
    cells, grid = view.cells, controller.grid
    assert cells.focused == MIDDLE
    QTest.keyClick(cells, Qt.Key.Key_Right)
    QTest.keyClick(cells, Qt.Key.Key_Right)
    assert cells.focused == (0, 1)
    QTest.keyClick(cells, Qt.Key.Key_Space)
    QTest.keyClick(cells, Qt.Key.Key_L)
    QTest.keyClick(cells, Qt.Key.Key_S)
    assert grid.picked == ((0, 1),)
    assert grid.is_locked((0, 1))
    assert len(controller.editing.kept.sessions) == 1
    QTest.keyClick(cells, Qt.Key.Key_R)
    assert grid.settings.seed == 2
    assert controller.editing.session.position.x == 0.0  # R did not jump to a random seed
    QTest.keyClick(cells, Qt.Key.Key_Up)
    wanted = grid.cells[-1, 1].session
    QTest.keyClick(cells, Qt.Key.Key_Return)
    assert controller.editing.session.pinned_blend == wanted.pinned_blend


def test_b_breeds_the_picked_cells(view: VariationView, controller: FakeController) -> None:
    for cell in ((0, 1), (1, 1)):
        click(view, cell, CTRL)
    QTest.keyClick(view.cells, Qt.Key.Key_B)
    assert controller.grid.settings.kind == "children"


def test_the_bar_changes_the_grid_and_shows_what_belongs_to_its_kind(
    view: VariationView, controller: FakeController
) -> None:
    bar, grid = view.bar, controller.grid
    bar.spread.moved.emit(0.6, True)
    bar.picker.rows_chosen.emit(RowRange(0, 3))
    assert (grid.settings.spread, grid.settings.rows) == (0.6, RowRange(0, 3))
    bar.side.setCurrentIndex(3)
    bar.side.activated.emit(3)
    assert grid.shape == (6, 6)
    QTest.mouseClick(bar.kinds.segments["axes"], Qt.MouseButton.LeftButton)
    assert bar.across.isVisible()
    assert not bar.rows.isVisible()
    assert bar.across.currentText() == "Direction 1"
    bar.down.setCurrentIndex(4)
    bar.down.activated.emit(4)
    assert grid.settings.down.direction == "sefa/4"
    QTest.mouseClick(bar.kinds.segments["mix"], Qt.MouseButton.LeftButton)
    assert bar.rows.isVisible()
    assert not bar.side.isVisible()
    assert "Keep at least two pictures" in view.cells._empty
    bar.picker.rows_chosen.emit(RowRange(1, 2))
    assert (grid.settings.mix_rows, grid.settings.rows) == (RowRange(1, 2), RowRange(0, 3))


def test_the_line_below_says_what_is_shown_and_what_went_wrong(view: VariationView, controller: FakeController) -> None:
    assert view.caption()[0].startswith("3 × 3 around the picture, all rows · click continues")
    controller.grid_renders.paints = False
    controller.grid.roll()
    assert "8 to come" in view.caption()[0]
    controller.grid.change(rows=RowRange(2, 4))
    assert "rows 2–4" in view.caption()[0]


def test_kept_latents_make_a_mix_grid_with_their_names_at_its_edges(
    view: VariationView, controller: FakeController
) -> None:
    for seed in (1, 2, 3, 4):
        controller.editing.edit(GoToSeed(seed))
        current = controller.editing.history.current
        assert current is not None
        controller.editing.kept.star(current.number, True)
    controller.grid.change(kind="mix")
    assert view.cells._cells[0, 1].name == "Seed 3"
    assert view.cells._cells[2, 0].name == "Seed 2"
    assert view.cells._cells[2, 2].name == "Seed 2 over Seed 4"
    click(view, (2, 2))
    assert controller.editing.history.entries[-1].label == "Mix"
    view.cells.grab()


def test_kept_latents_that_were_chosen_in_the_history_are_the_columns_of_the_mix_grid(
    view: VariationView, controller: FakeController, window: MainWindow
) -> None:
    for seed in (1, 2, 3):
        controller.editing.edit(GoToSeed(seed))
        current = controller.editing.history.current
        assert current is not None
        controller.editing.kept.star(current.number, True)
    numbers = tuple(entry.number for entry in controller.editing.history.kept)
    window.history.mix_grid_requested.emit(numbers[::-1], "columns")
    window.history.mix_grid_requested.emit(numbers[:1], "rows")
    assert controller.grid.shape == (2, 4)
    assert [view.cells._cells[0, column].name for column in (1, 2, 3)] == ["Seed 3", "Seed 2", "Seed 1"]


def test_the_sheet_goes_where_the_user_says(
    view: VariationView, controller: FakeController, window: MainWindow, tmp_path: Path
) -> None:
    QTest.mouseClick(view.bar.save, Qt.MouseButton.LeftButton)
    (chooser,) = window.findChildren(QFileDialog)
    chooser.fileSelected.emit(str(tmp_path / "sheet.png"))
    chooser.close()
    assert len([call for call in controller.calls if call[0] == "sheet_cell"]) == 9


def test_without_a_model_the_canvas_reports_it_and_the_grid_comes_back_with_the_next(
    view: VariationView, controller: FakeController
) -> None:
    controller.show_model(None)
    assert view.isHidden()
    controller.show_model(facts(name="Other", model_id="b" * 64))
    assert view.isVisible()


def test_the_menu_of_a_cell_has_every_action(view: VariationView) -> None:
    menu = view.cells.menu_of((1, 1))
    assert [action.text() for action in menu.actions()] == ["Continue from here", "Keep", "Lock", "Pick as a parent"]
    menu.deleteLater()


def test_nothing_of_the_canvas_covers_the_grid_and_its_line_has_room_beside_messages(
    window: MainWindow, controller: FakeController, messages: MessageLog
) -> None:
    lay_out(window, 1280, 720)
    messages.error("The file could not be read.")  # the canvas has no line while messages have its room
    controller.grid.set_on(True)
    QApplication.processEvents()
    view, line = window.variations, window.canvas.caption_rect()
    assert not line.intersects(QRectF(view.cells.geometry()))
    lay_out(window, 1300, 740)
    assert window.canvas.childAt(line.center().toPoint()) in (view, *view.findChildren(QWidget))
    assert window.canvas.childAt(window.tools.points.button.geometry().center()) in (
        view,
        *view.findChildren(QWidget),
    )


@pytest.mark.parametrize("side", [3, 8])
def test_a_small_window_has_room_for_bar_and_cells(window: MainWindow, controller: FakeController, side: int) -> None:
    lay_out(window, 1280, 720)
    controller.grid.change(side=side)
    controller.grid.set_on(True)
    QApplication.processEvents()
    view = window.variations
    shown = [part for part in view.bar.findChildren(type(view.bar.roll)) if part.isVisible()]
    assert all(part.geometry().right() <= view.bar.width() for part in shown)
    assert view.cells.cell_rect(MIDDLE).width() > 30
    assert all(view.cells.rect().contains(view.cells.cell_rect(cell).toRect()) for cell in controller.grid.cells)
    view.grab()


def test_small_cells_have_small_gaps_and_are_still_squares(view: VariationView, controller: FakeController) -> None:
    def gap() -> float:
        first, second = (view.cells.cell_rect(cell) for cell in ((0, 0), (0, 1)))
        return second.left() - first.right()

    view.cells.resize(600, 600)
    usual = gap()
    view.cells.resize(120, 120)
    assert 0 < gap() < usual
    assert all(view.cells.rect().contains(view.cells.cell_rect(cell).toRect()) for cell in controller.grid.cells)


@pytest.mark.parametrize(("word", "fits", "shown"), [("now", "now", "now"), ("picked", "pi", "pi"), ("parent", "", "")])
def test_a_state_in_a_small_cell_is_shown_by_as_many_letters_as_fit(word: str, fits: str, shown: str) -> None:
    metrics = QFontMetrics(fonts.caption())
    assert fitting_word(word, metrics, metrics.horizontalAdvance(fits)) == shown


def test_a_grid_that_is_higher_than_a_low_view_scrolls_with_cells_that_can_be_seen(qtbot: QtBot) -> None:
    cells = CellsView()
    qtbot.addWidget(cells)
    cells.resize(300, 64)
    looks = {
        (row, column): CellLook("", is_current=(row, column) == MIDDLE)
        for row in range(-2, 3)
        for column in range(-2, 3)
    }
    cells.show_cells(looks, (5, 5), (-2, -2))
    cells.show()
    assert cells.bar.isVisible()
    side = cells.cell_rect(MIDDLE).height()
    assert side >= theme.px(40)
    assert cells.cell_rect((0, 2)).right() < cells.bar.geometry().left()
    assert cells.cell_rect(MIDDLE).center().y() == pytest.approx(32, abs=1), "the picture now is in the middle"
    for key, cell in ((Qt.Key.Key_Up, (-2, 0)), (Qt.Key.Key_Down, (2, 0))):
        while cells.focused != cell:
            QTest.keyClick(cells, key)
        assert QRectF(cells.rect()).contains(cells.cell_rect(cell))
    wheel(cells, QPoint(100, 30), 1)
    assert cells.cell_rect((2, 0)).bottom() > cells.height()
    cells.resize(300, 400)
    assert not cells.bar.isVisible()
    assert QRectF(cells.rect()).contains(cells.cell_rect((2, 2)))


def test_of_a_small_kept_picture_no_part_of_a_long_name_covers_it(qtbot: QtBot) -> None:
    def painted(name: str) -> QImage:
        cells = CellsView()
        qtbot.addWidget(cells)
        cells.resize(100, 60)
        cells.show_cells({(0, 1): CellLook(name, is_edge=True)}, (1, 2), (0, 0))
        return cells.grab().toImage()

    assert painted("a name that is much too long") == painted("")
    assert painted("hi") != painted("")


@pytest.mark.parametrize("tool", ["drag-points", "transform", "layer"])
def test_a_tool_or_a_layer_needs_the_picture_so_that_the_grid_is_left(
    view: VariationView, window: MainWindow, controller: FakeController, tool: str
) -> None:
    controller.show_model(facts(has_transform=True))
    window.actions_by_key[tool].trigger()
    assert window.actions_by_key[tool].isChecked()
    assert view.isHidden()
    assert window.canvas.hasFocus()
    window.actions_by_key["variations"].trigger()
    assert view.isVisible()
    assert window.actions_by_key[tool].isChecked() == (tool == "layer"), "the picture is a layer after the grid too"


@pytest.mark.parametrize("kind", ["random", "axes", "mix"])
@pytest.mark.parametrize("height", [72, 160, 400])
def test_the_bar_is_whole_on_a_low_and_narrow_canvas(
    view: VariationView, window: MainWindow, controller: FakeController, kind: GridKind, height: int
) -> None:
    controller.grid.change(kind=kind)
    window.canvas.resize(318, height)
    QApplication.processEvents()
    bar = view.bar
    assert bar.second_line.isVisible() == (height > 300)
    for line in (bar.first_line, bar.second_line):
        assert not line.isVisible() or line.height() >= line.sizeHint().height()
        shown = [part for part in line.findChildren(QWidget, options=DIRECT) if part.isVisible()]
        for part in shown:
            assert line.rect().contains(part.geometry())
            assert part.width() >= part.minimumSizeHint().width()
            assert not any(part.geometry().intersects(other.geometry()) for other in shown if other is not part)
    assert bar.rect().bottom() < view.cells.y()
    left_out = (*bar.first_line.left_out, *bar.second_line.left_out)
    assert (bar.spread in left_out or bar.spread.isVisible()) == (kind != "mix")
    assert (bar.across in left_out or bar.across.isVisible()) == (kind == "axes")
    assert (bar.rows in left_out or bar.rows.isVisible()) == (kind != "axes")


def test_tab_and_f6_lead_to_the_grid_and_nowhere_behind_it(view: VariationView, window: MainWindow) -> None:
    behind = [widget for widget in window.canvas.findChildren(QWidget) if not view.isAncestorOf(widget)]
    visited: list[QWidget] = []
    while len(visited) < 400 and (not visited or visited[-1] is not view.cells):
        QTest.keyClick(focused(), Qt.Key.Key_Tab)
        visited.append(focused())
    assert visited[-1] is view.cells
    assert not {window.canvas, *behind} & set(visited)
    window.actions_by_key["next-panel"].trigger()
    assert not view.isAncestorOf(focused())
    window.actions_by_key["previous-panel"].trigger()
    assert view.cells.hasFocus()
    view.leave()
    assert window.canvas.hasFocus()


def focused() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget
