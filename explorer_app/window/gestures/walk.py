"""Walking the seed plane by hand: a drag, a key that is held, and the glide that a flick leaves behind."""

from __future__ import annotations

import math
from collections import deque

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QTimer, Signal

from explorer_app.session.session import Position

SEEDS_PER_PX = 1 / 240
"""How far the hand's way across the screen goes on the plane."""

SLOW = 0.1
"""What Shift makes of a way."""

ARROWS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}
"""Arrow keys and where they lead: right and down."""

KEY_STEP = 0.05
"""How far one press of an arrow key goes, in seeds."""

_FLICK_WINDOW_MS = 90
_FLICK_SEEDS_PER_S = 0.8
"""A hand that lets go slower than this means to stop."""
_GLIDE_STEP_MS = 16


class Walk:
    """One drag or held key: where it began and where it is. Shift may change under way without a jump."""

    def __init__(self, start: Position) -> None:
        self.start = start
        self.position = start
        self._trail: deque[tuple[int, float, float]] = deque()

    @property
    def has_moved(self) -> bool:
        """Whether the hand went anywhere, even if it came back."""
        return bool(self._trail)

    def move(self, dx: float, dy: float, *, slow: bool, now_ms: int) -> Position:
        """Go on by a way in seeds; return the place."""
        factor = SLOW if slow else 1.0
        self.position = Position(self.position.x + dx * factor, self.position.y + dy * factor)
        self._trail.append((now_ms, self.position.x, self.position.y))
        while self._trail and now_ms - self._trail[0][0] > _FLICK_WINDOW_MS:
            self._trail.popleft()
        return self.position

    def flick(self, now_ms: int) -> tuple[float, float] | None:
        """Return the speed in seeds a second at which the hand let go, None if it had come to rest."""
        recent = [item for item in self._trail if now_ms - item[0] <= _FLICK_WINDOW_MS]
        if len(recent) < 2:
            return None
        took_s = max(1, now_ms - recent[0][0]) / 1000
        vx, vy = (recent[-1][1] - recent[0][1]) / took_s, (recent[-1][2] - recent[0][2]) / took_s
        return (vx, vy) if math.hypot(vx, vy) >= _FLICK_SEEDS_PER_S else None


class Glide(QObject):
    """What a flick leaves behind: the same way at the same speed until it is stopped."""

    moved = Signal(object)
    """A Position, at every tick."""

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
        """Whether it goes on."""
        return self._timer.isActive()

    def start(self, position: Position, speed: tuple[float, float]) -> None:
        """Glide on from a place at a speed in seeds a second."""
        self.position = position
        self._speed = speed
        self._clock.start()
        self._timer.start()

    def stop(self) -> None:
        """Come to rest. May be called twice."""
        self._timer.stop()

    def give_way(self, position: Position) -> None:
        """Come to rest if the session stands elsewhere: something other than this glide has moved it."""
        if position != self.position:
            self.stop()

    def _tick(self) -> None:
        passed_s = self._clock.restart() / 1000
        self.position = Position(
            self.position.x + self._speed[0] * passed_s, self.position.y + self._speed[1] * passed_s
        )
        self.moved.emit(self.position)
