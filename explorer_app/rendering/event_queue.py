"""A queue of render events for the GUI thread: in order, none dropped. No Qt."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from explorer_app.rendering.render_events import RenderEvent


class EventQueue:
    """Safe to use from every thread.

    Parameters
    ----------
    announce
        Called on the thread that puts an event, only if the queue was empty.
    """

    def __init__(self, announce: Callable[[], object]) -> None:
        self._announce = announce
        self._lock = threading.RLock()
        self._events: deque[RenderEvent] = deque()
        self._is_closed = False

    def put(self, event: RenderEvent) -> None:
        """Append an event."""
        with self._lock:
            was_empty = not self._events
            self._events.append(event)
            if was_empty and not self._is_closed:
                self._announce()

    def take(self) -> list[RenderEvent]:
        """Take all events, oldest first."""
        with self._lock:
            events = list(self._events)
            self._events.clear()
            return events

    def close(self) -> None:
        """Announce nothing more: the receiver is about to be deleted, and the device finder may still be running."""
        with self._lock:
            self._is_closed = True
