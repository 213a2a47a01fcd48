"""The middle of the window: the picture, what stands above and below it, and the docks around them."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer_app.controller import Snapshots
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.picture_stage import EDGE_PX
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.look import theme
from explorer_app.window.messages.message_strip import MessageStrip
from explorer_app.window.model.snapshot_bar import SnapshotBar

_NARROW_CANVAS_PX = 480
"""Canvas width in px below which messages take the window's width."""


class PictureArea(QWidget):
    """Arranges canvas, snapshots and messages so that nothing covers the picture.

    Signals
    -------
    caption_moved()
        The caption over the lower edge of the canvas was shown, hidden or moved.
    """

    caption_moved = Signal()

    def __init__(self, canvas: Canvas, snapshots: Snapshots, messages: MessageStrip, parent: QWidget) -> None:
        super().__init__(parent)
        self.canvas = canvas
        self._messages = messages
        centre = QWidget(self)
        self.around_canvas = QVBoxLayout(centre)
        self.around_canvas.setContentsMargins(0, 0, 0, 0)
        self.around_canvas.setSpacing(0)
        self.around_canvas.addWidget(canvas, 1)
        self.snapshot_bar = SnapshotBar(snapshots)
        self.around_canvas.addWidget(self.snapshot_bar)
        self.around_canvas.addWidget(messages)
        self.workspace = Workspace(centre, canvas, self)
        self._around = QVBoxLayout(self)
        self._around.setContentsMargins(theme.GAP, theme.GAP, theme.GAP, theme.GAP)
        self._around.addWidget(self.workspace)
        messages.filled.connect(self._place_messages)
        # Queued: the layout that resizes the canvas must not lose a widget meanwhile.
        canvas.resized.connect(self._place_messages, Qt.ConnectionType.QueuedConnection)

    def set_picture_alone(self, on: bool) -> None:
        """Leave no room around the canvas, and no caption and buttons on it, or make them again."""
        self.canvas.is_alone = on
        edge = 0 if on else theme.GAP
        self._around.setContentsMargins(edge, edge, edge, edge)
        self._show_caption()

    @Slot()
    def _place_messages(self) -> None:
        """Put the message strip below the canvas, or below all panels where the canvas is narrow."""
        if self._messages.is_filled:
            is_narrow = self.canvas.width() < theme.px(_NARROW_CANVAS_PX)
            place = self._around if is_narrow else self.around_canvas
            if place.indexOf(self._messages) < 0:
                place.addWidget(self._messages)
        self._show_caption()

    def _show_caption(self) -> None:
        """Hide the caption in full screen and while messages below the canvas take its room."""
        has_messages = self._messages.is_filled and self.around_canvas.indexOf(self._messages) >= 0
        margin = 0 if has_messages else theme.px(EDGE_PX)
        self.canvas.caption.set_shown(not has_messages and not self.canvas.is_alone, margin)
        self.caption_moved.emit()
