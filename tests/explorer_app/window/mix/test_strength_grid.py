from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QKeySequence
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.window.mix.strength_grid import StrengthGrid
from tests.helpers.panels import SHIFT, drag, move, press, release, row_resolutions, wheel

ROWS = row_resolutions(256)
COUNT = len(ROWS)


class WatchedGrid(StrengthGrid):
    """A grid, and what was painted into it."""

    seen: list[tuple[object, bool]]


@pytest.fixture
def grid(qtbot: QtBot) -> WatchedGrid:
    grid = WatchedGrid()
    qtbot.addWidget(grid)
    grid.show_rows(ROWS)
    grid.show_sources(["first", "second"], ((0.0,) * COUNT, (0.0,) * 4 + (1.0,) * 10))
    grid.resize(300, grid.height())
    grid.seen = []
    grid.painted.connect(lambda strengths, final: grid.seen.append((strengths, final)))
    grid.show()
    grid.setFocus()
    return grid


def cell(grid: WatchedGrid, source: int, row: int) -> QPointF:
    return grid.cell_rect(source, row).center()


def finals(grid: WatchedGrid) -> list[object]:
    return [strengths for strengths, final in grid.seen if final]


def test_a_press_takes_the_opposite_and_a_drag_carries_it(grid: WatchedGrid) -> None:
    drag(grid, cell(grid, 0, 3), cell(grid, 0, 8))
    assert grid.strengths[0] == (0.0,) * 3 + (1.0,) * 6 + (0.0,) * 5
    assert len(finals(grid)) == 1


def test_a_drag_that_begins_on_a_full_cell_empties(grid: WatchedGrid) -> None:
    drag(grid, cell(grid, 1, 5), cell(grid, 1, 7))
    assert grid.strengths[1] == (0.0,) * 4 + (1.0, 0.0, 0.0, 0.0) + (1.0,) * 6


def test_a_gesture_too_fast_for_every_cell_leaves_no_gap(grid: WatchedGrid) -> None:
    drag(grid, cell(grid, 0, 0), cell(grid, 0, 13), steps=1)
    assert grid.strengths[0] == (1.0,) * COUNT


def test_a_drag_over_several_sources_is_one_gesture(grid: WatchedGrid) -> None:
    drag(grid, cell(grid, 0, 0), cell(grid, 1, 0), steps=1)
    assert (grid.strengths[0][0], grid.strengths[1][0]) == (1.0, 1.0)
    assert len(finals(grid)) == 1


def test_a_drag_that_leaves_the_grid_paints_up_to_its_edge(grid: WatchedGrid) -> None:
    drag(grid, cell(grid, 0, 10), QPointF(900.0, cell(grid, 0, 0).y()))
    assert grid.strengths[0][10:] == (1.0,) * 4


def test_escape_brings_back_what_was_before_the_drag(grid: WatchedGrid, qtbot: QtBot) -> None:
    before = grid.strengths
    press(grid, cell(grid, 0, 2))
    move(grid, cell(grid, 0, 9))
    with qtbot.waitSignal(grid.gesture_cancelled):
        qtbot.keyClick(grid, Qt.Key.Key_Escape)
    move(grid, cell(grid, 0, 12))
    release(grid, cell(grid, 0, 12))
    assert grid.strengths == before
    assert finals(grid) == []


def test_undo_brings_back_what_was_before_the_drag(grid: WatchedGrid) -> None:
    before = grid.strengths
    assert not grid.undo_drag()
    press(grid, cell(grid, 0, 2))
    move(grid, cell(grid, 0, 9))
    assert grid.undo_drag()
    move(grid, cell(grid, 0, 12))
    release(grid, cell(grid, 0, 12))
    assert grid.strengths == before
    assert finals(grid) == []


def test_an_update_during_a_drag_does_not_disturb_the_drag(grid: WatchedGrid) -> None:
    press(grid, cell(grid, 0, 2))
    grid.show_sources(["first", "second"], ((0.0,) * COUNT, (0.0,) * COUNT))
    move(grid, cell(grid, 0, 3))
    release(grid, cell(grid, 0, 3))
    assert grid.strengths[0][2:4] == (1.0, 1.0)
    assert grid.strengths[1][4] == 1.0


def test_the_wheel_sets_the_amount_of_the_cell_and_rests_as_one_gesture(grid: WatchedGrid, qtbot: QtBot) -> None:
    assert wheel(grid, cell(grid, 0, 1), 3)
    assert wheel(grid, cell(grid, 0, 1), -1, SHIFT)
    assert grid.strengths[0][1] == pytest.approx(0.29)
    qtbot.waitUntil(lambda: len(finals(grid)) == 1)


def test_a_wheel_that_turns_back_ends_its_gesture_too(grid: WatchedGrid) -> None:
    before = grid.strengths
    wheel(grid, cell(grid, 0, 3), 1)
    wheel(grid, cell(grid, 0, 3), -1)
    grid.finish()
    assert finals(grid) == [before]


def test_the_wheel_beside_the_cells_is_left_to_the_list(grid: WatchedGrid) -> None:
    assert not wheel(grid, grid.picture_rect(0).center(), 1)
    assert grid.seen == []


def test_amounts_stay_between_nothing_and_everything(grid: WatchedGrid) -> None:
    wheel(grid, cell(grid, 1, 8), 5)
    wheel(grid, cell(grid, 0, 1), -5)
    assert (grid.strengths[1][8], grid.strengths[0][1]) == (1.0, 0.0)


def test_a_press_between_takes_the_nearer_end(grid: WatchedGrid) -> None:
    grid.show_sources(["first"], ((0.3, 0.7, *(0.0,) * 12),))
    for row, expected in ((0, 1.0), (1, 0.0)):
        press(grid, cell(grid, 0, row))
        release(grid, cell(grid, 0, row))
        assert grid.strengths[0][row] == expected


def test_keys_move_toggle_and_change(grid: WatchedGrid, qtbot: QtBot) -> None:
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Space):
        qtbot.keyClick(grid, key)
    assert grid.current == (1, 2)
    assert grid.strengths[1][2] == 1.0
    qtbot.keyClick(grid, Qt.Key.Key_Minus)
    qtbot.keyClick(grid, Qt.Key.Key_Minus, SHIFT)
    assert grid.strengths[1][2] == pytest.approx(0.89)
    qtbot.keyClick(grid, Qt.Key.Key_Plus)
    assert grid.strengths[1][2] == pytest.approx(0.99)
    assert len(finals(grid)) == 4
    qtbot.keyClick(grid, Qt.Key.Key_End)
    qtbot.keyClick(grid, Qt.Key.Key_Up)
    qtbot.keyClick(grid, Qt.Key.Key_Up)
    assert grid.current == (0, 13)


def test_plus_and_minus_are_about_the_cell_and_not_about_the_window(grid: WatchedGrid, qtbot: QtBot) -> None:
    action = QAction("Zoom", grid)
    action.setShortcuts([QKeySequence("+"), QKeySequence("-")])
    action.triggered.connect(lambda: pytest.fail("the window took the key"))
    grid.addAction(action)
    qtbot.keyClick(grid, Qt.Key.Key_Plus)
    assert grid.strengths[0][0] == pytest.approx(0.1)


def test_the_cell_is_reported_to_screen_readers(grid: WatchedGrid, qtbot: QtBot) -> None:
    qtbot.keyClick(grid, Qt.Key.Key_Down)
    qtbot.keyClick(grid, Qt.Key.Key_End)
    assert grid.accessibleDescription() == "second, row 13, 256 px: 1.00"


def test_a_right_click_asks_for_the_source_and_paints_nothing(grid: WatchedGrid, qtbot: QtBot) -> None:
    place = cell(grid, 1, 5).toPoint()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, grid.mapToGlobal(place))
    with qtbot.waitSignal(grid.menu_requested) as signal:
        qtbot.mouseClick(grid, Qt.MouseButton.RightButton, pos=place)
        QApplication.sendEvent(grid, event)
    assert signal.args[:2] == [1, 5]
    assert grid.seen == []


def test_the_menu_key_asks_for_the_current_source(grid: WatchedGrid, qtbot: QtBot) -> None:
    qtbot.keyClick(grid, Qt.Key.Key_Down)
    with qtbot.waitSignal(grid.menu_requested) as signal:
        QApplication.sendEvent(grid, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(0, 0), QPoint(0, 0)))
    assert signal.args[0] == 1


def test_cells_do_not_overlap_and_fill_the_width(grid: WatchedGrid) -> None:
    for row in range(COUNT - 1):
        assert grid.cell_rect(0, row).right() < grid.cell_rect(0, row + 1).left()
    assert grid.cell_rect(0, COUNT - 1).right() == pytest.approx(grid.width(), abs=3)


def test_the_focus_ring_of_the_last_cell_is_whole(grid: WatchedGrid) -> None:
    grid.resize(300, grid.height())
    last = grid.cell_rect(len(grid.strengths) - 1, COUNT - 1)
    ring = last.adjusted(-2, -2, 2, 2)  # a px around the cell, and the width of the line
    assert QRectF(grid.rect()).contains(ring)


def test_an_empty_grid_takes_keys_and_presses_calmly(grid: WatchedGrid, qtbot: QtBot) -> None:
    grid.show_sources([], ())
    qtbot.keyClick(grid, Qt.Key.Key_Space)
    press(grid, QPointF(50, 5))
    assert grid.seen == []
    assert grid.sizeHint().height() == 0
