"""What is being recorded, over the rows of the timeline: it becomes keys once the hand lets go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from explorer_app.session.parameter_names import parameter_name
from explorer_app.session.session import Session
from explorer_app.window.look import fonts, theme
from explorer_app.window.timeline.timeline_scene import Scene
from explorer_app.window.timeline.track_rows import TrackRow, fitted_name, row_of

Samples = Sequence[tuple[Fraction, Any]]
Takes = Mapping[str, Sequence[Samples]]
"""By path: (seconds, value) pairs of each pass over what plays."""

_MOST_SAMPLES = 1500
"""The newest samples of a pass are painted: 25 s at 60 frames a second."""


def take_rows(rows: Sequence[TrackRow], takes: Takes, session: Session) -> Iterator[tuple[TrackRow, Samples]]:
    """Return the row of each pass of numbers, with room for its values.

    A parameter without a track gets a row below the others.
    """
    there = {row.track.path: row for row in rows}
    bottom = rows[-1].top + rows[-1].height if rows else 0
    for path, passes in takes.items():
        newest = [samples[-_MOST_SAMPLES:] for samples in passes if samples]
        values = [value for samples in newest for _, value in samples if isinstance(value, int | float)]
        if not values:
            continue
        row = there.get(path)
        if row is None or not row.has_curve:
            row = row_of(path, parameter_name(path, session), bottom, min(values), max(values))
            bottom += row.height
        else:
            row = replace(row, low=min(row.low, *values), high=max(row.high, *values))
        for samples in newest:
            yield row, samples


def paint_takes(painter: QPainter, scene: Scene, takes: Takes, width: int) -> None:
    """Paint what is being recorded as curves, in the colour of recording."""
    tokens = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    own = {row.track.path for row in scene.rows}
    for row, samples in take_rows(scene.rows, takes, scene.session):
        y = scene.y(row)
        if row.track.path not in own:
            painter.setPen(QColor(tokens.bad_text))
            painter.setFont(fonts.table())
            label = QRectF(theme.px(22), y + theme.px(3), scene.axis.left - theme.px(28), theme.px(16))
            name = fitted_name(row, painter.fontMetrics(), label.width())
            painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, name)
        painter.save()
        painter.setClipRect(QRectF(scene.axis.left, scene.ruler_px, width - scene.axis.left, y + row.height))
        painter.setPen(QPen(QColor(tokens.bad), 1.6))
        offset = y - row.top
        painter.drawPolyline(
            QPolygonF([QPointF(scene.axis.x(float(t)), row.y(float(value)) + offset) for t, value in samples])
        )
        painter.restore()
