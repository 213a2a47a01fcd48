"""Accumulates pointer movement during a drag and reports it once per screen refresh.

A mouse may send a thousand events per second, but their effect is visible only in the next frame. Most of an event's
cost is its dispatch from the native window through Qt's and Python's handlers to the widget. So an event filter on the
native window absorbs every move of a drag and records its position; a timer reports the movement. If the mouse sends
several moves per refresh, a `MovePacer` lets them accumulate, and makes the report.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWindow
from PySide6.QtWidgets import QWidget

from explorer_app.controller.live_updates import REFRESH_HZ, refresh_ms, refresh_s
from explorer_app.window.gestures.input_age import InputAge
from explorer_app.window.gestures.move_pacer import MovePacer

SHIFT = Qt.KeyboardModifier.ShiftModifier.value
CTRL = Qt.KeyboardModifier.ControlModifier.value
LEFT = Qt.MouseButton.LeftButton.value

_GRACE_MS = 2
"""How much later than a `MovePacer` the timer reports: a mouse that stopped does not wake the event loop for it."""


class PointerPath(QObject):
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
        self._keys = Qt.KeyboardModifier.NoModifier
        self._keys_may_differ = True
        """Whether the next absorbed event is asked for its modifier keys, which costs as much as all the rest of it."""
        self._scene: QPointF | None = None
        """Window position of the newest absorbed event; None if it was reported."""
        self._stamp_ms = 0
        """Timestamp of that event; 0 if it was reported."""
        self._age: InputAge | None = None
        """What reports the age of the window's events, which an absorbed event does not reach."""
        self._pacer: MovePacer | None = None
        """The window's, which its canvas has."""
        self._origin = QPointF()
        """The widget's top left corner in window coordinates."""
        self.is_ticking = False
        """Whether a movement was reported within the last tick. As a field, because every move reads it."""
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self._end_tick)
        self._paced_ms = 0
        """How long the timer runs while a `MovePacer` paces the moves, which usually reports first."""

    def begin(self, at: QPointF) -> None:
        """Start accumulating at a position in widget coordinates."""
        top = self._widget.window()
        self._from = self._to = at
        self._scene, self._stamp_ms = None, 0
        self._keys_may_differ = True
        self._origin = QPointF(self._widget.mapTo(top, QPoint()))
        self._age = top.findChild(InputAge)
        self._pacer = top.findChild(MovePacer)
        self._tick.stop()
        self.is_ticking = False
        window: QWindow | None = top.windowHandle()  # None before the window is shown
        hz = REFRESH_HZ
        if window is not None:
            hz = window.screen().refreshRate()
            window.installEventFilter(self)
        self._tick.setInterval(refresh_ms(hz))
        self._paced_ms = refresh_ms(hz) + _GRACE_MS
        if self._pacer is not None:
            self._pacer.begin(refresh_s(hz), self.flush)

    def move(self, event: QMouseEvent) -> None:
        """Add the movement up to an event that reached the widget. The first one after a pause is reported at once."""
        self._change_keys(event.modifiers())
        self._take_absorbed()
        self._to = event.position()
        if not self.is_ticking:
            self.flush()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Absorb a move at the native window, and record it. The first one after a pause is reported at once.

        Other buttons and context menus are absorbed until the left button is released.
        """
        if not isinstance(event, QMouseEvent):
            self._keys_may_differ = self._keys_may_differ or isinstance(event, QKeyEvent)
            return event.type() == QEvent.Type.ContextMenu  # its menu would take the release
        if not event.isUpdateEvent():
            if event.button() != Qt.MouseButton.LeftButton:
                return True
            if event.isEndEvent():
                self._end(watched)
            return False
        if self._keys_may_differ:
            self._keys_may_differ = False
            if not event.buttons().value & LEFT:
                self._end(watched)
                self._release()
                return False
            self._change_keys(event.modifiers())
        self._scene = event.scenePosition()
        self._stamp_ms = event.timestamp()
        pacer = self._pacer
        if pacer is not None:
            if pacer.is_pacing:
                pacer.has_moved = True
                return True
            pacer.note(self._stamp_ms)
        if not self.is_ticking:
            self.flush()
        return True

    def _end(self, window: QObject) -> None:
        """Absorb nothing more: the button is released."""
        window.removeEventFilter(self)
        if self._pacer is not None:
            self._pacer.end()

    def _release(self) -> None:
        """Give the widget the release that a menu, opened by a key during the drag, has taken."""
        at, button = self._to, Qt.MouseButton.LeftButton
        up = QMouseEvent(
            QEvent.Type.MouseButtonRelease,
            at,
            self._widget.mapToGlobal(at),
            button,
            Qt.MouseButton.NoButton,
            self._keys,
        )
        QCoreApplication.sendEvent(self._widget, up)

    def _end_tick(self) -> None:
        self.is_ticking = False
        self.flush()

    def flush(self) -> None:
        """Report the movement that is still pending."""
        self._take_absorbed()
        way = self._to - self._from
        if not way.isNull():
            self._from = self._to
            self._keys_may_differ = True  # a key pressed in another window sends no event to this one
            self.is_ticking = True
            pacer = self._pacer
            if pacer is not None:
                pacer.reported()
            if pacer is not None and pacer.is_pacing:
                self._tick.start(self._paced_ms)
            else:
                self._tick.start()
            if self._stamp_ms and self._age is not None:
                self._age.note(self._stamp_ms)
            self._stamp_ms = 0
            self._follow(way.x(), way.y(), self._keys.value)

    def _change_keys(self, keys: Qt.KeyboardModifier) -> None:
        """Report what was pending with the former modifier keys if others are held from now on."""
        if keys != self._keys:
            self.flush()
            self._keys = keys

    def _take_absorbed(self) -> None:
        if self._scene is not None:
            self._to, self._scene = self._scene - self._origin, None
