"""Calls a function once nothing has moved for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Slot


class RestTimer(QObject):
    """A single-shot timer that may be started again 60 times a second.

    Restarting a QTimer stops a timer of the system and starts another one. Here `start` only moves the end while the
    timer runs; a timer that comes early waits for the remainder.

    Parameters
    ----------
    interval_ms
        From the last `start` to the call.
    call
        Called at the end.
    clock
        Seconds from any origin.
    """

    def __init__(
        self,
        interval_ms: int,
        call: Callable[[], object],
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._interval_s, self._call, self._clock = interval_ms / 1000.0, call, clock
        self._end_s = 0.0
        self.is_active = False
        """Whether the call is to come."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._advance)

    def start(self) -> None:
        """Call after the interval from now on, and not earlier."""
        self._end_s = self._clock() + self._interval_s
        if not self.is_active:
            self.is_active = True
            self._wait(self._interval_s)

    def stop(self) -> None:
        """Call nothing. Idempotent."""
        if self.is_active:
            self.is_active = False
            self._timer.stop()

    def _wait(self, seconds: float) -> None:
        self._timer.start(max(1, round(1000.0 * seconds)))

    @Slot()
    def _advance(self) -> None:
        left_s = self._end_s - self._clock()
        if left_s > 0.001:
            self._wait(left_s)
        else:
            self.is_active = False
            self._call()
