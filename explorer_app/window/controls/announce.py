"""Says to screen readers what a key has changed inside of a widget that paints its own items."""

from __future__ import annotations

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget


def announce(widget: QWidget, text: str) -> None:
    """Make a text the description of a widget, and let screen readers say it now; nothing if it is that already."""
    if text == widget.accessibleDescription():
        return
    widget.setAccessibleDescription(text)
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))
