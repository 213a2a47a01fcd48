"""Age of input events: the time from an event's timestamp to its handling."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QInputEvent

_LEAST_DRIFT = 1e-4
"""Largest assumed drift of the event clock against `time.monotonic`, in seconds per second."""

_PAUSE_S = 0.004
"""Shortest interval between reports: a mouse may send a thousand events per second."""

_RESET_S = 10.0
"""No event is older than this, in seconds: a larger age means that the event clock restarted."""


class InputAge(QObject):
    """Reports how long input events waited, from an event filter on the native windows.

    Event timestamps come from a system clock with an unknown origin. The event with the smallest difference to our
    clock is assumed to have had no delay; the excess of other events is their time in the system's queue or in Qt's.

    Parameters
    ----------
    report
        Called with the age in seconds of an input event that is about to be handled. A call, because a signal costs
        several times as much, and a drag reports 60 ages a second.
    """

    def __init__(
        self,
        report: Callable[[float], object],
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._report, self._clock = report, clock
        self._quickest_s: float | None = None
        self._last_s = float("-inf")

    def watch(self, window: QObject | None) -> None:
        """Watch a native window. Idempotent."""
        if window is not None:
            window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Report the age of input events, and pass every event on."""
        if self._clock() - self._last_s >= _PAUSE_S and isinstance(event, QInputEvent) and event.timestamp() > 0:
            self.note(event.timestamp())
        return False

    def note(self, stamp_ms: int) -> None:
        """Report the age of an input event with a timestamp in ms."""
        self._report(self.age_s(stamp_ms / 1000.0))

    def age_s(self, stamp_s: float) -> float:
        """Return the age in seconds of an event with a timestamp in seconds."""
        now_s = self._clock()
        behind_s = now_s - stamp_s
        if self._quickest_s is None or behind_s - self._quickest_s > _RESET_S:
            self._quickest_s = behind_s
        else:
            self._quickest_s = min(behind_s, self._quickest_s + _LEAST_DRIFT * (now_s - self._last_s))
        self._last_s = now_s
        return behind_s - self._quickest_s
