"""Icons of one family (Phosphor, regular, MIT licence), painted in the colours of the current theme."""

from __future__ import annotations

import json
import re
from functools import cache

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QIconEngine, QPainter, QPainterPath, QPixmap
from shiboken6 import isValid

from explorer_app.assets import icon_outlines
from explorer_app.window.look import theme

OUTLINE_UNITS = 256
"""Side of the square in which outlines are given, in outline units."""

_SHARE = 0.875
"""Height of the square as a share of the icon's height."""

GLYPHS = {
    "about": "info",
    "cancel": "x",
    "chevron-down": "caret-down",
    "chevron-right": "caret-right",
    "chevron-up": "caret-up",
    "close": "x",
    "compare": "circle-half",
    "copy": "copy",
    "docks": "layout",
    "drag-point": "crosshair",
    "drift": "wind",
    "error": "x-circle",
    "export": "film-strip",
    "find": "magnifying-glass-plus",
    "fit": "corners-out",
    "glide": "paper-plane-tilt",
    "grid": "squares-four",
    "history": "clock-counter-clockwise",
    "info": "info",
    "inspect": "magnifying-glass",
    "mix-in": "push-pin",
    "keyboard": "keyboard",
    "layers": "stack",
    "model": "cube",
    "one-to-one": "frame-corners",
    "open": "folder-open",
    "lock": "lock-simple",
    "lock-filled": "lock-simple-fill",
    "loop": "repeat",
    "pause": "pause",
    "picture": "image",
    "ping-pong": "arrows-left-right",
    "plain-kernel": "square",
    "play": "play",
    "queue": "list-bullets",
    "quit": "sign-out",
    "random": "shuffle",
    "recent": "clock",
    "record": "record",
    "redo": "arrow-u-up-right",
    "remove": "trash",
    "rename": "pencil-simple",
    "resume": "play",
    "report": "clipboard-text",
    "reset": "arrow-counter-clockwise",
    "safe": "shield-check",
    "save": "floppy-disk",
    "session": "file-text",
    "star": "star",
    "star-filled": "star-fill",
    "theme": "circle-half",
    "to-start": "skip-back",
    "trace": "chart-bar-horizontal",
    "transform": "bounding-box",
    "undo": "arrow-u-up-left",
    "warning": "warning",
    "zero": "sliders-horizontal",
    "zoom-in": "magnifying-glass-plus",
    "zoom-out": "magnifying-glass-minus",
}
"""The window's name of an icon -> its Phosphor name. `packaging/make_icons.py` writes the outlines of these."""


def icon(name: str, token: str = "text", *, share: float = _SHARE) -> QIcon:
    """Return an icon in the colour of a token ("text", "dim", "accent", "on_accent", "good", "warn", "bad").

    The icon reads the theme when it is painted, so a theme change needs no new icon. A disabled icon is dim. The glyph
    takes a `share` of the icon's side.
    """
    return QIcon(_TokenIcon(GLYPHS[name], token, share))


class _TokenIcon(QIconEngine):
    """Paints a glyph in the current colour of a token."""

    def __init__(self, glyph: str, token: str, share: float) -> None:
        super().__init__()
        self._glyph = glyph
        self._token = token
        self._share = share

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        """Paint the glyph into a rectangle."""
        tokens = theme.current()
        if mode == QIcon.Mode.Disabled:
            colour = theme.mixed(tokens.dim, tokens.panel, 0.4)
        else:
            colour = QColor(getattr(tokens, self._token))
        side = self._share * rect.height()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(rect.x() + (rect.width() - side) / 2, rect.y() + (rect.height() - side) / 2)
        painter.scale(side / OUTLINE_UNITS, side / OUTLINE_UNITS)
        painter.fillPath(_path(self._glyph), colour)
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """Return the glyph as a picture of a size in device pixels."""
        result = QPixmap(size)
        result.fill(Qt.GlobalColor.transparent)
        painter = QPainter(result)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return result

    def clone(self) -> QIconEngine:
        """Return a copy; Qt calls this when a shared icon is modified."""
        copy = _TokenIcon(self._glyph, self._token, self._share)
        # Qt owns the copy and deletes it with its icon, but the binding would delete it with its last reference.
        _clones[:] = [*filter(isValid, _clones), copy]
        return copy


_clones: list[_TokenIcon] = []
"""Engines that `_TokenIcon.clone` made, until Qt has deleted them."""


@cache
def _outlines() -> dict[str, str]:
    """Return the outlines: Phosphor name -> SVG path data with absolute M, L and C commands."""
    outlines: dict[str, str] = json.loads(icon_outlines().read_bytes())
    return outlines


@cache
def _path(glyph: str) -> QPainterPath:
    """Return a glyph's outline in the square of OUTLINE_UNITS."""
    path = QPainterPath()
    path.setFillRule(Qt.FillRule.WindingFill)
    for letter, numbers in re.findall(r"([MLC])([^MLC]*)", _outlines()[glyph]):
        points = [float(number) for number in numbers.split()]
        if letter == "M":
            path.moveTo(*points)
        elif letter == "L":
            path.lineTo(*points)
        else:
            path.cubicTo(*points)
    return path
