"""Lets the moves of a mouse accumulate during a drag, so that they do not wake the event loop one by one."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QAbstractEventDispatcher, QObject, Slot

from explorer_app.controller.live_updates import next_tick_s

_LEAST_S = 0.0005
"""A shorter pause is not worth its own cost."""

_PART = 2 / 3
"""A mouse is paced if it sends two moves within this part of a screen refresh: most send 125 to 1000 a second."""


class MovePacer(QObject):
    """Pauses the event loop after a move of a drag.

    A mouse may send a thousand moves per second. Waking for a move costs several times its handling, and the window
    system (or Qt, under X11) merges moves that are not taken. Their effect is seen only in the report that a drag makes
    once per screen refresh. So when the loop is about to block after a move, it makes the report if it is due, and then
    pauses until the next one is due. All moves that came during a pause are taken before the report. A frame that
    arrives meanwhile is painted at once. Any other event waits for at most one refresh.

    Parameters
    ----------
    wait
        Waits for up to a time in seconds, and returns as soon as there was a frame and it is shown. Returns False
        without waiting if a frame is to be painted: the pause then follows the paint.
    sends_paints
        Whether what is painted during a pause is sent to the screen at once. If not, a pause ends with a frame.

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
        *,
        sends_paints: bool = False,
    ) -> None:
        super().__init__(parent)
        self._wait, self._clock = wait, clock
        self._waits = 2 if sends_paints else 1
        self._last_ms = 0
        self._period_s = 0.0
        self._report: Callable[[], object] = _nothing
        self.due_s = 0.0
        self.is_pacing = self.has_moved = False

    def begin(self, period_s: float, report: Callable[[], object]) -> None:
        """Begin a drag whose movement `report` reports, once in a period; it calls `reported`."""
        self.end()
        self._period_s, self._report = period_s, report

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
        self.due_s = next_tick_s(self.due_s, self._clock(), self._period_s)

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
        self._report = _nothing
        self.is_pacing = self.has_moved = False

    @Slot()
    def _pause(self) -> None:
        """Report and pause once after a move, so that whatever else came is handled before the next pause."""
        if not self.has_moved:
            return
        if self.is_due:
            self._report()
        for _ in range(self._waits):  # for the frame of the report, and for the next report
            left_s = self.due_s - self._clock()
            if left_s <= _LEAST_S:
                break
            if not self._wait(left_s):
                return  # a paint comes first, and then the pause
        self.has_moved = False


def _nothing() -> None:
    """Report nothing, while no drag is under way."""
