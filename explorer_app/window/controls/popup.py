"""A small popup panel beside the widget that opened it; a click elsewhere closes it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPainterPath, QPaintEvent, QPen, QRegion, QResizeEvent
from PySide6.QtWidgets import QFrame, QWidget

from explorer_app.window.look import theme


class Popup(QFrame):
    """A popup with the look of a menu. Escape and a click elsewhere close it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        # Without a compositor, as on bare X11, translucent areas are black.
        self._is_translucent = QGuiApplication.platformName() not in ("xcb", "offscreen")
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground, self._is_translucent)

    def open_at(self, point: QPoint) -> None:
        """Open with the upper left corner at a screen position, moved if needed so that all of it is on the screen."""
        self.adjustSize()
        screen = QGuiApplication.screenAt(point) or self.screen()
        area = screen.availableGeometry()
        x = max(area.left(), min(point.x(), area.right() - self.width()))
        y = max(area.top(), min(point.y(), area.bottom() - self.height()))
        self.move(x, y)
        self.show()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Mask the corners if they cannot be translucent."""
        super().resizeEvent(event)
        if not self._is_translucent:
            path = QPainterPath()
            path.addRoundedRect(QRectF(self.rect()), theme.RADIUS, theme.RADIUS)
            self.setMask(QRegion(path.toFillPolygon().toPolygon()))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint a rounded background with a hairline."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._is_translucent:
            painter.fillRect(self.rect(), QColor(tokens.edge))  # fills the hairline's corners inside the mask
        painter.setPen(QPen(QColor(tokens.edge), 1))
        painter.setBrush(QColor(tokens.head))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), theme.RADIUS, theme.RADIUS)
        painter.end()
