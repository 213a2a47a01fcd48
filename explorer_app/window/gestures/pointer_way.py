"""The way of a pointer while it drags: taken in with every event, followed once a tick.

A mouse may send a thousand events a second, and nothing that follows one of them is seen before the next picture.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPointF, Qt, QTimer
from PySide6.QtGui import QMouseEvent

TICK_MS = 8
"""The way is followed at most this often: twice for each refresh of a screen with 60 Hz."""

SHIFT = Qt.KeyboardModifier.ShiftModifier.value
CTRL = Qt.KeyboardModifier.ControlModifier.value
LEFT = Qt.MouseButton.LeftButton.value


class PointerWay(QObject):
    """Sums the way of a pointer up.

    Parameters
    ----------
    follow
        Called with the way in px, right and down, and the bits of the keys that were held (`SHIFT`, `CTRL`); never with
        no way at all.
    """

    def __init__(self, follow: Callable[[float, float, int], object], parent: QObject) -> None:
        super().__init__(parent)
        self._follow = follow
        self._from = self._to = QPointF()
        self._keys = 0
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self.flush)

    @property
    def is_ticking(self) -> bool:
        """Whether a way was followed within the last tick."""
        return self._tick.isActive()

    def begin(self, at: QPointF) -> None:
        """Begin a way here."""
        self._from = self._to = at
        self._tick.stop()

    def move(self, event: QMouseEvent) -> None:
        """Go on to where an event is. The first one after a rest is followed at once."""
        keys = event.modifiers().value
        if keys != self._keys:
            self.flush()
            self._keys = keys
        self._to = event.position()
        if not self._tick.isActive():
            self.flush()

    def flush(self) -> None:
        """Follow what has not been followed yet."""
        way = self._to - self._from
        if not way.isNull():
            self._from = self._to
            self._tick.start()
            self._follow(way.x(), way.y(), self._keys)
