"""Names that users gave, as texts of menus."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication

from explorer_app.window.look import theme
from gpu_backend import printable

_MOST_PX = 260


def menu_text(name: str) -> str:
    """Return a name on one line, elided to a menu's width; an ampersand is shown and makes no mnemonic."""
    metrics = QFontMetrics(QGuiApplication.font())
    shown = metrics.elidedText(printable(name), Qt.TextElideMode.ElideRight, theme.px(_MOST_PX))
    return shown.replace("&", "&&")
