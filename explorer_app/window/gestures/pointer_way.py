"""Accumulates pointer movement during a drag and reports it once per screen refresh.

A mouse may send a thousand events per second, but their effect is visible only in the next frame. Most of an event's
cost is its dispatch from the native window through Qt's and Python's handlers to the widget. So one event per tick is
dispatched; an event filter on the native window absorbs the others and records only their position.
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
    """Sums up pointer movement.

    Parameters
    ----------
    follow
        Called with the movement in px, right and down, and the bits of the modifier keys (`SHIFT`, `CTRL`); never with
        a zero movement.
    widget
        The widget that receives the drag.
    """

    def __init__(self, follow: Callable[[float, float, int], object], widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._follow = follow
        self._from = self._to = QPointF()
        self._keys = 0
        self._scene: QPointF | None = None
        """Window position of the newest absorbed event; None if no event was absorbed since the last dispatched one."""
        self._origin = QPointF()
        """The widget's top left corner in window coordinates."""
        self._absorbs = False
        """Whether moves are absorbed at the native window: one was already dispatched since the last tick."""
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self.flush)

    @property
    def is_ticking(self) -> bool:
        """Whether a movement was reported within the last tick."""
        return self._tick.isActive()

    def begin(self, at: QPointF) -> None:
        """Start accumulating at a position in widget coordinates."""
        self._from = self._to = at
        self._scene, self._absorbs = None, False
        self._tick.stop()
        window: QWindow | None = self._widget.window().windowHandle()  # None before the window is shown
        if window is not None:
            self._tick.setInterval(refresh_ms(window.screen().refreshRate()))
            window.installEventFilter(self)
        else:
            self._tick.setInterval(refresh_ms())

    def move(self, event: QMouseEvent) -> None:
        """Add the movement up to an event. The first one after a pause is reported immediately."""
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
        """Record a move at the native window, and absorb it until the next tick.

        Modifier keys that change meanwhile take effect at the next tick.
        """
        if not isinstance(event, QMouseEvent):
            return False
        if not event.isUpdateEvent():  # a button event ends the drag
            self._absorbs = False
            if event.isEndEvent():
                watched.removeEventFilter(self)
        elif self._absorbs:
            self._scene = event.scenePosition()
            return True
        return False

    def flush(self) -> None:
        """Report the movement that is still pending."""
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
