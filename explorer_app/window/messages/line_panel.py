"""The panel that the lines below the picture are painted on."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QWidget

from explorer_app.window.look import theme


def paint_panel(line: QWidget) -> tuple[QPainter, QRectF]:
    """Paint the panel of a line during its paint event; return the painter, and the panel in px."""
    tokens = theme.current()
    painter = QPainter(line)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(theme.mixed(tokens.panel, tokens.edge, 0.55), 1))
    painter.setBrush(QColor(tokens.panel))
    area = QRectF(line.rect()).adjusted(0.5, theme.px(3) + 0.5, -0.5, -0.5)
    painter.drawRoundedRect(area, theme.RADIUS, theme.RADIUS)
    return painter, area
