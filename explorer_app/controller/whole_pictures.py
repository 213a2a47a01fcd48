"""Whole pictures of sessions other than the one on the screen, to compare with it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.rest_timer import RestTimer
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import ThumbnailFailed, ThumbnailMade
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.adapting import adapt
from explorer_app.session.resolve import resolve, unobserved
from explorer_app.session.session import Session
from gpu_backend import Frame, RenderRequest, dataclass

_CAPACITY = 6
_REST_MS = 300
"""A picture shown for this long is copied: it may be compared with next."""


@dataclass(frozen=True, slots=True)
class WholePictureKey:
    """The key under which the render thread makes a whole picture while nothing else is to do."""

    request: RenderRequest


class WholePictures(QObject):
    """Requests whole pictures of sessions, and keeps a few of them.

    Parameters
    ----------
    shown
        Returns the frame on the screen.
    """

    changed = Signal()
    """A requested picture has arrived."""

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
        messages: MessageLog,
        shown: Callable[[], Frame | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._model = model
        self._messages = messages
        self._shown = shown
        self._frames: OrderedDict[RenderRequest, Frame] = OrderedDict()
        self._rest = RestTimer(_REST_MS, self._keep_shown, self)

    def get(self, session: Session) -> Frame | None:
        """Return the whole picture of a session, as the open model shows it.

        None while it is being made, which `changed` reports the end of, and None without a model.
        """
        facts = self._model.facts
        if facts is None:
            return None
        request = replace(resolve(adapt(session, facts).session), tap=None)
        frame = self._frames.get(request)
        if frame is not None:
            self._frames.move_to_end(request)
            return frame
        self._renders.request_thumbnail(WholePictureKey(request), lambda: request, side_px=None)
        return None

    @Slot()
    def note_shown(self) -> None:
        """Record that another frame is on the screen."""
        self._rest.start()

    def take_made(self, event: ThumbnailMade, key: WholePictureKey) -> None:
        """Store a requested picture."""
        self._put(key.request, event.frame)
        self.changed.emit()

    def take_failed(self, event: ThumbnailFailed) -> None:
        """Show why a requested picture cannot be made."""
        self._messages.exception(event.error)

    def clear(self) -> None:
        """Drop all pictures: another model has others."""
        self._frames.clear()

    def close(self) -> None:
        """Copy nothing more."""
        self._rest.stop()

    @Slot()
    def _keep_shown(self) -> None:
        frame = self._shown()
        if frame is None or frame.is_draft or frame.request.tap is not None:
            return
        request = unobserved(frame.request)
        if request not in self._frames:
            pixels = frame.pixels.copy()  # the frame's own memory may be a device's
            pixels.flags.writeable = False
            self._put(request, replace(frame, pixels=pixels))

    def _put(self, request: RenderRequest, frame: Frame) -> None:
        self._frames[request] = frame
        self._frames.move_to_end(request)
        while len(self._frames) > _CAPACITY:
            self._frames.popitem(last=False)
