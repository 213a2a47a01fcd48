"""Drifting: automatic movement over the seed plane."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal

_STEP_MS = 16
_MAX_STEP_S = 0.1
"""After the GUI thread was blocked, the point continues without a jump."""


class Drift(QObject):
    """Emits steps at a steady rate. `speed` is in seeds per second and may be changed at any time."""

    moved = Signal(float)
    """Seeds to move by, at every tick."""

    def __init__(self, clock: Callable[[], float], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._clock = clock
        self._last_s = 0.0
        self.speed = 0.0
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(_STEP_MS)
        self._timer.timeout.connect(self._tick)

    @property
    def is_on(self) -> bool:
        """Whether it drifts."""
        return self._timer.isActive()

    def start(self, speed: float) -> None:
        """Begin to drift."""
        self.speed = speed
        self._last_s = self._clock()
        self._timer.start()

    def stop(self) -> None:
        """Stop. May be called twice."""
        self._timer.stop()

    def _tick(self) -> None:
        now_s = self._clock()
        passed_s, self._last_s = min(now_s - self._last_s, _MAX_STEP_S), now_s
        self.moved.emit(self.speed * passed_s)
