"""Items of a list with pictures."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QImage, QPixmap
from PySide6.QtWidgets import QListView, QListWidget, QListWidgetItem
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.picture_delegate import MARK, PictureDelegate
from explorer_app.window.look import theme

PICTURE = QColor(20, 90, 200)


@pytest.fixture(params=[QListView.ViewMode.ListMode, QListView.ViewMode.IconMode])
def view(qtbot: QtBot, request: pytest.FixtureRequest) -> QListWidget:
    view = QListWidget()
    qtbot.addWidget(view)
    view.setViewMode(request.param)
    view.setIconSize(QSize(32, 32))
    view.setItemDelegate(PictureDelegate(view))
    picture = QPixmap(32, 32)
    picture.fill(PICTURE)
    for name in ("first", "second"):
        view.addItem(QListWidgetItem(QIcon(picture), name))
    view.resize(300, 200)
    view.show()
    return view


def colours(view: QListWidget, row: int) -> list[QColor]:
    area = view.visualItemRect(view.item(row))
    image: QImage = view.viewport().grab(area).toImage()
    return [image.pixelColor(QPoint(x, y)) for x in range(image.width()) for y in range(image.height())]


def test_a_selected_picture_is_outlined_and_keeps_its_colours(view: QListWidget) -> None:
    accent, before = QColor(theme.current().accent), colours(view, 1)
    assert accent not in before
    view.item(1).setSelected(True)
    after = colours(view, 1)
    assert accent in after
    assert after.count(PICTURE) >= before.count(PICTURE) - 4 * 32  # the outline may cover its edge
    assert colours(view, 0).count(accent) == 0


def test_the_current_item_is_framed_and_what_it_shows_is_not_covered(view: QListWidget) -> None:
    view.item(0).setData(MARK, "A")
    before = colours(view, 0).count(PICTURE)
    view.setFocus()
    view.setCurrentRow(0)
    view.clearSelection()
    assert colours(view, 0).count(PICTURE) >= before - 4 * 32


def test_a_mark_is_shown_in_rows(view: QListWidget) -> None:
    before = colours(view, 0)
    view.item(0).setData(MARK, "A")
    assert (colours(view, 0) != before) == (view.viewMode() == QListView.ViewMode.ListMode)


def test_a_list_with_long_names_elides_them(view: QListWidget) -> None:
    view.item(0).setText("a name that is much longer than any list is wide " * 3)
    assert view.visualItemRect(view.item(0)).width() <= view.viewport().width()
    assert view.horizontalScrollBarPolicy() == Qt.ScrollBarPolicy.ScrollBarAsNeeded
    assert not view.horizontalScrollBar().isVisible()
