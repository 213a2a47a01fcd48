"""A sheet that was opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImageReader
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer_app.exporting.sheet import read_sheet, write_grid_sheet
from explorer_app.window.export.sheet_dialog import SheetDialog
from gpu_backend import Latent, Point, Recipe, RenderRequest
from tests.helpers.fake_engine import fake_frame

PICTURES = {(0, 0): 1, (0, 1): 2, (1, 0): 3}
"""Seeds by row and column; the fourth place is empty."""


@pytest.fixture
def dialog(qtbot: QtBot, tmp_path: Path) -> SheetDialog:
    path = tmp_path / "grid.png"
    requests = {
        place: RenderRequest("ab" * 32, ((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),))
        for place, seed in PICTURES.items()
    }
    write_grid_sheet(path, {place: fake_frame(request) for place, request in requests.items()}, side_px=20)
    sheet = read_sheet(path)
    assert sheet is not None
    made = SheetDialog(path, sheet)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(made)
    made.show()
    return made


def centre(dialog: SheetDialog, row: int, column: int) -> QPoint:
    """Return the middle of a place, which fills a quarter of the square sheet."""
    view = dialog.view
    side = min(view.width(), view.height())
    left, top = (view.width() - side) // 2, (view.height() - side) // 2
    return QPoint(left + side * (1 + 2 * column) // 4, top + side * (1 + 2 * row) // 4)


@pytest.fixture
def small_limit() -> Iterator[None]:
    """Let Qt read pictures of up to 1 MB."""
    usual = QImageReader.allocationLimit()
    QImageReader.setAllocationLimit(1)
    yield
    QImageReader.setAllocationLimit(usual)


def test_a_sheet_larger_than_qt_reads_usually_is_shown(small_limit: None, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "print.png"
    frame = fake_frame(RenderRequest("ab" * 32, ((Recipe(Latent(Point(((1, 1.0),)))), 1.0),)))
    write_grid_sheet(path, {(0, 0): frame}, side_px=700)
    sheet = read_sheet(path)
    assert sheet is not None
    made = SheetDialog(path, sheet)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(made)
    made.show()
    with qtbot.waitSignal(made.chosen):
        QTest.mouseClick(made.view, Qt.MouseButton.LeftButton, pos=made.view.rect().center())
    assert QImageReader.allocationLimit() == 1, "the limit of other pictures stays"


def test_a_click_takes_the_picture_under_the_pointer(dialog: SheetDialog, qtbot: QtBot) -> None:
    with qtbot.waitSignal(dialog.chosen) as chosen:
        QTest.mouseClick(dialog.view, Qt.MouseButton.LeftButton, pos=centre(dialog, 1, 0))
    assert chosen.args == [2]
    assert not dialog.isVisible()


def test_an_empty_place_and_the_margin_take_nothing(dialog: SheetDialog) -> None:
    for point in (centre(dialog, 1, 1), QPoint(0, 0)):
        QTest.mouseClick(dialog.view, Qt.MouseButton.LeftButton, pos=point)
    assert dialog.isVisible()


def test_the_arrow_keys_choose_and_enter_takes(dialog: SheetDialog, qtbot: QtBot) -> None:
    QTest.keyClick(dialog.view, Qt.Key.Key_Down)
    QTest.keyClick(dialog.view, Qt.Key.Key_Right)
    assert dialog.view.place == 2, "the place to its right is empty"
    QTest.keyClick(dialog.view, Qt.Key.Key_Up)
    with qtbot.waitSignal(dialog.chosen) as chosen:
        QTest.keyClick(dialog.view, Qt.Key.Key_Return)
    assert chosen.args == [0]
