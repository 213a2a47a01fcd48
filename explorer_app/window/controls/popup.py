"""A small panel that opens beside what asked for it and closes when one clicks elsewhere."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QWidget

from explorer_app.window import theme


class Popup(QFrame):
    """A popup with the look of a menu. Escape and a click elsewhere close it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)

    def open_at(self, point: QPoint) -> None:
        """Open with the upper left corner at a place on the screen, moved so that all of it is seen."""
        self.adjustSize()
        screen = QGuiApplication.screenAt(point) or self.screen()
        area = screen.availableGeometry()
        x = max(area.left(), min(point.x(), area.right() - self.width()))
        y = max(area.top(), min(point.y(), area.bottom() - self.height()))
        self.move(x, y)
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A rounded ground with a hairline."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(tokens.edge), 1))
        painter.setBrush(QColor(tokens.head))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), theme.RADIUS, theme.RADIUS)
        painter.end()
