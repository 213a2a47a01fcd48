"""The way of a pointer while it drags: taken in with every event, followed once for each refresh of the screen.

A mouse may send a thousand events a second, and nothing that follows one of them is seen before the next picture. Most
of what an event costs is its way from the native window through Qt's and Python's handlers to the widget. So one event
after each tick goes this way, and the others end at the native window, where only their place is noted.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, QTimer
from PySide6.QtGui import QMouseEvent, QWindow
from PySide6.QtWidgets import QWidget

from explorer_app.controller.live_updates import refresh_ms

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
    widget
        The widget that is dragged on.
    """

    def __init__(self, follow: Callable[[float, float, int], object], widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._follow = follow
        self._from = self._to = QPointF()
        self._keys = 0
        self._scene: QPointF | None = None
        """Where the newest event that ended at the native window was, in the window; None for none since the last one
        that reached the widget."""
        self._origin = QPointF()
        """The widget's corner in the window."""
        self._absorbs = False
        """Whether moves end at the native window: one has reached the widget since the last tick."""
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self.flush)

    @property
    def is_ticking(self) -> bool:
        """Whether a way was followed within the last tick."""
        return self._tick.isActive()

    def begin(self, at: QPointF) -> None:
        """Begin a way here."""
        self._from = self._to = at
        self._scene, self._absorbs = None, False
        self._tick.stop()
        window: QWindow | None = self._widget.window().windowHandle()  # None before it was shown
        if window is not None:
            self._tick.setInterval(refresh_ms(window.screen().refreshRate()))
            window.installEventFilter(self)
        else:
            self._tick.setInterval(refresh_ms())

    def move(self, event: QMouseEvent) -> None:
        """Go on to where an event is. The first one after a rest is followed at once."""
        self._take_absorbed()
        keys = event.modifiers().value
        if keys != self._keys:
            self.flush()
            self._keys = keys
        self._to = event.position()
        if not self._tick.isActive():
            self.flush()
        self._origin = event.scenePosition() - self._to
        self._absorbs = self._tick.isActive()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Take note of a move at the native window, and end it there until the next tick.

        Keys that were pressed or released meanwhile count from the next tick on.
        """
        if not isinstance(event, QMouseEvent):
            return False
        if not event.isUpdateEvent():  # a button: the drag ends
            self._absorbs = False
            if event.isEndEvent():
                watched.removeEventFilter(self)
        elif self._absorbs:
            self._scene = event.scenePosition()
            return True
        return False

    def flush(self) -> None:
        """Follow what has not been followed yet."""
        self._take_absorbed()
        self._absorbs = False
        way = self._to - self._from
        if not way.isNull():
            self._from = self._to
            self._tick.start()
            self._follow(way.x(), way.y(), self._keys)

    def _take_absorbed(self) -> None:
        if self._scene is not None:
            self._to, self._scene = self._scene - self._origin, None
