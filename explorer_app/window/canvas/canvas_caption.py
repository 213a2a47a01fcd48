"""The caption below the picture: its size, the available gestures, and the layer if one is shown."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter

from explorer_app.window.canvas.picture_stage import CAPTION_PX, PictureStage
from explorer_app.window.canvas.transform_frame import HINT, TransformFrame
from explorer_app.window.layers.tap_badge import TapBadge
from explorer_app.window.look import fonts, theme
from gpu_backend import Tap

_SPACE = 8
_BETWEEN = " · "
"""Between the parts of a caption."""


class CanvasCaption:
    """The caption of a stage, with the layer badge at its left end and the transform button at its right end.

    Attributes
    ----------
    is_shown
        Whether it is painted.
    """

    def __init__(self, stage: PictureStage, transform: TransformFrame) -> None:
        self._stage = stage
        self._transform = transform
        self.is_shown = True
        self._margin = 0
        self._tap: Tap | None = None
        self._tool = ""
        self.room_beside = 0
        """Width of buttons at the right end besides that of the transform, in px."""
        self.badge = TapBadge(stage)

    def show_tap(self, tap: Tap | None) -> None:
        """Name the layer that the canvas shows; None for the picture."""
        if tap == self._tap:
            return
        self._tap = tap
        self.badge.show_tap(tap if self.is_shown else None)
        self.place()
        self._stage.update(self._stage.caption_rect().toAlignedRect())

    def show_tool(self, text: str) -> None:
        """Show the text of a tool instead of the gestures; an empty text shows them again."""
        if text != self._tool:
            self._tool = text
            self._stage.update(self._stage.caption_rect().toAlignedRect())

    @property
    def height(self) -> int:
        """Height of the caption in px, or the bottom margin while the caption is hidden."""
        return theme.px(CAPTION_PX) if self.is_shown else self._margin

    def set_shown(self, shown: bool, margin: int = 0) -> None:
        """Show or hide the caption; while hidden, keep a margin in px below the picture."""
        self.is_shown, self._margin = shown, margin
        self.badge.show_tap(self._tap if shown else None)
        self.place()
        self._stage.update()

    def place(self) -> None:
        """Update the geometry from the canvas's size."""
        line = self._stage.caption_rect()
        self.badge.move(round(line.left()), round(line.center().y() - self.badge.height() / 2))
        self.badge.raise_()  # above the transform frame, which covers the canvas

    def paint(self, painter: QPainter) -> None:
        """Paint the line."""
        if not self.is_shown:
            return
        tokens, stage = theme.current(), self._stage
        painter.setFont(fonts.caption())
        painter.setPen(QColor(tokens.dim))
        line = self._stage.caption_rect()
        if stage.view.zoom is not None:
            painter.fillRect(line.adjusted(-theme.px(10), 0, theme.px(10), -4), theme.alpha(tokens.well, 0.8))
        line.setRight(line.right() - self._transform.room_beside - self.room_beside)
        if not self.badge.isHidden():
            line.setLeft(line.left() + self.badge.width() + theme.px(_SPACE))
        metrics = painter.fontMetrics()
        draft = "draft" if stage.frame is not None and stage.frame.is_draft else ""
        room = int(line.width()) - metrics.horizontalAdvance("draft ")
        text = self.text_within(metrics, room)
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, draft)

    def text_within(self, metrics: QFontMetrics, room: int) -> str:
        """Return the caption, elided to so many px; the last part of a tool's text, what Escape does, stays whole."""
        text = self.text()
        if metrics.horizontalAdvance(text) <= room:
            return text
        front, between, last = text.rpartition(_BETWEEN)
        front_room = room - metrics.horizontalAdvance(between + last)
        if text != self._tool or front_room <= 0:
            return metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        return metrics.elidedText(front, Qt.TextElideMode.ElideRight, front_room) + between + last

    def text(self) -> str:
        """Return the caption: the picture's size, the zoom and the available gestures."""
        stage = self._stage
        if stage.drop_text:
            return stage.drop_text
        if stage.frame is None:
            return ""
        if self._tool:
            return self._tool
        (width, height), scale = stage.shown_size
        how = "fit " if stage.view.zoom is None else ""
        hint = "drag to walk, Shift slows, wheel zooms" if stage.frame.tap is None else "Escape shows the picture"
        if self._transform.is_on:
            hint = HINT
        return f"{width} × {height} → {how}{round(100 * scale)} %{_BETWEEN}{hint}"
