"""The spectrum of a channel in dB, with the lowest frequencies in the centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer_app.window.layers import spectrum_scale
from explorer_app.window.layers.layer_text import decibels_text, frequency_text
from explorer_app.window.look import theme

_TIP = (
    "Spectrum: magnitude of the Fourier transform in decibels, less the mean, under a Hann window. The middle is "
    "0 cycles a pixel, the borders are half a cycle a pixel; point at a wave for its frequency and level."
)

_LEAST_PX, _MOST_PX = 112, 260
"""Side of the square, in px."""


class SpectrumView(QWidget):
    """A square image in the colours of the theme.

    Signals
    -------
    pointed(str)
        Frequency and level under the pointer; empty when the pointer leaves.
    """

    pointed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("spectrum")
        self.setAccessibleName("Spectrum")
        self.setToolTip(_TIP)
        self.setAccessibleDescription(_TIP)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self._side = theme.px(_LEAST_PX)
        self._spectrum: NDArray[np.float32] | None = None
        self._image: QImage | None = None
        self.ends_db: tuple[float, float] | None = None
        """Levels of the darkest and the brightest shade; None while there is no spectrum."""

    @property
    def spectrum(self) -> NDArray[np.float32] | None:
        """The shown spectrum, (height, width) float32 in dB; None for none."""
        return self._spectrum

    def show_spectrum(self, spectrum: NDArray[np.float32] | None) -> None:
        """Show a spectrum (height, width) in dB with the lowest frequency in the centre; None clears it."""
        self._spectrum = spectrum
        self._image = self.ends_db = None
        if spectrum is not None:
            self.ends_db = spectrum_scale.ends_of(spectrum)
            shades = spectrum_scale.shades(spectrum, self.ends_db)
            height, width = shades.shape
            image = QImage(shades.data, width, height, width, QImage.Format.Format_Indexed8)
            image.setColorTable(colours())
            self._image = image.copy()  # owns its memory
        self.update()

    def set_side(self, side: float) -> None:
        """Set the side of the square in px, clamped to a useful range."""
        side = round(max(theme.px(_LEAST_PX), min(theme.px(_MOST_PX), side)))
        if side != self._side:
            self._side = side
            self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of the square."""
        return QSize(self._side, self._side)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest usable square."""
        return QSize(theme.px(_LEAST_PX), theme.px(_LEAST_PX))

    def square(self) -> QRectF:
        """Return the rectangle of the image."""
        side = min(self.width(), self.height())
        return QRectF(0, self.height() - side, side, side)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Report the frequency under the pointer."""
        self.pointed.emit(self.text_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Report that the pointer left."""
        super().leaveEvent(event)
        self.pointed.emit("")

    def text_at(self, place: QPointF) -> str:
        """Return a text with the frequency and level at a point; empty outside the image."""
        square = self.square()
        if self._spectrum is None or not square.contains(place):
            return ""
        height, width = self._spectrum.shape
        column = min(width - 1, int((place.x() - square.x()) * width / square.width()))
        row = min(height - 1, int((place.y() - square.y()) * height / square.height()))
        across, down = spectrum_scale.wave_at(column, row, (height, width))
        return f"{frequency_text(across, down)}\n{decibels_text(float(self._spectrum[row, column]))}"

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Recolour the image after a theme change."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and getattr(self, "_image", None) is not None:
            self.show_spectrum(self._spectrum)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the image in a rounded frame."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        square, frame = self.square(), QPainterPath()
        frame.addRoundedRect(square.adjusted(0.5, 0.5, -0.5, -0.5), theme.RADIUS - 2, theme.RADIUS - 2)
        painter.fillPath(frame, QColor(colours()[0]))
        if self._image is not None:
            painter.setClipPath(frame)
            enlarges = self._image.width() < square.width() * self.devicePixelRatioF()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, not enlarges)
            painter.drawImage(square, self._image)
            painter.setClipping(False)
        painter.setPen(theme.mixed(tokens.panel, tokens.edge, 0.8))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(frame)


def colours() -> list[int]:
    """Return 256 theme colours from the lowest level to the highest: well, accent, strong."""
    tokens = theme.current()
    half = [theme.mixed(tokens.well, tokens.accent, step / 127) for step in range(128)]
    rest = [theme.mixed(tokens.accent, tokens.strong, step / 127) for step in range(128)]
    return list(map(QColor.rgb, (*half, *rest)))
