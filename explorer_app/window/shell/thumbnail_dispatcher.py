"""Carries small pictures from where they are made to the widgets that asked for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QImage

from explorer_app.rendering.thumbnails import ThumbnailStore
from explorer_app.window.canvas.frame_image import frame_image


class ThumbnailWidget(Protocol):
    """A widget that shows small pictures by keys of its own."""

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show the picture that was asked for under this key."""
        ...


class ThumbnailDispatcher(QObject):
    """Remembers who waits for which key; widgets may ask as often as they paint.

    Parameters
    ----------
    store
        Gives the store of what has been made.
    request
        Has a small picture made, some time.
    """

    def __init__(
        self, store: Callable[[], ThumbnailStore], request: Callable[[Hashable, Any], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._request = request
        self._waiting: dict[Hashable, tuple[ThumbnailWidget, object, object]] = {}

    def want(self, name: str, widget: ThumbnailWidget, key: object, what: object) -> None:
        """Take in that a widget wants the picture of `what` under its own `key`; `name` keeps widgets apart."""
        full: Hashable = (name, key)
        if not self._deliver(full, widget, key):
            self._waiting[full] = (widget, key, what)
            self._request(full, what)

    def forget(self, name: str) -> None:
        """A widget is gone, or wants something else now."""
        self._waiting = {full: who for full, who in self._waiting.items() if not _is_of(full, name)}

    def renew(self) -> None:
        """Ask again for what is waited for: another model is open, which knows of none of it, or the first one."""
        for full, (_, _, what) in list(self._waiting.items()):
            self._request(full, what)

    @Slot()
    def deliver(self) -> None:
        """Hand out what has been made."""
        for full, (widget, key, _) in list(self._waiting.items()):
            if self._deliver(full, widget, key):
                self._waiting.pop(full, None)

    def _deliver(self, full: Hashable, widget: ThumbnailWidget, key: object) -> bool:
        frame = self._store().get(full)
        if frame is None:
            return False
        # A copy: the store may let go of the frame while the widget still shows it.
        widget.show_thumbnail(key, frame_image(frame).copy())
        return True


def _is_of(full: Hashable, name: str) -> bool:
    return isinstance(full, tuple) and full[0] == name
