"""Gestures on the seed plane: a drag or a held key, and the glide after a flick."""

from __future__ import annotations

import math
from collections import deque

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QTimer, Signal

from explorer_app.session.session import Position

SEEDS_PER_PX = 1 / 240
"""Movement on the seed plane per pixel of the pointer, in seeds."""

SLOW = 0.1
"""Factor while Shift is held."""

ARROWS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}
"""Arrow key -> direction: right and down."""

KEY_STEP = 0.05
"""Movement per press of an arrow key, in seeds."""

_FLICK_WINDOW_MS = 90
_FLICK_SEEDS_PER_S = 0.8
"""Lowest speed at release that counts as a flick."""
_GLIDE_STEP_MS = 16


class PlaneDrag:
    """One drag or held key: its start and its current position. Pressing Shift during the drag causes no jump."""

    def __init__(self, start: Position) -> None:
        self.start = start
        self.position = start
        self._trail: deque[tuple[int, float, float]] = deque()

    @property
    def has_moved(self) -> bool:
        """Whether the position changed at any time, even if it came back."""
        return bool(self._trail)

    def move(self, dx: float, dy: float, *, slow: bool, now_ms: int) -> Position:
        """Move by a displacement in seeds; return the new position."""
        factor = SLOW if slow else 1.0
        self.position = Position(self.position.x + dx * factor, self.position.y + dy * factor)
        self._trail.append((now_ms, self.position.x, self.position.y))
        while self._trail and now_ms - self._trail[0][0] > _FLICK_WINDOW_MS:
            self._trail.popleft()
        return self.position

    def flick(self, now_ms: int) -> tuple[float, float] | None:
        """Return the velocity at release in seeds per second; None if the pointer rested."""
        recent = [item for item in self._trail if now_ms - item[0] <= _FLICK_WINDOW_MS]
        if len(recent) < 2:
            return None
        took_s = max(1, now_ms - recent[0][0]) / 1000
        vx, vy = (recent[-1][1] - recent[0][1]) / took_s, (recent[-1][2] - recent[0][2]) / took_s
        return (vx, vy) if math.hypot(vx, vy) >= _FLICK_SEEDS_PER_S else None


class Glide(QObject):
    """Continues a flick in the same direction at the same speed until it is stopped."""

    moved = Signal(object)
    """Emits a Position at every tick."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._clock = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(_GLIDE_STEP_MS)
        self._timer.timeout.connect(self._tick)
        self._speed = (0.0, 0.0)
        self.position = Position()

    @property
    def is_moving(self) -> bool:
        """Whether the glide is running."""
        return self._timer.isActive()

    def start(self, position: Position, speed: tuple[float, float]) -> None:
        """Start a glide from a position at a velocity in seeds per second."""
        self.position = position
        self._speed = speed
        self._clock.start()
        self._timer.start()

    def stop(self) -> None:
        """Stop. Idempotent."""
        self._timer.stop()

    def stop_unless_at(self, position: Position) -> None:
        """Stop if the session is at another position, because another edit has changed it."""
        if position != self.position:
            self.stop()

    def _tick(self) -> None:
        passed_s = self._clock.restart() / 1000
        self.position = Position(
            self.position.x + self._speed[0] * passed_s, self.position.y + self._speed[1] * passed_s
        )
        self.moved.emit(self.position)
