"""The line below the picture: how large it is, what the hand can do, and whether a layer is shown instead of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from explorer_app.window.canvas.transform_frame import HINT
from explorer_app.window.layers.tap_badge import TapBadge
from explorer_app.window.look import fonts, theme
from gpu_backend import Tap

if TYPE_CHECKING:
    from explorer_app.window.canvas.canvas import Canvas

CAPTION_PX = 34
"""Height of the line below the picture."""

_SPACE = 8


class CanvasCaption:
    """The line of a canvas, with the badge of a layer at its left end."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._is_shown = True
        self._margin = 0
        self._tap: Tap | None = None
        self.badge = TapBadge(canvas)

    def show_tap(self, tap: Tap | None) -> None:
        """Show which layer is shown; None for the picture."""
        if tap == self._tap:
            return
        self._tap = tap
        self.badge.show_tap(tap if self._is_shown else None)
        self.place()
        self._canvas.update(self.rect().toAlignedRect())

    @property
    def height(self) -> int:
        """Height in px that the line takes at the bottom of the canvas, or the margin there while it is not shown."""
        return theme.px(CAPTION_PX) if self._is_shown else self._margin

    def set_shown(self, shown: bool, margin: int = 0) -> None:
        """Show the line, or leave its room to what is below the canvas, with a margin in px below the picture."""
        self._is_shown, self._margin = shown, margin
        self.badge.show_tap(self._tap if shown else None)
        self.place()
        self._canvas.update()

    def rect(self) -> QRectF:
        """Return where the line lies, in the canvas's own coordinates."""
        line = QRectF(self._canvas.rect()).adjusted(theme.px(12), 0, -theme.px(12), 0)
        line.setTop(line.bottom() - theme.px(CAPTION_PX - 4))
        return line

    def place(self) -> None:
        """Follow the canvas's size."""
        line = self.rect()
        self.badge.move(round(line.left()), round(line.center().y() - self.badge.height() / 2))
        self.badge.raise_()  # the frame of the transform lies over the canvas

    def paint(self, painter: QPainter) -> None:
        """Paint the line."""
        if not self._is_shown:
            return
        tokens, canvas = theme.current(), self._canvas
        painter.setFont(fonts.caption())
        painter.setPen(QColor(tokens.dim))
        line = self.rect()
        if canvas.view.zoom is not None:
            painter.fillRect(line.adjusted(-theme.px(10), 0, theme.px(10), -4), theme.alpha(tokens.well, 0.8))
        line.setRight(line.right() - canvas.transform.room_beside)
        if not self.badge.isHidden():
            line.setLeft(line.left() + self.badge.width() + theme.px(_SPACE))
        metrics = painter.fontMetrics()
        draft = "draft" if canvas.frame is not None and canvas.frame.is_draft else ""
        room = int(line.width()) - metrics.horizontalAdvance("draft ")
        text = metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, draft)

    def text(self) -> str:
        """Return the line: the size, how large it is shown, and what the hand can do."""
        canvas = self._canvas
        if canvas.drop_text:
            return canvas.drop_text
        if canvas.frame is None:
            return ""
        (width, height), scale = canvas.shown_size
        how = "fit " if canvas.view.zoom is None else ""
        hint = "drag to walk, Shift slows, wheel zooms" if canvas.frame.tap is None else "Escape shows the picture"
        if canvas.transform.is_on:
            hint = HINT
        return f"{width} × {height} → {how}{round(100 * scale)} % · {hint}"
