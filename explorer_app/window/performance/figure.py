"""A headline figure: a large number with its unit, and a caption below."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer_app.window.look import fonts, theme

_SPACE = 3
"""Gap between number and unit, in px."""

_APART = 6
"""Smallest gap to the next figure, in px."""


class Figure(QWidget):
    """A painted figure: a new number triggers no layout and moves no neighbour."""

    def __init__(self, caption: str, unit: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._caption = caption
        self._unit = unit
        self._value = "–"
        self._short = ("", "")
        self.setToolTip(tip)
        self.setAccessibleName(f"{caption}: –")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def value(self) -> str:
        """The number as text."""
        return self._value

    @property
    def caption(self) -> str:
        """The caption below the number."""
        return self._caption

    def set_meaning(self, caption: str, unit: str, tip: str) -> None:
        """Set another caption, unit and tooltip, and clear the number."""
        if tip != self.toolTip():
            self._unit = unit
            self.setToolTip(tip)
            self.show_value("–", caption)

    def show_value(self, value: str, caption: str = "", *, short: tuple[str, str] = ("", "")) -> None:
        """Show a number, and a new caption if given; `short` has shorter forms of both for narrow figures."""
        if (value, caption or self._caption, short) == (self._value, self._caption, self._short):
            return
        self._value = value
        self._short = short
        self._caption = caption or self._caption
        self.setAccessibleName(f"{self._caption}: {value} {self._unit}".rstrip())
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of four digits and a unit."""
        return QSize(theme.px(84), theme.px(46))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of three digits."""
        return QSize(theme.px(56), theme.px(46))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint number, unit and caption on two baselines."""
        tokens = theme.current()
        painter = QPainter(self)
        figure, caption = fonts.figure(), fonts.caption()
        value, unit, words = self.fitting()
        width = QFontMetricsF(figure).horizontalAdvance(value)
        line = QFontMetricsF(figure).ascent() + 1
        painter.setFont(figure)
        painter.setPen(QColor(tokens.strong))
        painter.drawText(QPointF(0, line), value)
        painter.setFont(caption)
        painter.setPen(QColor(tokens.dim))
        if unit and value != "–":
            painter.drawText(QPointF(width + theme.px(_SPACE), line), unit)
        metrics = QFontMetricsF(caption)
        painter.drawText(QPointF(0, self.height() - metrics.descent() - 2), words)

    def fitting(self) -> tuple[str, str, str]:
        """Return number, unit and caption as painted, shortened if the full ones would touch a neighbour.

        If the unit does not fit beside the number, the caption contains it.
        """
        small, large = QFontMetricsF(fonts.caption()), QFontMetricsF(fonts.figure())
        room = self.width() - theme.px(_APART)
        unit = self._unit
        value, caption = self._short if self._short[0] else (self._value, self._caption)
        brief = caption.partition(" · ")[0]
        wordings = [
            (self._value, unit, self._caption),
            (value, unit, caption),
            (value, unit, brief),
            (value, "", f"{brief}, {unit}" if unit else brief),
            (value, "", f"{brief.rpartition(' ')[2]}, {unit}" if unit else brief),
        ]
        for value, unit, caption in wordings:
            beside = theme.px(_SPACE) + small.horizontalAdvance(unit) if unit else 0.0
            if max(large.horizontalAdvance(value) + beside, small.horizontalAdvance(caption)) <= room:
                break
        return value, unit, caption


def milliseconds(value: float) -> str:
    """Format a time in ms with at most three decimals, for constant width: 0.421, 4.21, 42.1, 421."""
    return f"{value:.3f}" if value < 0.9995 else short_milliseconds(value)


def short_milliseconds(value: float) -> str:
    """Format a time in ms with at most two decimals: 0.42, 4.21, 42.1, 421."""
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def short_count(value: int) -> str:
    """Format a count with at most three digits: 999, 7.8k, 78k, 1.2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        share = value / size
        if share >= 0.9995:
            return f"{share:.1f}{letter}" if share < 9.95 else f"{share:.0f}{letter}"
    return str(value)
