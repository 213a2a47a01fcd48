"""Paints sliders, for the widget and for list rows without widgets."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from explorer_app.window.look import ink, theme

HANDLE = 6.0
"""Radius of the handle in px."""

_TRACK = 4.0
_PLAYED = 3.5
"""Radius of the dot of a played value in px, without its rim."""
_TICK = 9.0
"""Half the height of the neutral value's mark in px: taller than the handle, so that it stays visible below it."""


def paint_slider(
    painter: QPainter,
    rect: QRectF,
    *,
    at: float,
    neutral: float,
    marks: Sequence[float] = (),
    played: float | None = None,
    enabled: bool = True,
    hot: bool = False,
    focused: bool = False,
) -> None:
    """Paint a slider into a rectangle; positions are x coordinates of the painter.

    `played` is where a dot shows the value that a sound or a controller gives the parameter; None for no dot.
    """
    tokens = theme.current()
    middle = rect.center().y()
    inset = HANDLE + 0.5
    track = QRectF(rect.left() + inset, middle - _TRACK / 2, rect.width() - 2 * inset, _TRACK)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(tokens.track))
    painter.drawRoundedRect(track, _TRACK / 2, _TRACK / 2)
    accent = QColor(tokens.accent if enabled else tokens.edge)
    tick = QColor(tokens.dim if enabled else tokens.edge)
    for mark in marks:
        painter.fillRect(QRectF(round(mark) - 0.5, middle + 4, 1, 3), tick)
    painter.fillRect(QRectF(round(neutral) - 0.5, middle - _TICK, 1, 2 * _TICK), tick)
    painter.setBrush(accent)
    painter.drawRect(QRectF(min(at, neutral), middle - _TRACK / 2, abs(at - neutral), _TRACK))
    if focused:
        halo = QColor(tokens.accent)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(halo, 1.5))
        painter.drawEllipse(QPointF(at, middle), HANDLE + 2.5, HANDLE + 2.5)
    knob = ink.light() if enabled else QColor(tokens.edge)
    painter.setPen(QPen(theme.mixed(tokens.edge, tokens.dim, 1.0 if hot else 0.5), 1.0))
    painter.setBrush(knob)
    painter.drawEllipse(QPointF(at, middle), HANDLE - 0.5, HANDLE - 0.5)
    if played is not None:
        painter.setPen(QPen(QColor(tokens.panel), 1.5))
        painter.setBrush(QColor(tokens.accent))
        painter.drawEllipse(QPointF(played, middle), _PLAYED, _PLAYED)
