"""Files that are dropped on the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication

from explorer_app.window.shell.file_drop import drop_text
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.windows import calls

ANY = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction | Qt.DropAction.LinkAction
PLACE = QPointF(7, 5)
LEFT, SHIFT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier


def files(*names: str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(f"/of a user/{name}") for name in names])
    return data


def test_a_dropped_file_is_copied_also_where_its_source_proposes_to_move_it(
    window: MainWindow, controller: FakeController
) -> None:
    data = files("evening.loom")
    enter = QDragEnterEvent(PLACE.toPoint(), ANY, data, LEFT, SHIFT)
    over = QDragMoveEvent(PLACE.toPoint(), ANY, data, LEFT, SHIFT)
    drop = QDropEvent(PLACE, ANY, data, LEFT, SHIFT)
    for event in (enter, over, drop):
        event.setDropAction(Qt.DropAction.MoveAction)
        QApplication.sendEvent(window, event)
        assert event.isAccepted()
        assert event.dropAction() == Qt.DropAction.CopyAction
    assert [call[1] for call in calls(controller, "open_file")] == [Path("/of a user/evening.loom")]


@pytest.mark.parametrize(
    ("names", "effect"),
    [
        (("evening.loom", "morning.loom"), "Drop to open the session evening.loom"),
        (("a.wav",), "Drop to add a.wav to the timeline"),
        (("photo.jpg", "a.wav", "b.flac"), "Drop to add a.wav and 1 more to the timeline"),
    ],
)
def test_the_text_of_a_drop_says_what_is_done_with_several_files(names: tuple[str, ...], effect: str) -> None:
    assert drop_text(QDropEvent(PLACE, ANY, files(*names), LEFT, SHIFT)) == effect
