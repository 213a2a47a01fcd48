"""A tab in the header of a dock: dim text, with an accent line under the current page."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from explorer_app.window.look import fonts, theme


class HeaderTab(QAbstractButton):
    """One tab. A single tab acts as a title: it takes no focus, and dragging it moves the dock."""

    def __init__(self, title: str, turns: bool, parent: QWidget) -> None:
        super().__init__(parent)
        self._turns = turns
        self.setText(title)
        self.setAccessibleName(title)
        self.setCheckable(True)
        self.setAutoExclusive(True)
        self.setFont(fonts.body())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if turns else Qt.FocusPolicy.NoFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of the text; the accent line is as wide."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + theme.px(8), theme.px(30))

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A title lets the dock have the mouse."""
        if self._turns:
            super().mousePressEvent(event)
        else:
            event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A title lets the dock have the mouse."""
        if self._turns:
            super().mouseMoveEvent(event)
        else:
            event.ignore()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A title lets the dock have the mouse."""
        if self._turns:
            super().mouseReleaseEvent(event)
        else:
            event.ignore()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A title lets the dock have the mouse."""
        if self._turns:
            super().mouseDoubleClickEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the text, the accent line of the current page, and the focus ring."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bright = self.isChecked() or self.underMouse() or not self._turns
        painter.setPen(QColor(tokens.strong if bright else tokens.dim))
        painter.drawText(self.rect().adjusted(0, 0, 0, -2), Qt.AlignmentFlag.AlignCenter, self.text())
        if self.isChecked():
            painter.setPen(QPen(QColor(tokens.accent), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            y = self.height() - 1.0
            painter.drawLine(QPointF(1, y), QPointF(self.width() - 1, y))
        if self.hasFocus():
            painter.setPen(QPen(QColor(tokens.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            area = QRectF(self.rect()).adjusted(0.5, 4.5, -0.5, -5.5)
            painter.drawRoundedRect(area, 4, 4)
