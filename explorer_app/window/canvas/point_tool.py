"""The tool that drags points of the picture: a layer over the canvas with handles and pins."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from explorer_app.controller import PointDrag
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.caption_button import CaptionButton
from explorer_app.window.canvas.mask_brush import MaskBrush
from explorer_app.window.canvas.point_painting import paint_points
from explorer_app.window.gestures.plane_drag import ARROWS
from explorer_app.window.gestures.pointer_path import PointerPath
from explorer_app.window.look import theme

_REACH_PX = 11
"""Distance in px within which a press hits a point."""
_THRESHOLD_PX = 3
"""A press that moves less is a click."""
_NUDGE = 1 / 256
"""Step of an arrow key, in widths of the picture."""
_FINE = 0.25
"""Factor of an arrow key's step while Shift is held."""

_BRUSH_KEYS = {Qt.Key.Key_BracketLeft: -1, Qt.Key.Key_BracketRight: 1}
"""Notches by which keys enlarge the brush."""

Place = tuple[float, float]
"""x and y in px of the canvas."""


class PointTool(QWidget):
    """Covers the canvas while the tool is on.

    A press and a drag move what is below the pointer; a click sets a pin, with Shift a handle. Shift while dragging
    adds the handle to the others, and moves all of them together. With a brush, a drag freezes or thaws instead. Keys
    arrive from the canvas, which has the focus.

    Signals
    -------
    switched(bool)
        The tool was entered or left.
    """

    switched = Signal(bool)

    def __init__(self, canvas: Canvas, drag: PointDrag, brush: MaskBrush, action: QAction) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._drag = drag
        self._brush = brush
        self._pointer: QPointF | None = None
        """Where the brush is; None outside the canvas."""
        self._action = action
        self._pressed: Place | None = None
        """Where the pointer was pressed; None while no button is held."""
        self._hit: int | None = None
        """Index of the point that was pressed; None for none."""
        self._hit_among = 0
        """Number of points at the press."""
        self._together = False
        self._is_stroke = False
        self._moved = 0.0, 0.0
        """Way of the pointer since the press, in px of the canvas."""
        self._way = PointerPath(self._follow, self)
        self.is_on = False
        self.setAccessibleName("Drag a point")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMouseTracking(True)
        self.button = CaptionButton(action, canvas)
        self.hide()
        canvas.resized.connect(self.place)
        canvas.take_key = self.take_key
        canvas.cancel_tool_stroke = self.cancel_stroke
        drag.changed.connect(self._show)
        brush.changed.connect(self._show)
        brush.edited.connect(self.update)
        self.place()

    def set_on(self, on: bool) -> None:
        """Enter or leave the tool; leaving ends a stroke with what it has reached."""
        if on == self.is_on:
            return
        self.is_on = on
        self._pressed = None
        if on:
            self._canvas.stop_glide()
            self._canvas.transform.set_on(False)
            self._canvas.setFocus()
            if not self._brush.is_for_blend:
                self._drag.prepare()
        else:
            self._brush.set_mode("points")
            self._drag.finish()
        self._action.setChecked(on)
        self.setVisible(on)
        self.place()
        self._show()
        self.switched.emit(on)

    @Slot()
    def place(self) -> None:
        """Cover the canvas, and put the button beside that of the transform."""
        self.setGeometry(self._canvas.rect())
        self.button.adjustSize()
        line = self._canvas.caption_rect()
        right = round(line.right()) - self._canvas.transform.room_beside
        self.button.move(right - self.button.width(), round(line.center().y() - self.button.height() / 2))
        # Without the line of the caption, as beside messages, the picture may reach down to the button.
        is_free = self._canvas.caption.is_shown or not self._canvas.picture_rect().intersects(self.button.geometry())
        self.button.setVisible(self._action.isEnabled() and is_free and not self._canvas.is_alone)
        self._canvas.caption.room_beside = self.button.width() + theme.px(8) if self.button.isVisible() else 0

    # -- geometry ---------------------------------------------------------------------------------------------------

    def pixels_at(self, place: Place) -> Place:
        """Return the point of the picture, in its pixels, at a place on the canvas."""
        rect, (width, _) = self._canvas.picture_rect(), self._canvas.picture_size
        scale = width / rect.width()
        return (place[0] - rect.x()) * scale - 0.5, (place[1] - rect.y()) * scale - 0.5

    def place_of(self, pixels: Place) -> Place:
        """Return the place on the canvas of a point of the picture."""
        rect, (width, _) = self._canvas.picture_rect(), self._canvas.picture_size
        scale = rect.width() / width
        return rect.x() + (pixels[0] + 0.5) * scale, rect.y() + (pixels[1] + 0.5) * scale

    def _point_at(self, place: Place) -> int | None:
        """Return the index of the nearest point in reach."""
        near = [
            (math.dist(place, self.place_of(at)), index)
            for index, point in enumerate(self._drag.points)
            for at in {point.content, point.target}
        ]
        distance, index = min(near, default=(math.inf, 0))
        return index if distance <= theme.px(_REACH_PX) else None

    # -- mouse and keyboard -----------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Take hold of a point; pass presses that pan or open a menu to the canvas."""
        if event.button() != Qt.MouseButton.LeftButton or self._canvas.is_ready_to_pan:
            self.unsetCursor()  # the canvas sets its own cursor
            event.ignore()
            return
        place = event.position().toTuple()
        if self._canvas.frame is None:
            return
        # The brush paints up to the edges of the picture, so a stroke may begin beside it.
        if not self._paints and not self._canvas.picture_rect().contains(event.position()):
            return
        self._canvas.setFocus()
        if self._paints:
            self._drag.finish()
            self._pressed = place
            self._way.begin(event.position())
            self._brush.begin(self._share_at(place))
            return
        self._pressed, self._moved, self._is_stroke = place, (0.0, 0.0), False
        self._hit, self._hit_among = self._point_at(place), len(self._drag.points)
        self._together = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._way.begin(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Continue a stroke, or show the cursor of what is below the pointer."""
        if self._paints:
            self._pointer = event.position()
            self.update()
        if self._pressed is None:
            self._show_cursor(event.position())
            event.ignore()
        else:
            self._way.move(event)

    def _follow(self, dx: float, dy: float, keys: int) -> None:
        """Move the handles by a pointer displacement in px; the first px begin the stroke."""
        if self._pressed is None:  # the stroke was cancelled under the pen
            if self._pointer is not None:
                self._pointer += QPointF(dx, dy)
                self.update()
            return
        if self._paints:
            self._pressed = self._pressed[0] + dx, self._pressed[1] + dy
            self._pointer = QPointF(*self._pressed)
            self._brush.paint(self._share_at(self._pressed))
            return
        self._moved = self._moved[0] + dx, self._moved[1] + dy
        if not self._is_stroke:
            if math.hypot(*self._moved) < theme.px(_THRESHOLD_PX):
                return
            hit = self._hit if self._is_hit_there else None
            if not self._drag.begin(self.pixels_at(self._pressed), hit, together=self._together):
                self._pressed = None
                return
            self._is_stroke = True
        scale = self._canvas.picture_size[0] / self._canvas.picture_rect().width()
        self._drag.aim(self._moved[0] * scale, self._moved[1] * scale)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Let the stroke settle; a click selects a point, or sets a pin or, with Shift, a handle."""
        if event.button() != Qt.MouseButton.LeftButton or self._pressed is None:
            event.ignore()
            return
        self._way.flush()
        pressed, self._pressed = self._pressed, None
        if self._paints:
            self._brush.end()
        elif self._is_stroke:
            self._drag.release()
        elif pressed is not None:
            if self._hit is not None:
                if self._is_hit_there:
                    self._drag.select(self._hit)
            else:
                self._drag.add(self.pixels_at(pressed), is_pin=not self._together)
        self._show_cursor(event.position())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Zoom; with a brush, size it, and zoom with Ctrl."""
        if self._paints and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._brush.resize_by(event.angleDelta().y() / 120)
            event.accept()
        else:
            self._canvas.wheelEvent(event)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the brush's circle."""
        self._pointer = None
        self.update()
        super().leaveEvent(event)

    def take_key(self, event: QKeyEvent) -> bool:
        """Handle a key of the canvas; return whether the tool has a use for it."""
        if not self.is_on:
            return False
        key = event.key()
        if self._paints and key in _BRUSH_KEYS:
            self._brush.resize_by(_BRUSH_KEYS[Qt.Key(key)])
            return True
        if key == Qt.Key.Key_Escape:
            if self._brush.cancel():
                self._pressed = None
            elif self._paints and not self._brush.is_for_blend:
                self._brush.set_mode("points")
            elif self._drag.cancel():
                self._pressed = None
            else:
                self.set_on(False)
            return True
        if self._pressed is not None and key in ARROWS:
            return True  # the pointer moves the handle
        if self._drag.selected is None or self._brush.is_for_blend:  # points are hidden while a blend is painted
            return False
        if key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self._drag.remove_selected()
            return True
        if key in ARROWS:
            right, down = ARROWS[Qt.Key(key)]
            fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            step = self._canvas.picture_size[0] * _NUDGE * (_FINE if fine else 1.0)
            self._drag.nudge(right * step, down * step)
            return True
        return False

    @Slot()
    def cancel_stroke(self) -> bool:
        """Revert what the pointer paints or drags; return whether it did. A stroke that settles goes on."""
        if self._pressed is None:
            return False
        self._pressed = None
        return self._brush.cancel() if self._paints else self._is_stroke and self._drag.cancel()

    @property
    def _is_hit_there(self) -> bool:
        """Whether the points are still those of the press: a picture that moves on by itself removes the handles."""
        return len(self._drag.points) == self._hit_among

    @property
    def _paints(self) -> bool:
        """Whether the pointer is a brush."""
        return self._brush.mode != "points"

    def _share_at(self, place: Place) -> Place:
        """Return a place on the canvas in widths of the picture."""
        rect = self._canvas.picture_rect()
        return (place[0] - rect.x()) / rect.width(), (place[1] - rect.y()) / rect.height()

    def _show_cursor(self, at: QPointF) -> None:
        if self._paints and not self._canvas.is_ready_to_pan:
            self.setCursor(Qt.CursorShape.BlankCursor)
        elif self._canvas.is_ready_to_pan or not self._canvas.picture_rect().contains(at):
            self.unsetCursor()
        elif self._point_at(at.toTuple()) is not None:
            self.setCursor(Qt.CursorShape.SizeAllCursor)
        else:
            self.setCursor(Qt.CursorShape.CrossCursor)

    # -- painting ---------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the line below the picture: what the tool does, how far it is, what Escape does."""
        drag = self._drag
        if self._paints:
            paints = self._brush.mode == "freeze"
            if self._brush.is_for_blend:
                does, escape = f"{'Paint' if paints else 'Erase'} where the second picture shows", "leaves"
            else:
                does = "Paint what stays as it is" if paints else "Paint what may change again"
                escape = "returns to the points"
            return f"{does} · the wheel or [ and ] size the brush · Esc {escape}"
        handles = sum(not point.is_pin for point in drag.points)
        pins = len(drag.points) - handles
        counts = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in ((handles, "handle"), (pins, "pin"))]
        points = ", ".join(text for text, count in zip(counts, (handles, pins), strict=True) if count)
        left = f"{drag.distance:.0f} px left"
        match drag.phase:
            case "preparing":
                parts = ["Drag a point", points, "preparing"]
            case "moving":
                parts = ["Drag a point", points, left]
            case "settling":
                parts = ["Drag a point", points, f"settling, {left}"]
            case _ if handles:
                parts = ["Drag a point", points, "arrows nudge", "Delete removes"]
            case _:
                parts = ["Drag a point of the picture", points, "a click sets a pin", "Shift adds handles"]
        if drag.problem:
            parts = [drag.problem]
        escape = "Esc leaves the tool" if drag.phase == "rest" else "Esc cancels the stroke"
        return " · ".join([*(part for part in parts if part), escape])

    @Slot()
    def _show(self) -> None:
        self._canvas.caption.show_tool(self.text() if self.is_on else "")
        if self.is_on:
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the points over the picture."""
        if self._canvas.frame is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        below = self._canvas.caption_rect().top()
        painter.setClipRect(QRectF(2, 2, self.width() - 4, below - 4))
        self._brush.paint_overlay(painter, self._canvas.picture_rect())
        is_stroke = self._drag.phase != "rest"
        if not self._brush.is_for_blend:
            paint_points(painter, self._drag.points, self._drag.selected, self.place_of, shows_distance=is_stroke)
        if self._paints and self._pointer is not None:
            self._brush.paint_outline(painter, self._pointer, self._canvas.picture_rect())
        painter.end()
