"""Legend of the spectrum: shades and their levels in decibels."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer_app.window.layers.layer_text import decibels_text
from explorer_app.window.layers.spectrum_view import colours
from explorer_app.window.look import fonts, theme

_BAR_PX = 8


class SpectrumLegend(QWidget):
    """A colour bar with the levels of its ends below."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ends_db: tuple[float, float] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip("Colour scale of the spectrum; 0 dB is a wave of amplitude 1.")
        self.show_ends(None)

    def show_ends(self, ends_db: tuple[float, float] | None) -> None:
        """Show the levels of the darkest and the brightest shade; None while there is no spectrum."""
        self._ends_db = ends_db
        self.setAccessibleName("No spectrum" if ends_db is None else f"Spectrum from {' to '.join(self.words())}")
        self.update()

    def words(self) -> tuple[str, str]:
        """Return the labels of both ends."""
        if self._ends_db is None:
            return "", ""
        return decibels_text(self._ends_db[0]), decibels_text(self._ends_db[1])

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of the bar and one line of text."""
        return QSize(theme.px(120), theme.px(_BAR_PX + 16))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of both labels."""
        return QSize(theme.px(90), theme.px(_BAR_PX + 16))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint bar and levels."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bar = QRectF(0.5, 0.5, self.width() - 1, theme.px(_BAR_PX))
        shades = colours()
        across = QLinearGradient(bar.topLeft(), bar.topRight())
        for place in range(0, 256, 51) if self._ends_db is not None else ():
            across.setColorAt(place / 255, QColor(shades[place]))
        painter.setPen(theme.mixed(theme.current().panel, theme.current().edge, 0.8))
        painter.setBrush(across if self._ends_db is not None else QColor(theme.current().well))
        painter.drawRoundedRect(bar, 3, 3)
        painter.setFont(fonts.caption())
        painter.setPen(QColor(theme.current().dim))
        below = QRectF(0, bar.bottom(), self.width(), self.height() - bar.bottom())
        low, high = self.words()
        painter.drawText(below, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, low)
        painter.drawText(below, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignRight, high)
