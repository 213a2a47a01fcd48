"""Whether a widget shows that it has the keyboard focus."""

from __future__ import annotations

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QWidget

from explorer_app.window.look import theme


def has_frame(widget: QWidget) -> bool:
    """Return whether the left edge of a widget is painted in the accent."""
    QApplication.processEvents()
    return widget.grab().toImage().pixelColor(0, widget.height() // 2) == QColor(theme.current().accent)
