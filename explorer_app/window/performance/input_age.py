"""How long ago the hand moved: from an input event's own time stamp to now."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QInputEvent

_LEAST_DRIFT = 1e-4
"""The system's clock of events may run so much slower than ours, in seconds a second."""

_PAUSE_S = 0.004
"""Ages are told no more often: a mouse may send a thousand events a second."""

_RESET_S = 10.0
"""Nothing waits this long: the clock of events began anew."""


class InputAge(QObject):
    """Watches the events of native windows, which are few, and tells how long each input event had waited.

    The system stamps events with a clock of its own, whose origin is unknown. The event that came through fastest is
    taken to have come at once; how much longer others take is what they waited, in the system's queue or in ours.

    Signals
    -------
    input_came(float)
        An input event is about to be handled that is so many seconds old.
    """

    input_came = Signal(float)

    def __init__(self, parent: QObject | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(parent)
        self._clock = clock
        self._quickest_s: float | None = None
        self._last_s = float("-inf")

    def watch(self, window: QObject | None) -> None:
        """Watch a native window; it may be called again for the same one."""
        if window is not None:
            window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Tell the age of input events; nothing is held back."""
        if self._clock() - self._last_s >= _PAUSE_S and isinstance(event, QInputEvent) and event.timestamp() > 0:
            self.input_came.emit(self.age_s(event.timestamp() / 1000.0))
        return False

    def age_s(self, stamp_s: float) -> float:
        """Return how old an event with a time stamp is, in seconds."""
        now_s = self._clock()
        behind_s = now_s - stamp_s
        if self._quickest_s is None or behind_s - self._quickest_s > _RESET_S:
            self._quickest_s = behind_s
        else:
            self._quickest_s = min(behind_s, self._quickest_s + _LEAST_DRIFT * (now_s - self._last_s))
        self._last_s = now_s
        return behind_s - self._quickest_s
