"""Colours for drawing over pictures and knobs: the lightest and the darkest token of the current theme."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPixmap

from explorer_app.window.look import theme

_TILE_RADIUS = 4


def light() -> QColor:
    """Return the lightest ink."""
    tokens = theme.current()
    return QColor(tokens.strong if tokens.name == "dark" else tokens.raised)


def dark() -> QColor:
    """Return the darkest ink."""
    tokens = theme.current()
    return QColor(tokens.well if tokens.name == "dark" else tokens.strong)


def veil(opacity: float) -> QColor:
    """Return the darkest ink with an opacity in 0..1, for hairlines and text over a picture."""
    colour = dark()
    colour.setAlphaF(opacity)
    return colour


def shade(opacity: float) -> QColor:
    """Return black with an opacity in 0..1, whatever the theme: around a picture on a stage."""
    return theme.alpha(theme.BLACK, opacity)


def draw_cropped(painter: QPainter, target: QRectF, picture: QPixmap) -> None:
    """Fill a rectangle with the centre of a picture, with its aspect ratio preserved."""
    width, height = float(picture.width()), float(picture.height())
    if not width or not height or target.isEmpty():
        return
    scale = max(target.width() / width, target.height() / height)
    source = QRectF(0, 0, target.width() / scale, target.height() / scale)
    source.moveCenter(QRectF(0, 0, width, height).center())
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.drawPixmap(target, picture, source)


def rounded(rect: QRectF, radius: float) -> QPainterPath:
    """Return the outline of a rounded rectangle."""
    path = QPainterPath()
    path.addRoundedRect(rect, radius, radius)
    return path


def rounded_picture(picture: QPixmap, side: int) -> QPixmap:
    """Return the centre of a picture as a square tile of a side in px, with rounded corners."""
    ratio = picture.devicePixelRatio()
    tile = QPixmap(round(side * ratio), round(side * ratio))
    tile.setDevicePixelRatio(ratio)
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    draw_tile(painter, QRectF(0, 0, side, side), _TILE_RADIUS, picture)
    painter.end()
    return tile


def draw_tile(painter: QPainter, rect: QRectF, radius: float, picture: QPixmap | None, *, opacity: float = 1.0) -> None:
    """Fill a rounded rectangle with the centre of a picture, or with a placeholder's colour until there is one."""
    painter.save()
    painter.setClipPath(rounded(rect, radius))
    painter.fillRect(rect, QColor(theme.current().raised))
    if picture is not None:
        painter.setOpacity(opacity)
        draw_cropped(painter, rect, picture)
    painter.restore()
