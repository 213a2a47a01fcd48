"""Lets the moves of a fast mouse accumulate during a drag, so that they do not wake the event loop one by one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QAbstractEventDispatcher, QObject, QTimer, Slot

_LEAD_MS = 1
"""A pause ends this long before the report, so that the moves of the pause are handled first and belong to it."""

_FAST_GAP_MS = 3
"""A mouse that sends two moves within this time sends several per screen refresh."""


class MovePacer(QObject):
    """Pauses the event loop after a move of a drag.

    A mouse may send a thousand moves per second. Waking for a move costs several times its handling, and the window
    system (or Qt, under X11) merges moves that are not taken. Their effect is seen only in the report that a drag makes
    once per screen refresh. So when the loop is about to block after a move, it pauses until shortly before that
    report, or until a frame arrives: neither is delayed. Any other event waits for at most half a refresh.

    Parameters
    ----------
    wait
        Waits for up to a time in seconds, and returns as soon as there is a frame to take. Returns False without
        waiting if a frame is to be painted: the pause then follows the paint.

    Attributes
    ----------
    is_fast
        Whether the drag under way is that of a fast mouse; `note` is then not needed.
    has_moved
        Whether a fast mouse moved since the last pause.
    """

    def __init__(self, wait: Callable[[float], bool], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wait = wait
        self._report: QTimer | None = None
        self._last_ms = self._most_ms = 0
        self.is_fast = self.has_moved = False

    def begin(self, report: QTimer) -> None:
        """Begin a drag whose movement is reported by a timer."""
        self.end()
        self._report, self._most_ms = report, report.interval() // 2

    def note(self, stamp_ms: int) -> None:
        """Record a move with the timestamp of its event in ms; 0 if it has none."""
        if self.is_fast:
            self.has_moved = True
        else:
            before_ms, self._last_ms = self._last_ms, stamp_ms
            dispatcher = QAbstractEventDispatcher.instance()
            if before_ms and 0 <= stamp_ms - before_ms <= _FAST_GAP_MS and dispatcher is not None:
                self.is_fast = self.has_moved = True
                dispatcher.aboutToBlock.connect(self._pause)

    def end(self) -> None:
        """End the drag. Idempotent."""
        dispatcher = QAbstractEventDispatcher.instance()
        if self.is_fast and dispatcher is not None:
            dispatcher.aboutToBlock.disconnect(self._pause)
        self._report = None
        self._last_ms = 0
        self.is_fast = self.has_moved = False

    @Slot()
    def _pause(self) -> None:
        """Pause once after a move, so that whatever else came is handled before the next pause."""
        if self.has_moved and self._report is not None:
            pause_ms = min(self._most_ms, self._report.remainingTime() - _LEAD_MS)
            self.has_moved = pause_ms > 0 and not self._wait(pause_ms / 1000.0)
