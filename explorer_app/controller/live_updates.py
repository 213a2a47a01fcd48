"""When a session that goes on changing is rendered and shown: once a refresh of the screen, however many events come.

A mouse may send a thousand events a second. Each of them only replaces the session. The newest session is asked for at
once if nothing was asked for lately, and at the next tick otherwise: a tick is a refresh of the screen. Panels are told
of it with the frame that answers, every fourth one at most: they are read, and the picture is what follows the hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer

REFRESH_HZ = 60.0
"""The screen's rate as long as it is not known."""

_MOST_HZ = 250.0

REFRESHES_PER_TELLING = 4
"""Panels change at most with every fourth refresh of the screen: numbers that change more often cannot be read."""

PATIENCE_MS = 100
"""Panels are told without a frame after this time: the renderer is slow, or cannot render what is asked for."""


def refresh_ms(hz: float = REFRESH_HZ) -> int:
    """Return the time between two refreshes of a screen, in whole ms: more pictures than it shows help nobody."""
    return int(1000.0 / min(_MOST_HZ, hz if hz >= 1.0 else REFRESH_HZ))


class LiveUpdates(QObject):
    """Coalesces changes of a session.

    Parameters
    ----------
    ask
        Asks for the picture of the session as it is now.
    tell
        Tells panels about it.
    clock
        Seconds from anywhere.
    """

    def __init__(
        self,
        ask: Callable[[], object],
        tell: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._ask, self._tell, self._clock = ask, tell, clock
        self._is_unasked = self._is_untold = self._is_answered = False
        self._told_s = float("-inf")
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.setInterval(refresh_ms())
        self._tick.timeout.connect(self._go_on)

    def follow_screen(self, hz: float) -> None:
        """Ask as often as a screen of this refresh rate shows something new."""
        self._tick.setInterval(refresh_ms(hz))

    def changed(self) -> None:
        """Take note that the session is another one: nothing more happens here until the next tick."""
        self._is_unasked = self._is_untold = True
        if not self._tick.isActive():
            self._go_on()

    def frame_shown(self) -> None:
        """Take note that a frame was shown: what panels show follows it."""
        self._is_answered = True
        self._tell_after(self._tell_ms)

    def stop(self) -> None:
        """Forget what was not asked for or told: the caller does both, or ends. May be called twice.

        The next change is told at once.
        """
        self._is_unasked = self._is_untold = False
        self._told_s = float("-inf")
        self._tick.stop()

    @property
    def _tell_ms(self) -> int:
        """Panels are told at most this often while frames come quicker: fifteen times a second on a screen of 60 Hz."""
        return REFRESHES_PER_TELLING * self._tick.interval()

    def _go_on(self) -> None:
        was_answered = self._is_answered
        if self._is_unasked or self._is_untold:
            self._tick.start()
        if self._is_unasked:
            self._is_unasked = self._is_answered = False
            self._ask()
        self._tell_after(self._tell_ms if was_answered else PATIENCE_MS)

    def _tell_after(self, interval_ms: float) -> None:
        """Tell panels what they do not know yet, if they were last told so long ago."""
        now_s = self._clock()
        if self._is_untold and now_s - self._told_s >= interval_ms / 1000.0:
            self._is_untold = False
            self._told_s = now_s
            self._tell()
