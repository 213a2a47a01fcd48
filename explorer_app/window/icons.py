"""Icons: one family (Phosphor, regular), drawn in the colours of the theme that is on when they are painted."""

from __future__ import annotations

import qtawesome
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QIconEngine, QPainter, QPixmap

from explorer_app.window import theme

_NAMES = {
    "about": "ph.info",
    "cancel": "ph.x",
    "chevron-down": "ph.caret-down",
    "chevron-right": "ph.caret-right",
    "close": "ph.x",
    "copy": "ph.copy",
    "docks": "ph.layout",
    "drift": "ph.wind",
    "error": "ph.x-circle",
    "export": "ph.film-strip",
    "fit": "ph.corners-out",
    "glide": "ph.paper-plane-tilt",
    "history": "ph.clock-counter-clockwise",
    "info": "ph.info",
    "inspect": "ph.magnifying-glass",
    "keep": "ph.push-pin",
    "keyboard": "ph.keyboard",
    "layers": "ph.stack",
    "model": "ph.cube",
    "one-to-one": "ph.frame-corners",
    "open": "ph.folder-open",
    "picture": "ph.image",
    "plain-kernel": "ph.square",
    "quit": "ph.sign-out",
    "random": "ph.shuffle",
    "recent": "ph.clock",
    "redo": "ph.arrow-u-up-right",
    "remove": "ph.trash",
    "rename": "ph.pencil-simple",
    "report": "ph.clipboard-text",
    "reset": "ph.arrow-counter-clockwise",
    "safe": "ph.shield-check",
    "save": "ph.floppy-disk",
    "session": "ph.file-text",
    "star": "ph.star",
    "star-filled": "ph.star-fill",
    "theme": "ph.circle-half",
    "trace": "ph.chart-bar-horizontal",
    "transform": "ph.bounding-box",
    "undo": "ph.arrow-u-up-left",
    "warning": "ph.warning",
    "zero": "ph.sliders-horizontal",
    "zoom-in": "ph.magnifying-glass-plus",
    "zoom-out": "ph.magnifying-glass-minus",
}
"""What the window calls an icon -> the name in the family."""


def icon(name: str, token: str = "text") -> QIcon:
    """Return an icon in the colour of a token ("text", "dim", "accent", "on_accent", "good", "warn", "bad").

    It is painted in the theme that is on, so nobody needs to replace it when the theme changes. A disabled icon is dim.
    """
    return QIcon(_TokenIcon(_NAMES[name], token))


class _TokenIcon(QIconEngine):
    """Paints a glyph in the colour that a token has at that moment."""

    def __init__(self, glyph: str, token: str) -> None:
        super().__init__()
        self._glyph = glyph
        self._token = token
        self._made: dict[str, QIcon] = {}

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        """Paint the glyph into a rectangle."""
        tokens = theme.current()
        if mode == QIcon.Mode.Disabled:
            colour = theme.mixed(tokens.dim, tokens.panel, 0.4)
        else:
            colour = QColor(getattr(tokens, self._token))
        made: QIcon | None = self._made.get(colour.name())
        if made is None:
            made = qtawesome.icon(self._glyph, color=colour, color_active=colour)  # type: ignore[no-untyped-call]
            self._made[colour.name()] = made
        made.paint(painter, rect, Qt.AlignmentFlag.AlignCenter, QIcon.Mode.Normal, QIcon.State.Off)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """Return the glyph as a picture of a size in device pixels."""
        result = QPixmap(size)
        result.fill(Qt.GlobalColor.transparent)
        painter = QPainter(result)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return result

    def clone(self) -> QIconEngine:
        """Return a copy, as Qt asks for when an icon is changed."""
        return _TokenIcon(self._glyph, self._token)
