"""The menu of a control whose parameter can get a track: a right click offers "Animate"."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QCoreApplication, QEvent, QPoint
from PySide6.QtWidgets import QMenu, QWidget


class AnimateRequest(QEvent):
    """Sent to the window of a control: a key of its parameter is wanted at the playhead.

    `path` is that of the parameter (`explorer_app.session.parameters`).
    """

    KIND: ClassVar[QEvent.Type] = QEvent.Type(QEvent.registerEventType())

    def __init__(self, path: str) -> None:
        super().__init__(self.KIND)
        self.path = path


def open_animate_menu(control: QWidget, path: str, place: QPoint) -> QMenu:
    """Open the menu of a control at a place on the screen, and return it."""
    menu = QMenu(control)
    menu.setToolTipsVisible(True)
    action = menu.addAction("Animate: key here")
    action.setToolTip("Make a key of this value at the playhead; the timeline gets a track for it.")
    action.triggered.connect(lambda: QCoreApplication.sendEvent(control.window(), AnimateRequest(path)))
    menu.popup(place)
    return menu
