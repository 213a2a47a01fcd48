"""Delivers thumbnails to the widgets that requested them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QImage

from explorer_app.controller import ThumbnailService
from explorer_app.session.session import Session
from explorer_app.window.canvas.frame_image import frame_image
from gpu_backend import RenderRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_PENDING = 2048
"""Pending requests; the oldest are dropped. A seed plane that moves for hours requests more pictures than are made."""


_Request = TypeVar("_Request")


class ThumbnailWidget(Protocol):
    """A widget that shows thumbnails under its own keys."""

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show the thumbnail that was requested under this key."""
        ...


class ThumbnailDispatcher(QObject):
    """Tracks pending requests by widget and key. Repeated requests are cheap: widgets may request in each paint.

    Parameters
    ----------
    thumbnails
        Renders and caches thumbnails.
    """

    def __init__(self, thumbnails: ThumbnailService, parent: QObject) -> None:
        super().__init__(parent)
        self._thumbnails = thumbnails
        self._waiting: dict[Hashable, tuple[ThumbnailWidget, object, Session | RenderRequest]] = {}
        """Pending requests, the newest last."""
        self._foreign: dict[Hashable, tuple[ThumbnailWidget, object, Session]] = {}
        """Requests whose pictures another model than that of their sessions made, the newest last."""
        self._on_disk: set[str] = set()
        """Names of the widgets whose pictures are kept on disk."""
        thumbnails.changed.connect(self._deliver_all)

    def serve(self, widget: Any, name: str, *, on_disk: bool = False) -> None:
        """Deliver to a widget what its signal `thumbnail_wanted(key, what)` requests, until it is destroyed.

        `on_disk` keeps its pictures for later runs.
        """
        if on_disk:
            self._on_disk.add(name)
        widget.thumbnail_wanted.connect(lambda key, what: self.request(name, widget, key, what))
        widget.destroyed.connect(lambda: self.forget(name))

    def request(self, name: str, widget: ThumbnailWidget, key: object, what: Session | RenderRequest) -> None:
        """Request the thumbnail of `what` for a widget under its own `key`; `name` identifies the widget."""
        full: Hashable = (name, key)
        if not self._deliver(full, widget, key, what):
            _put_newest(self._waiting, full, (widget, key, what))
            self._thumbnails.request(full, what, on_disk=name in self._on_disk)

    def signature(self, name: str, key: object) -> NDArray[np.float16] | None:
        """Return the signature of the latent of a widget's thumbnail (`w_signature`), None if it is not known."""
        return self._thumbnails.store.signature((name, key))

    def forget(self, name: str) -> None:
        """Drop the pending requests of a widget."""
        self._waiting = {full: who for full, who in self._waiting.items() if not _is_of(full, name)}
        self._foreign = {full: who for full, who in self._foreign.items() if not _is_of(full, name)}

    def retry(self, model_id: str) -> None:
        """Repeat requests after another model was opened: pending ones, and those whose pictures a wrong model made.

        A step may be followed by another model before its picture is made.
        """
        for full, (widget, key, session) in list(self._foreign.items()):
            if session.model.model_id == model_id:
                del self._foreign[full]
                _put_newest(self._waiting, full, (widget, key, session))
        for full, (_, _, what) in list(self._waiting.items()):
            self._thumbnails.request(full, what, on_disk=any(_is_of(full, name) for name in self._on_disk))

    @Slot()
    def _deliver_all(self) -> None:
        for full, (widget, key, what) in list(self._waiting.items()):
            if self._deliver(full, widget, key, what):
                self._waiting.pop(full, None)

    def _deliver(self, full: Hashable, widget: ThumbnailWidget, key: object, what: Session | RenderRequest) -> bool:
        frame = self._thumbnails.store.get(full)
        if frame is None:
            return False
        self._foreign.pop(full, None)
        if isinstance(what, Session) and what.model.model_id not in ("", frame.request.model_id):
            _put_newest(self._foreign, full, (widget, key, what))
        # Copy the image: the cache may free the frame while the widget still shows it.
        widget.show_thumbnail(key, frame_image(frame).copy())
        return True


def _put_newest(requests: dict[Hashable, _Request], full: Hashable, request: _Request) -> None:
    requests.pop(full, None)
    requests[full] = request
    while len(requests) > MAX_PENDING:
        del requests[next(iter(requests))]


def _is_of(full: Hashable, name: str) -> bool:
    return isinstance(full, tuple) and full[0] == name
