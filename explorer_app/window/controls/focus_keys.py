"""Keys that Qt leaves out in windows without a default button: Enter presses the focused one, Shift+F10 opens menus."""

from __future__ import annotations

import sys

from PySide6.QtCore import QCoreApplication, QEvent, QRectF, Qt
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QPushButton, QToolButton, QWidget

_QT_OPENS_MENUS = sys.platform == "win32"
"""Whether Qt takes Shift+F10 for the menu key."""


class FocusKeys:
    """Acts on the widget with the focus by keys that it has ignored and that reached the window around it."""

    def __init__(self) -> None:
        self._had_focus: QWidget | None = None

    def note(self, event: QEvent) -> None:
        """Remember who has the focus when a key is pressed: a field may pass it on by a key that it then ignores."""
        if event.type() == QEvent.Type.ShortcutOverride:
            self._had_focus = QApplication.focusWidget()

    def act(self, event: QKeyEvent) -> bool:
        """Do what a pressed key means for the widget with the focus; return whether it means something."""
        widget, had_focus, self._had_focus = QApplication.focusWidget(), self._had_focus, None
        if widget is None or widget is not had_focus:
            return False
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and isinstance(widget, QAbstractButton):
            if not event.isAutoRepeat():
                _press(widget)
            return True
        if event.key() == Qt.Key.Key_F10 and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            if not _QT_OPENS_MENUS:
                _open_menu(widget)
            return True
        return False


def _press(button: QAbstractButton) -> None:
    instant = QToolButton.ToolButtonPopupMode.InstantPopup
    presses = isinstance(button, QToolButton) and button.popupMode() != instant
    if isinstance(button, QPushButton | QToolButton) and button.menu() is not None and not presses:
        button.showMenu()
    else:
        button.click()


def _open_menu(widget: QWidget) -> None:
    """Send what Qt sends for the menu key."""
    cursor = widget.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)
    place = QRectF(cursor).center().toPoint() if cursor is not None else widget.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, place, widget.mapToGlobal(place))
    QCoreApplication.sendEvent(widget, event)
