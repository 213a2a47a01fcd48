"""Lets the moves of a mouse accumulate during a drag, so that they do not wake the event loop one by one."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QAbstractEventDispatcher, QObject, Slot

_LEAST_S = 0.0005
"""A shorter pause is not worth its own cost."""

_PART = 2 / 3
"""A mouse is paced if it sends two moves within this part of a screen refresh: most send 125 to 1000 a second."""


class MovePacer(QObject):
    """Pauses the event loop after a move of a drag.

    A mouse may send a thousand moves per second. Waking for a move costs several times its handling, and the window
    system (or Qt, under X11) merges moves that are not taken. Their effect is seen only in the report that a drag makes
    once per screen refresh. So when the loop is about to block after a move, it pauses until that report is due, or
    until a frame arrives: neither is delayed. The next move makes the report. Any other event waits for at most one
    refresh.

    Parameters
    ----------
    wait
        Waits for up to a time in seconds, and returns as soon as there was a frame and it is shown. Returns False
        without waiting if a frame is to be painted: the pause then follows the paint.

    Attributes
    ----------
    is_pacing
        Whether the mouse of the drag under way sends several moves per refresh; `note` is then not needed.
    has_moved
        Whether such a mouse moved since the last pause.
    due_s
        When the next report is due, by the clock.
    """

    def __init__(
        self,
        wait: Callable[[float], bool],
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._wait, self._clock = wait, clock
        self._last_ms = 0
        self._period_s = 0.0
        self.due_s = 0.0
        self.is_pacing = self.has_moved = False

    def begin(self, period_s: float) -> None:
        """Begin a drag whose movement is reported once in a period."""
        self.end()
        self._period_s = period_s

    def note(self, stamp_ms: int) -> None:
        """Record a move with the timestamp of its event in ms; 0 if it has none."""
        if self.is_pacing:
            self.has_moved = True
        else:
            before_ms, self._last_ms = self._last_ms, stamp_ms
            dispatcher = QAbstractEventDispatcher.instance()
            if before_ms and 0 <= stamp_ms - before_ms <= 1000.0 * _PART * self._period_s and dispatcher is not None:
                self.is_pacing = self.has_moved = True
                dispatcher.aboutToBlock.connect(self._pause)

    def reported(self) -> None:
        """Record a report: the next one is due a period after this one was."""
        now_s, period_s = self._clock(), self._period_s
        due_s = self.due_s + period_s
        self.due_s = due_s if period_s / 2 < due_s - now_s <= period_s else now_s + period_s

    @property
    def is_due(self) -> bool:
        """Whether a report is due."""
        return self._clock() >= self.due_s

    def end(self) -> None:
        """End the drag. Idempotent."""
        dispatcher = QAbstractEventDispatcher.instance()
        if self.is_pacing and dispatcher is not None:
            dispatcher.aboutToBlock.disconnect(self._pause)
        self._last_ms = 0
        self.is_pacing = self.has_moved = False

    @Slot()
    def _pause(self) -> None:
        """Pause once after a move, so that whatever else came is handled before the next pause."""
        if self.has_moved:
            left_s = self.due_s - self._clock()
            self.has_moved = left_s > _LEAST_S and not self._wait(left_s)
