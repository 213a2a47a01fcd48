"""A button in the line of the caption, where messages lie at times."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import QAction, QCursor, QHideEvent, QMouseEvent, QMoveEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QWidget

from explorer_app.window.controls.action_button import ActionButton


class CaptionButton(ActionButton):
    """Ignores clicks for a moment after it came under the pointer by itself, or until the pointer leaves it.

    It takes the place of the x of a message that was closed, where a second click would start a tool.
    """

    def __init__(self, action: QAction, canvas: QWidget) -> None:
        super().__init__(action, canvas, role="flat")
        self._arrival = QTimer(self, singleShot=True)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Note that it may have come under the pointer."""
        super().showEvent(event)
        self._arrive()

    def moveEvent(self, event: QMoveEvent) -> None:  # noqa: N802 - Qt's name
        """Note that it may have come under the pointer."""
        super().moveEvent(event)
        self._arrive()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Forget where it came."""
        self._arrival.stop()
        super().hideEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Take the next click: who comes back means the button."""
        self._arrival.stop()
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Ignore clicks for a moment, those of a double-click too."""
        if self._arrival.isActive():
            self._arrival.start()  # the clicks may go on
        else:
            super().mousePressEvent(event)

    def _arrive(self) -> None:
        if self.isVisible() and self.rect().contains(self.mapFromGlobal(QCursor.pos())):
            self._arrival.start(QApplication.doubleClickInterval())
