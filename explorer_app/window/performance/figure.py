"""A figure that matters: a large number, its unit, and below it what it is."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer_app.window import fonts, theme


class Figure(QWidget):
    """Painted, so that a new number costs no layout and nothing beside it moves."""

    def __init__(self, caption: str, unit: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._caption = caption
        self._unit = unit
        self._value = "–"
        self.setToolTip(tip)
        self.setAccessibleName(f"{caption}: –")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def value(self) -> str:
        """What it shows."""
        return self._value

    @property
    def caption(self) -> str:
        """What it says below the number."""
        return self._caption

    def set_meaning(self, caption: str, unit: str, tip: str) -> None:
        """Let it stand for something else, with no number yet."""
        if tip != self.toolTip():
            self._unit = unit
            self.setToolTip(tip)
            self.show_value("–", caption)

    def show_value(self, value: str, caption: str = "") -> None:
        """Show a number, and another caption if there is one."""
        if (value, caption or self._caption) == (self._value, self._caption):
            return
        self._value = value
        self._caption = caption or self._caption
        self.setAccessibleName(f"{self._caption}: {value} {self._unit}".rstrip())
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return room for four digits and a unit."""
        return QSize(theme.px(84), theme.px(46))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return room for three digits."""
        return QSize(theme.px(56), theme.px(46))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint number, unit and caption on two base lines."""
        tokens = theme.current()
        painter = QPainter(self)
        figure, caption = fonts.figure(), fonts.caption()
        width = QFontMetricsF(figure).horizontalAdvance(self._value)
        line = QFontMetricsF(figure).ascent() + 1
        painter.setFont(figure)
        painter.setPen(QColor(tokens.strong))
        painter.drawText(QPointF(0, line), self._value)
        painter.setFont(caption)
        painter.setPen(QColor(tokens.dim))
        if self._unit and self._value != "–":
            painter.drawText(QPointF(width + theme.px(3), line), self._unit)
        metrics = QFontMetricsF(caption)
        painter.drawText(QPointF(0, self.height() - metrics.descent() - 2), self._caption)


def milliseconds(value: float) -> str:
    """Return a time with three figures at most, so that it keeps its width: 0.42, 4.21, 42.1, 421."""
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"
