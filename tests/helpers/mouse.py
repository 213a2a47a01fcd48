"""Real mouse and key events."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

LEFT = Qt.MouseButton.LeftButton
MIDDLE = Qt.MouseButton.MiddleButton
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
NONE = Qt.KeyboardModifier.NoModifier


def press(widget: QWidget, at: QPoint, button: Qt.MouseButton = LEFT) -> None:
    QTest.mousePress(widget, button, NONE, at)


def move(widget: QWidget, to: QPoint, button: Qt.MouseButton = LEFT, keys: Qt.KeyboardModifier = NONE) -> None:
    """Move with a button held, which QTest's own move does not do."""
    event = QMouseEvent(
        QMouseEvent.Type.MouseMove, QPointF(to), QPointF(widget.mapToGlobal(to)), Qt.MouseButton.NoButton, button, keys
    )
    QApplication.sendEvent(widget, event)


def release(widget: QWidget, at: QPoint, button: Qt.MouseButton = LEFT) -> None:
    QTest.mouseRelease(widget, button, NONE, at)


def drag(
    widget: QWidget,
    path: Sequence[QPoint],
    button: Qt.MouseButton = LEFT,
    keys: Qt.KeyboardModifier = NONE,
) -> None:
    """Press at the first point, move through the others, release at the last."""
    press(widget, path[0], button)
    for point in path[1:]:
        move(widget, point, button, keys)
    release(widget, path[-1], button)


def wheel(widget: QWidget, at: QPoint, notches: int, keys: Qt.KeyboardModifier = NONE) -> None:
    event = QWheelEvent(
        QPointF(at),
        QPointF(widget.mapToGlobal(at)),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


def drop(widget: QWidget, path: str) -> QDropEvent:
    """Drag a file over a widget and drop it there."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path)])
    entering = QDragEnterEvent(QPoint(50, 50), Qt.DropAction.CopyAction, data, LEFT, NONE)
    QApplication.sendEvent(widget, entering)
    dropping = QDropEvent(QPointF(50, 50), Qt.DropAction.CopyAction, data, LEFT, NONE)
    QApplication.sendEvent(widget, dropping)
    return dropping
