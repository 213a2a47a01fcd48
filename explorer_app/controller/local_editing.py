"""What local edits need from the renderer: the channels of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.editing import Editing
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import MapsFailed, MapsMade
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.resolve import resolve
from gpu_backend import LoomError

if TYPE_CHECKING:
    from gpu_backend import ChannelMaps


class LocalEditing(QObject):
    """Requests and passes on what the panel of local edits shows.

    Signals
    -------
    maps_made(object)
        `gpu_backend.ChannelMaps` of the layer that was requested last.
    maps_failed(str)
        They cannot be rendered; one sentence.
    """

    maps_made = Signal(object)
    maps_failed = Signal(str)

    def __init__(
        self, renders: RenderThread, editing: Editing, messages: MessageLog, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._editing = editing
        self._messages = messages
        self.maps: ChannelMaps | None = None

    @Slot(str)
    def request_maps(self, layer: str) -> None:
        """Render the channels of a layer for the picture that is shown, without its edits."""
        shown = self._editing.shown
        self._renders.request_maps(resolve(self._editing.session if shown is None else shown[0]), layer)

    def take_maps(self, event: MapsMade | MapsFailed) -> None:
        """Pass on the channels, or why there are none."""
        if isinstance(event, MapsMade):
            self.maps = event.maps
            self.maps_made.emit(event.maps)
            return
        self._messages.exception(event.error)
        sentence = event.error.sentence if isinstance(event.error, LoomError) else str(event.error)
        self.maps_failed.emit(sentence)
