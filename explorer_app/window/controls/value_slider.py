"""A slider that fills from its neutral value, has fine control with Shift and reverts on Escape."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QSizePolicy, QSlider, QWidget

from explorer_app.window.controls.slider_painting import HANDLE, paint_slider
from explorer_app.window.gestures.pointer_path import SHIFT, PointerPath

FINE = 0.1
"""Factor on the pointer's movement while Shift is held."""

COMMIT_MS = 300
"""A wheel gesture ends after this time without a wheel event."""

_GRIP = 9.0
_WHOLE_NUMBERS = 2**30
"""QSlider's integer range to either side of 0."""


class ValueSlider(QSlider):
    """A horizontal slider over real numbers, with its neutral value in the middle of the track.

    A neutral value between the ends splits the track into two equal halves, each linear, so that the neutral values of
    all sliders of one width align vertically. With a neutral value at an end, the whole track is linear.

    Drag the handle or press anywhere on the track; Shift goes ten times finer, Ctrl snaps; arrow keys step by `snap`,
    with Shift by `step`; Page Up and Page Down by ten snaps; Home and End go to the ends; Backspace or a double-click
    resets; the wheel works only with focus; Escape reverts the gesture.

    Signals
    -------
    moved(float, bool)
        The user's value; True for the last one of a gesture.
    cancelled()
        Escape ended a gesture; the slider shows its previous value again.
    """

    moved = Signal(float, bool)
    cancelled = Signal()

    def __init__(
        self,
        low: float,
        high: float,
        *,
        neutral: float = 0.0,
        reset: float | None = None,
        step: float = 0.01,
        snap: float = 0.1,
        marks: Sequence[float] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._low, self._high, self._step, self._snap = low, high, step, snap
        self._neutral = neutral
        self._reset = neutral if reset is None else reset
        self._marks = tuple(marks)
        self._amount = self._reset
        self._played: float | None = None
        self._before: float | None = None
        self._share = 0.0
        """Position of the drag on the track in 0..1; outside that range beyond the ends."""
        self._way = PointerPath(self._follow_way, self)
        self._dragging = False
        self._has_moved = False
        self._key_held = False
        self._commit_timer = QTimer(self, singleShot=True)
        self._commit_timer.timeout.connect(self.finish)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(56)
        self._update_qt_value()

    @property
    def amount(self) -> float:
        """The shown value; a typed value may exceed the ends."""
        return self._amount

    @property
    def is_held(self) -> bool:
        """Whether a gesture is active."""
        return self._before is not None

    @property
    def resets_to(self) -> float:
        """The value that a double-click sets."""
        return self._reset

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value of the track."""
        return self._low, self._high

    def set_ends(self, low: float, high: float, *, reset: float | None = None) -> None:
        """Set the ends of the track; the shown value stays."""
        self._low, self._high = low, high
        if reset is not None:
            self._reset = reset
        self._update_qt_value()

    def show_amount(self, amount: float) -> None:
        """Show a value without emitting; ignored during a drag."""
        if self._dragging or amount == self._amount:
            return
        self._amount = amount
        self._before = None
        self._key_held = False
        self._commit_timer.stop()
        self._update_qt_value()

    def show_played(self, amount: float | None) -> None:
        """Show the value that a sound or a controller gives the parameter, as a dot; None for none."""
        if amount != self._played:
            self._played = amount
            self.update()

    def finish(self) -> None:
        """End the active gesture as a mouse release does."""
        self._commit_timer.stop()
        self._dragging = False
        self._key_held = False
        if self._before is not None:
            self._before = None
            self.moved.emit(self._amount, True)
        self.update()

    def cancel(self) -> bool:
        """Restore the value before the active gesture; return False if no gesture is active."""
        if self._before is None:
            return False
        self._amount, self._before = self._before, None
        self._dragging = False
        self._key_held = False
        self._commit_timer.stop()
        self._update_qt_value()
        self.cancelled.emit()
        return True

    def undo_drag(self) -> bool:
        """End a drag and restore the value before it; return whether the drag had changed it."""
        if not self._dragging:
            return False
        has_changed = self._has_moved or self._amount != self._before
        self.cancel()
        return has_changed

    def reset_amount(self) -> None:
        """Set the reset value as one complete gesture."""
        self._begin()
        self._go(self._reset)
        self.finish()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the height of a row of text."""
        return QSize(140, 22)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the smallest usable track."""
        return QSize(56, 22)

    # --- gestures ---------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Start dragging the handle, or move it to the pointer."""
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        x = event.position().x()
        self._begin()
        self._dragging = True
        self._has_moved = False
        self._way.begin(event.position())
        self._share = self._share_of(self._clamp(self._amount))
        if abs(x - self._x_of(self._amount)) > _GRIP:
            self._share = (x - HANDLE - 2.0) / max(self._span(), 1.0)
            self._follow(event.modifiers())
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Follow the pointer."""
        if self._dragging:
            self._way.move(event)

    def _follow_way(self, dx: float, _dy: float, keys: int) -> None:
        if self._dragging and dx:
            self._share += dx * (FINE if keys & SHIFT else 1.0) / max(self._span(), 1.0)
            self._has_moved = True
            self._follow(Qt.KeyboardModifier(keys))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """End a drag immediately; delay a click's end by the double-click interval, so that both are one step."""
        if event.button() != Qt.MouseButton.LeftButton or not self._dragging:
            return
        self._way.flush()
        self._dragging = False
        if self._has_moved:  # even if it ends at its first value: its edits were emitted
            self.finish()
        elif self._before == self._amount:
            self._before = None
            self.update()
        else:
            self._commit_timer.start(QApplication.doubleClickInterval())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Reset."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.reset_amount()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Step if the slider has focus; otherwise let the surrounding area scroll."""
        if not self.hasFocus() or not self.isEnabled():
            event.ignore()
            return
        turn = event.angleDelta().y() or event.angleDelta().x()
        size = self._step if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else self._snap
        self._begin()
        self._go(self._clamp(self._rounded(self._amount + size * turn / 120.0, self._step)))
        self._commit_timer.start(COMMIT_MS)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Step, jump, reset or cancel."""
        key = event.key()
        if key == Qt.Key.Key_Escape:
            if not self.cancel():
                event.ignore()
            return
        if key in (Qt.Key.Key_Backspace, Qt.Key.Key_Delete):
            self.reset_amount()
            return
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        size = self._step if fine else self._snap
        steps = {
            Qt.Key.Key_Left: -size,
            Qt.Key.Key_Down: -size,
            Qt.Key.Key_Right: size,
            Qt.Key.Key_Up: size,
            Qt.Key.Key_PageDown: -10 * self._snap,
            Qt.Key.Key_PageUp: 10 * self._snap,
        }
        ends = {Qt.Key.Key_Home: self._low, Qt.Key.Key_End: self._high}
        if key in steps:
            target = self._rounded(self._amount + steps[Qt.Key(key)], self._step)
        elif key in ends:
            target = ends[Qt.Key(key)]
        else:
            event.ignore()
            return
        self._begin()
        self._key_held = True
        self._go(self._clamp(target))

    def keyReleaseEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """End the gesture of a held key."""
        if self._key_held and not event.isAutoRepeat():
            self.finish()
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """End the active gesture when focus is lost."""
        if not self._dragging:
            self.finish()
        super().focusOutEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """End the active gesture when the slider is hidden."""
        self.finish()
        super().hideEvent(event)

    def _begin(self) -> None:
        self._commit_timer.stop()
        if self._before is None:
            self._before = self._amount

    def _follow(self, modifiers: Qt.KeyboardModifier) -> None:
        size = self._snap if modifiers & Qt.KeyboardModifier.ControlModifier else self._step
        self._go(self._clamp(self._rounded(self._amount_of(self._share), size)))

    def _go(self, amount: float) -> None:
        if amount != self._amount:
            self._amount = amount
            self._update_qt_value()
            self.moved.emit(amount, False)

    def _clamp(self, amount: float) -> float:
        return min(max(amount, self._low), self._high)

    @staticmethod
    def _rounded(amount: float, size: float) -> float:
        return round(round(amount / size) * size, 6) + 0.0

    def _update_qt_value(self) -> None:
        """Update QSlider's integer value, which screen readers read."""
        unit = max(self._step, (self._high - self._low) / _WHOLE_NUMBERS, abs(self._low) / _WHOLE_NUMBERS)
        self.blockSignals(True)
        self.setRange(round(self._low / unit), round(self._high / unit))
        self.setValue(round(self._amount / unit))
        self.blockSignals(False)
        self.update()

    # --- painting ---------------------------------------------------------------------------------------------------

    def _span(self) -> float:
        return self.width() - 2.0 * HANDLE - 4.0

    def _share_of(self, amount: float) -> float:
        """Return the position of a value on the track, in 0..1."""
        low, middle, high = self._low, self._neutral, self._high
        if not low < middle < high:
            return (amount - low) / max(high - low, 1e-9)
        return 0.5 + 0.5 * (amount - middle) / (middle - low if amount < middle else high - middle)

    def _amount_of(self, share: float) -> float:
        """Return the value at a position on the track; the inverse of `_share_of`."""
        low, middle, high = self._low, self._neutral, self._high
        if not low < middle < high:
            return low + share * (high - low)
        return middle + (2.0 * share - 1.0) * (middle - low if share < 0.5 else high - middle)

    def _x_of(self, amount: float) -> float:
        return HANDLE + 2.0 + self._share_of(self._clamp(amount)) * self._span()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the track, the marks, the fill from the neutral value and the handle."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_slider(
            painter,
            QRectF(self.rect()),
            at=self._x_of(self._amount),
            neutral=self._x_of(self._neutral),
            marks=[self._x_of(mark) for mark in self._marks],
            played=None if self._played is None else self._x_of(self._played),
            enabled=self.isEnabled(),
            hot=self.underMouse() or self._dragging,
            focused=self.hasFocus(),
        )
        painter.end()
