"""Draws handles and pins over a picture: each line in a light and a dark ink, to contrast with any picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from explorer_app.controller import DragPoint
from explorer_app.window.look import fonts, ink, theme

_RADIUS_PX = 7
_LABEL_FROM_PX = 24
"""Length of a way in px from which its distance is written beside it."""

Place = tuple[float, float]


def paint_points(
    painter: QPainter,
    points: Sequence[DragPoint],
    selected: int | None,
    place_of: Callable[[Place], Place],
    *,
    shows_distance: bool,
) -> None:
    """Paint points.

    Parameters
    ----------
    selected
        Index of the point that keys act on.
    place_of
        Maps pixels of the picture to px of the widget.
    shows_distance
        Write how many pixels a handle has to go, if the picture can follow it.
    """
    for point in points:
        if not point.is_pin:
            _paint_way(painter, QPointF(*place_of(point.content)), QPointF(*place_of(point.target)))
    for index, point in enumerate(points):
        place, target = QPointF(*place_of(point.content)), QPointF(*place_of(point.target))
        if point.is_pin:
            _paint_pin(painter, place)
        elif point.is_lost:
            _paint_cross(painter, place)
        else:
            if place != target:
                _paint_ring(painter, place, ink.light())
            _paint_disc(painter, target, is_weak=not point.pulls)
        if index == selected:
            _paint_ring(painter, place if point.is_pin else target, ink.light(), theme.px(_RADIUS_PX + 5), theme.px(1))
        if shows_distance and not point.is_pin and point.pulls:
            _paint_distance(painter, place, target, point.left)


def _paint_way(painter: QPainter, place: QPointF, target: QPointF) -> None:
    """Paint the dashed line from a handle to its target, between the two marks."""
    way = target - place
    length = math.hypot(way.x(), way.y())
    gap = theme.px(_RADIUS_PX + 1)
    if length <= 2 * gap:
        return
    first, last = place + way * (gap / length), target - way * (gap / length)
    painter.setPen(QPen(ink.veil(0.7), theme.px(4), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawLine(first, last)
    pen = QPen(ink.light(), theme.px(2), Qt.PenStyle.CustomDashLine, Qt.PenCapStyle.FlatCap)
    pen.setDashPattern([3.0, 2.0])
    painter.setPen(pen)
    painter.drawLine(first, last)


def _paint_ring(painter: QPainter, at: QPointF, colour: QColor, radius: float = 0.0, width: float = 0.0) -> None:
    size, wide = radius or theme.px(_RADIUS_PX), width or theme.px(2)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(ink.veil(0.75), wide + theme.px(2)), QPen(colour, wide)):
        painter.setPen(pen)
        painter.drawEllipse(at, size, size)


def _paint_disc(painter: QPainter, at: QPointF, *, is_weak: bool) -> None:
    """Paint a handle's target; hollow where the handle does not pull."""
    size = theme.px(_RADIUS_PX)
    if is_weak:
        _paint_ring(painter, at, QColor(theme.current().dim))
        return
    painter.setPen(QPen(ink.light(), theme.px(4)))
    painter.setBrush(QColor(theme.current().accent))
    painter.drawEllipse(at, size, size)
    painter.setPen(QPen(ink.dark(), theme.px(2)))
    painter.drawEllipse(at, size, size)


def _paint_pin(painter: QPainter, at: QPointF) -> None:
    colour = QColor(theme.current().sources[1])
    size = theme.px(_RADIUS_PX)
    _paint_ring(painter, at, colour)
    for pen in (QPen(ink.veil(0.75), theme.px(4)), QPen(colour, theme.px(2))):
        painter.setPen(pen)
        painter.drawLine(QPointF(at.x() - size, at.y()), QPointF(at.x() + size, at.y()))
        painter.drawLine(QPointF(at.x(), at.y() - size), QPointF(at.x(), at.y() + size))


def _paint_cross(painter: QPainter, at: QPointF) -> None:
    """Paint a handle that lost its content."""
    colour, size = QColor(theme.current().bad), 0.7 * theme.px(_RADIUS_PX)
    _paint_ring(painter, at, colour)
    for pen in (QPen(ink.veil(0.75), theme.px(4)), QPen(colour, theme.px(2))):
        painter.setPen(pen)
        painter.drawLine(QPointF(at.x() - size, at.y() - size), QPointF(at.x() + size, at.y() + size))
        painter.drawLine(QPointF(at.x() - size, at.y() + size), QPointF(at.x() + size, at.y() - size))


def _paint_distance(painter: QPainter, place: QPointF, target: QPointF, pixels: float) -> None:
    """Write the distance on a plate beside the target, on the side away from the way."""
    way = target - place
    if math.hypot(way.x(), way.y()) < theme.px(_LABEL_FROM_PX):
        return
    painter.setFont(fonts.caption())
    text = f"{pixels:.0f} px"
    metrics = painter.fontMetrics()
    width, height = metrics.horizontalAdvance(text) + theme.px(10), metrics.height() + theme.px(2)
    gap = theme.px(_RADIUS_PX + 6)
    left = target.x() + gap if way.x() >= 0 else target.x() - gap - width
    plate = QRectF(left, target.y() - height / 2, width, height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink.veil(0.75))
    painter.drawRoundedRect(plate, theme.px(4), theme.px(4))
    painter.setPen(ink.light())
    painter.drawText(plate, Qt.AlignmentFlag.AlignCenter, text)
