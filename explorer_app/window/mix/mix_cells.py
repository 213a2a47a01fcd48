"""Geometry and colours of the mix grid, shared by its head and its body."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap

from explorer_app.window.look import ink, theme
from gpu_backend import dataclass

_THUMB = 34
_PITCH = 38
_CELL_HEIGHT = 28
_LEFT = 8
_GAP = 3.0
_RING = 2.0
"""Space right of the last cell for its focus ring, in px."""


@dataclass(frozen=True, slots=True)
class GridShape:
    """Geometry of a grid with `columns` columns in a widget of `width` px, with a picture at the left of each line."""

    width: float
    columns: int

    @property
    def pitch_y(self) -> int:
        """Distance between lines, in px."""
        return theme.px(_PITCH)

    @property
    def thumb(self) -> int:
        """Side of a line's picture, in px."""
        return theme.px(_THUMB)

    @property
    def left(self) -> float:
        """Left edge of the first cell, in px."""
        return self.thumb + _LEFT

    @property
    def pitch_x(self) -> float:
        """Distance between cells, in px."""
        return (self.width - _RING - self.left + _GAP) / max(self.columns, 1)

    def cell(self, line: int, column: int, top: float = 0.0) -> QRectF:
        """Return a cell's rectangle."""
        height = theme.px(_CELL_HEIGHT)
        x0 = round(self.left + column * self.pitch_x)
        x1 = round(self.left + (column + 1) * self.pitch_x - _GAP)
        return QRectF(x0, top + line * self.pitch_y + (self.pitch_y - height) / 2, max(x1 - x0, 2), height)

    def picture(self, line: int, top: float = 0.0) -> QRectF:
        """Return the rectangle of a line's picture."""
        return QRectF(0, top + line * self.pitch_y + (self.pitch_y - self.thumb) / 2, self.thumb, self.thumb)

    def column_at(self, x: float) -> int:
        """Return the column at or nearest to x."""
        return min(max(int((x - self.left + _GAP / 2) / self.pitch_x), 0), self.columns - 1)


def source_colour(index: int) -> str:
    """Return the colour of a source; the first colour is reserved for the base."""
    return theme.source_colour(1 + index % (len(theme.current().sources) - 1))


def off_colour(colour: str) -> QColor:
    """Return the colour of a cell with strength 0."""
    return theme.mixed(theme.current().panel, colour, 0.14)


def cell_colour(colour: str, strength: float) -> QColor:
    """Return the colour of a cell; it intensifies with the strength."""
    share = 0.14 if strength <= 0 else 0.24 + 0.76 * min(strength, 1.0)
    return theme.mixed(theme.current().panel, colour, share)


def paint_picture(painter: QPainter, rect: QRectF, picture: QPixmap | None, mark: str = "") -> None:
    """Paint a line's picture or its placeholder, with a small ordinal in the corner."""
    ink.draw_tile(painter, rect, 4, picture)
    if mark:
        painter.save()
        badge = QRectF(rect.left(), rect.bottom() - 13, painter.fontMetrics().horizontalAdvance(mark) + 7, 13)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink.veil(0.66))
        painter.drawRoundedRect(badge, 3, 3)
        painter.setPen(ink.light())
        painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, mark)
        painter.restore()
