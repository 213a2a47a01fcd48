"""Paints the ruler, the tracks and the playhead of a timeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap, QPixmapCache, QPolygonF

from explorer_app.session.timeline.evaluation import sampled
from explorer_app.session.tracks import WALK
from explorer_app.window.look import fonts, theme
from explorer_app.window.timeline.timeline_scene import LOOP_PX, Scene
from explorer_app.window.timeline.track_rows import TrackRow, fitted_name, times_of, value_text, visible_keys

_CURVE_STEP_PX = 2.0
_DOT_PX = 4.0
_MOST_PARTS = 1024

PictureOf = Callable[[TrackRow, int], QPixmap | None]
"""The small picture of a key, by its row and place; None until it is rendered."""

PictureBetween = Callable[[TrackRow, int, Fraction], QPixmap | None]
"""The small picture on the way from a key to the next one: row, place of the key, share of the way."""


def paint_still(
    painter: QPainter, scene: Scene, size: QRect, picture_of: PictureOf, picture_between: PictureBetween
) -> None:
    """Paint everything but the playhead and the values at it."""
    tokens = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(size, QColor(tokens.panel))
    body = QRectF(0, scene.ruler_px, size.width(), size.height() - scene.ruler_px)
    painter.save()
    painter.setClipRect(body)
    for row in scene.rows:
        if scene.y(row) + row.height >= scene.ruler_px and scene.y(row) <= size.height():
            _paint_label(painter, scene, row)
    painter.setClipRect(body.adjusted(scene.axis.left - theme.px(6), 0, 0, 0))
    _paint_outside(painter, scene, body)
    for row in scene.rows:
        if scene.y(row) + row.height >= scene.ruler_px and scene.y(row) <= size.height():
            _paint_track(painter, scene, row, picture_of, picture_between)
    painter.restore()
    painter.setPen(QPen(QColor(tokens.edge), 1))
    painter.drawLine(QPointF(scene.axis.left - 0.5, 0), QPointF(scene.axis.left - 0.5, size.height()))
    _paint_ruler(painter, scene, size)


def paint_playhead(painter: QPainter, scene: Scene, t: Fraction, size: QRect) -> None:
    """Paint the playhead, and the value of each track there."""
    tokens = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(fonts.caption())
    painter.setPen(QColor(tokens.strong))
    painter.save()
    painter.setClipRect(QRectF(0, scene.ruler_px, scene.axis.left, size.height()))
    for row in scene.rows:
        y = scene.y(row)
        text = value_text(scene.timeline, row.track, t) if -row.height < y < size.height() else ""
        if text:
            place = QRectF(0, y + theme.px(3), scene.axis.left - theme.px(8), theme.px(16))
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text[:10])
    painter.restore()
    x = scene.axis.x(float(t))
    if not scene.axis.left - 1 <= x <= size.width():
        return
    colour = QColor(tokens.bad if scene.is_recording else tokens.strong)
    painter.setPen(QPen(colour, 1))
    painter.drawLine(QPointF(round(x) + 0.5, theme.px(LOOP_PX)), QPointF(round(x) + 0.5, size.height()))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    half, top = theme.px(5), theme.px(LOOP_PX)
    x = round(x) + 0.5
    painter.drawPolygon(QPolygonF([QPointF(x - half, top), QPointF(x + half, top), QPointF(x, top + half * 1.4)]))


def _paint_label(painter: QPainter, scene: Scene, row: TrackRow) -> None:
    tokens = theme.current()
    y, width = scene.y(row), scene.axis.left
    muted = row.track.is_muted
    is_armed = row.track.path in scene.armed
    dot = scene.arm_place(row)
    painter.setPen(QPen(QColor(tokens.bad if is_armed else tokens.dim), 1.2))
    painter.setBrush(QColor(tokens.bad) if is_armed else Qt.BrushStyle.NoBrush)
    painter.drawEllipse(dot, theme.px(_DOT_PX), theme.px(_DOT_PX))
    painter.setFont(fonts.table())
    painter.setPen(QColor(tokens.dim) if muted else _ink(row))
    has_value = row.has_curve or (row.track.keys and not row.has_pictures and row.track.path != WALK)
    room = width - theme.px(22) - (theme.px(54) if has_value else theme.px(6))
    name = fitted_name(row, painter.fontMetrics(), room)
    painter.drawText(QRectF(theme.px(22), y + theme.px(3), room, theme.px(16)), Qt.AlignmentFlag.AlignVCenter, name)
    painter.setFont(fonts.caption())
    painter.setPen(QColor(tokens.dim))
    room = width - theme.px(28)
    detail = painter.fontMetrics().elidedText(row.detail, Qt.TextElideMode.ElideRight, int(room))
    painter.drawText(QRectF(theme.px(22), y + theme.px(18), room, theme.px(15)), Qt.AlignmentFlag.AlignVCenter, detail)


def _ink(row: TrackRow) -> QColor:
    """Return the colour of a track, dark enough for text."""
    tokens = theme.current()
    colour = theme.source_colour(row.colour)
    return QColor(colour) if tokens.name == "dark" else theme.mixed(colour, tokens.strong, 0.35)


def _paint_outside(painter: QPainter, scene: Scene, body: QRectF) -> None:
    """Darken what comes after the end."""
    shade = theme.alpha(theme.current().well, 0.45)
    end = scene.axis.x(float(scene.timeline.end))
    if end < body.right():
        painter.fillRect(QRectF(max(end, scene.axis.left), body.top(), body.right() - end, body.height()), shade)


def _paint_track(
    painter: QPainter, scene: Scene, row: TrackRow, picture_of: PictureOf, picture_between: PictureBetween
) -> None:
    tokens = theme.current()
    y = scene.y(row)
    painter.setPen(QPen(theme.mixed(tokens.panel, tokens.edge, 0.6), 1))
    painter.drawLine(
        QPointF(0, y + row.height - 0.5), QPointF(scene.axis.left + scene.axis.width, y + row.height - 0.5)
    )
    colour = QColor(tokens.dim if row.track.is_muted else theme.source_colour(row.colour))
    times = times_of(scene.timeline, row.track)
    if row.track.path == WALK:
        _paint_walk(painter, scene, row, colour)
        return
    if row.has_curve:
        _paint_curve(painter, scene, row, colour)
    elif times:
        painter.setPen(QPen(colour, 1.2))
        middle = y + row.height / 2
        first, last = scene.axis.x(times[0]), scene.axis.x(times[-1])
        painter.drawLine(QPointF(max(first, scene.axis.left), middle), QPointF(last, middle))
        if row.has_pictures:
            _paint_way(painter, scene, row, times, picture_between)
    gap = theme.px(14 if row.has_pictures else 3) / scene.axis.scale
    reach = theme.px(20) / scene.axis.scale
    for index in visible_keys(times, scene.axis.start - reach, scene.axis.end + reach, gap):
        _paint_key(painter, scene, row, index, times[index], colour, picture_of)


def _paint_way(
    painter: QPainter, scene: Scene, row: TrackRow, times: Sequence[float], picture_between: PictureBetween
) -> None:
    """Paint small pictures between the keys of a track of pictures, as far as there is room.

    A way is divided into a power of two of equal parts, so that zooming in adds pictures and keeps the others.
    """
    axis, side = scene.axis, theme.px(26)
    middle = scene.y(row) + row.height / 2
    painter.save()
    painter.setOpacity(0.3 if row.track.is_muted else 0.6)
    for index, (start, end) in enumerate(pairwise(times)):
        left, right = axis.x(start), axis.x(end)
        if right < axis.left or left > axis.left + axis.width or row.track.keys[index].easing.kind == "hold":
            continue
        parts = 1 << max(0, int((right - left - theme.px(6)) / theme.px(44)).bit_length() - 1)
        for part in range(1, min(parts, _MOST_PARTS)):
            x = left + (right - left) * part / parts
            if axis.left - side <= x <= axis.left + axis.width + side:
                picture = picture_between(row, index, Fraction(part, parts))
                if picture is not None:
                    place = QRectF(x - side / 2, middle - side / 2, side, side)
                    painter.drawPixmap(place, picture, QRectF(picture.rect()))
    painter.restore()


def _paint_key(
    painter: QPainter, scene: Scene, row: TrackRow, index: int, t: float, colour: QColor, picture_of: PictureOf
) -> None:
    tokens = theme.current()
    x, middle = scene.axis.x(t), scene.y(row) + row.height / 2
    key = row.track.keys[index]
    is_selected = bool(scene.selection) and (row.track.path, scene.timeline.seconds(key)) in scene.selection
    if row.has_pictures:
        side = theme.px(34)
        place = QRectF(x - side / 2, middle - side / 2, side, side)
        picture = picture_of(row, index)
        painter.setPen(QPen(QColor(tokens.strong if is_selected else theme.source_colour(row.colour)), 2))
        painter.setBrush(QColor(tokens.well))
        painter.drawRoundedRect(place, 3, 3)
        if picture is not None:
            painter.drawPixmap(place.adjusted(1.5, 1.5, -1.5, -1.5), picture, QRectF(picture.rect()))
        return
    if row.has_curve:
        middle = scene.key_place(row, index).y()
    diamond = _diamond(painter, QColor(tokens.strong) if is_selected else colour)
    half = diamond.width() / diamond.devicePixelRatio() / 2
    painter.drawPixmap(QPointF(x - half, middle - half), diamond)
    if is_selected and row.has_curve:
        for _, _, at, handle in scene.handle_places(row, index):
            painter.setPen(QPen(QColor(tokens.strong), 1))
            painter.drawLine(at, handle)
            painter.setBrush(QColor(tokens.strong))
            painter.drawEllipse(handle, theme.px(2.6), theme.px(2.6))


def _diamond(painter: QPainter, colour: QColor) -> QPixmap:
    """Return the mark of a key; painting thousands of polygons would take longer than a frame."""
    device = painter.device()
    ratio = 1.0 if device is None else device.devicePixelRatioF()
    edge = theme.current().panel
    key = f"timeline-key-{colour.name()}-{edge}-{theme.px(100)}-{ratio}"
    known = QPixmap()
    if QPixmapCache.find(key, known):
        return known
    half = theme.px(4.5)
    middle = half + 1.0
    diamond = QPixmap(round(2 * middle * ratio), round(2 * middle * ratio))
    diamond.setDevicePixelRatio(ratio)
    diamond.fill(Qt.GlobalColor.transparent)
    inside = QPainter(diamond)
    inside.setRenderHint(QPainter.RenderHint.Antialiasing)
    inside.setPen(QPen(QColor(edge), 1))
    inside.setBrush(colour)
    ends = ((middle, middle - half), (middle + half, middle), (middle, middle + half), (middle - half, middle))
    inside.drawPolygon(QPolygonF([QPointF(x, y) for x, y in ends]))
    inside.end()
    QPixmapCache.insert(key, diamond)
    return diamond


def _paint_curve(painter: QPainter, scene: Scene, row: TrackRow, colour: QColor) -> None:
    axis = scene.axis
    count = int(axis.width / _CURVE_STEP_PX) + 2
    xs = [axis.left + n * _CURVE_STEP_PX for n in range(count)]
    times = [axis.start + (x - axis.left) / axis.scale for x in xs]
    offset = scene.y(row) - row.top
    values = sampled(scene.timeline, row.track, times)
    painter.setPen(QPen(colour, 1.4))
    painter.drawPolyline(QPolygonF([QPointF(x, row.y(value) + offset) for x, value in zip(xs, values, strict=True)]))


def _paint_walk(painter: QPainter, scene: Scene, row: TrackRow, colour: QColor) -> None:
    """Paint a wave with the period of a walk."""
    axis, period = scene.axis, float(row.track.period)
    path = QPainterPath()
    middle, height = scene.y(row) + row.height / 2, row.height * 0.28 * min(1.0, row.track.radius * 2)
    for n in range(int(axis.width / _CURVE_STEP_PX) + 2):
        t = axis.start + n * _CURVE_STEP_PX / axis.scale
        angle = math.tau * t / period
        wave = (math.sin(angle) + 0.5 * math.sin(2 * angle + 1) + 0.33 * math.sin(3 * angle + 2)) / 1.5
        point = QPointF(axis.left + n * _CURVE_STEP_PX, middle - wave * height)
        path.lineTo(point) if path.elementCount() else path.moveTo(point)
    painter.setPen(QPen(colour, 1.4))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)


def _paint_ruler(painter: QPainter, scene: Scene, size: QRect) -> None:
    tokens = theme.current()
    axis, height = scene.axis, scene.ruler_px
    painter.fillRect(QRectF(0, 0, size.width(), height), QColor(tokens.head))
    painter.setPen(QPen(QColor(tokens.edge), 1))
    painter.drawLine(QPointF(0, height - 0.5), QPointF(size.width(), height - 0.5))
    painter.save()
    painter.setClipRect(QRectF(axis.left, 0, axis.width, height))
    painter.setFont(fonts.caption())
    metrics, gap, end = painter.fontMetrics(), theme.px(4), axis.left
    for tick in axis.ticks(scene.timeline, scene.unit):
        x = round(axis.x(tick.t)) + 0.5
        length = theme.px(8 if tick.label else 4)
        painter.setPen(QPen(QColor(tokens.dim if tick.label else tokens.edge), 1))
        painter.drawLine(QPointF(x, height - length), QPointF(x, height - 1))
        if tick.label:
            painter.setPen(QColor(tokens.dim))
            width = metrics.horizontalAdvance(tick.label)
            place = label_place(x, width, gap, end, axis.left + axis.width)
            if place is not None:
                painter.drawText(QPointF(place, height - theme.px(7)), tick.label)
                end = place + width + gap
    first, last = (axis.x(float(t)) for t in scene.timeline.playing_range)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(tokens.accent) if scene.timeline.loop else theme.mixed(tokens.edge, tokens.accent, 0.35))
    painter.drawRoundedRect(QRectF(first, 1, max(last - first, 2), theme.px(LOOP_PX) - 1), 2, 2)
    painter.restore()
    if len(scene.selection) > 1:
        _paint_span(painter, scene)


def label_place(tick: float, width: float, gap: float, left: float, right: float) -> float | None:
    """Return where the label of a tick begins: beside it, between `left` and `right`; None without room.

    A label that is cut would name another time: "0:00" of "660:00".
    """
    places = (tick + gap, tick - gap - width)
    return next((place for place in places if left <= place and place + width <= right), None)


def _paint_span(painter: QPainter, scene: Scene) -> None:
    """Paint the span of the selected keys in the ruler; its ends stretch them."""
    first, last = scene.selected_span
    height = scene.ruler_px
    painter.save()
    painter.setClipRect(QRectF(scene.axis.left - 4, 0, scene.axis.width + 4, height))
    colour = QColor(theme.current().strong)
    painter.fillRect(QRectF(first, height - 3, max(last - first, 1), 2), colour)
    for x in (first, last):
        painter.fillRect(QRectF(x - 2, height - theme.px(9), 4, theme.px(9)), colour)
    painter.restore()
