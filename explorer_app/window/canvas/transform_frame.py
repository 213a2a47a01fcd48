"""The transform frame around the picture: drag inside to move, a corner to scale, the knob above to rotate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QAction, QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QWidget

from explorer_app.session.edits import set_transform
from explorer_app.session.session import Session
from explorer_app.window.canvas.caption_button import CaptionButton
from explorer_app.window.canvas.picture_stage import PictureStage
from explorer_app.window.canvas.transform_handles import Box, Handles, Part, Place, dragged, without
from explorer_app.window.controls.value_slider import FINE
from explorer_app.window.gestures.pointer_path import CTRL, SHIFT, PointerPath
from explorer_app.window.look import ink, theme
from gpu_backend import Transform

if TYPE_CHECKING:
    from gpu_backend import ModelFacts

_KNOB_PX = 26
_HANDLE_PX = 5
"""Half the side of a handle."""
_REACH_PX = 12
"""Distance in px within which a press hits a handle."""
_INSET_PX = 10
"""Smallest distance of a handle from the canvas edge, in px."""

HINT = "drag moves, corners scale, knob turns, Ctrl snaps, Esc ends"


@dataclass
class _Drag:
    """A drag of a handle: the transform, the pointer and the picture's rectangle at its start.

    Attributes
    ----------
    pointer
        Last position of the pointer.
    reached
        Position of the handle. It differs from the pointer by the movement that Shift slowed down.
    """

    part: Part
    start: Transform
    pressed: Place
    picture: Box
    pointer: Place
    reached: Place
    has_moved: bool = False

    def follow(self, pointer: Place, share: float) -> None:
        """Move the handle by a share of the pointer's movement."""
        self.reached = (
            self.reached[0] + (pointer[0] - self.pointer[0]) * share,
            self.reached[1] + (pointer[1] - self.pointer[1]) * share,
        )
        self.pointer = pointer


class TransformFrame(QWidget):
    """Covers the canvas while transform mode is on. As elsewhere, Shift is ten times finer and Ctrl snaps.

    Signals
    -------
    edited(object, bool)
        A `set_transform` edit; True for the last edit of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    began()
        A drag of a handle began.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    began = Signal()

    def __init__(self, stage: PictureStage) -> None:
        super().__init__(stage)
        self._stage = stage
        self._transform = Transform()
        self._drag: _Drag | None = None
        self._way = PointerPath(self._follow, self)
        self._action: QAction | None = None
        self._is_offered = False
        self.button: CaptionButton | None = None
        self.is_on = False
        self.setAccessibleName("Transform")
        self.setAccessibleDescription("The latent panel shows the same values as numbers.")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMouseTracking(True)
        self.hide()
        stage.resized.connect(self._place)

    def set_action(self, action: QAction) -> None:
        """Set the action that switches the mode, and add a button for it below the picture."""
        self._action = action
        self.button = CaptionButton(action, self._stage)
        self.button.hide()

    # -- content ----------------------------------------------------------------------------------------------------

    @property
    def room_above(self) -> int:
        """Height that the knob needs above a fitted picture, in px."""
        return theme.px(_KNOB_PX + _HANDLE_PX) if self.is_on else 0

    @property
    def room_beside(self) -> int:
        """Width of the button in the caption, in px."""
        return 0 if self.button is None or self.button.isHidden() else self.button.width() + theme.px(8)

    def set_on(self, on: bool) -> None:
        """Enter or leave the mode; an active drag is cancelled."""
        if not on:
            self.cancel()
        self.is_on = on
        if self._action is not None:
            self._action.setChecked(on)
        if on:
            self._stage.setFocus()
        self.setVisible(on)
        self._place()
        self._stage.update()

    def show_model(self, facts: ModelFacts | None) -> None:
        """Enable the mode if the network has an input transform; otherwise leave and disable it."""
        self._is_offered = facts is not None and facts.has_transform
        if self.is_on and not self._is_offered:
            self.set_on(False)
        self._place()

    def show_session(self, session: Session) -> None:
        """Show the session's transform."""
        if session.transform != self._transform:
            self._transform = session.transform
            self.update()

    def handles(self) -> Handles:
        """Return the current positions of the handles."""
        edge = theme.px(_INSET_PX)
        area = self._stage.picture_area().adjusted(-edge / 2, 0, edge / 2, 0)
        seen = Box(area.x(), edge, area.width(), area.bottom() - edge)
        return Handles.of(self._transform, self._picture(), seen, theme.px(_KNOB_PX))

    def _picture(self) -> Box:
        rect = self._stage.picture_rect()
        return Box(rect.x(), rect.y(), rect.width(), rect.height())

    @Slot()
    def _place(self) -> None:
        self.setGeometry(self._stage.rect())
        if self.button is not None:
            self.button.setVisible(self._is_offered and not self._stage.is_alone)
            self.button.adjustSize()
            below = self._stage.caption_rect()
            self.button.move(
                round(below.right()) - self.button.width(), round(below.center().y() - self.button.height() / 2)
            )
            self.button.raise_()

    # -- mouse and keyboard -----------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Cancel the active drag; without one, leave the mode."""
        if not self.cancel():
            self.set_on(False)

    def cancel(self) -> bool:
        """Revert the active drag; return whether there was one."""
        drag, self._drag = self._drag, None
        if drag is None:
            return False
        self._transform = drag.start
        self.update()
        self.gesture_cancelled.emit()
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Begin dragging a part; pass presses that pan or open a menu to the canvas."""
        if event.button() != Qt.MouseButton.LeftButton or self._stage.is_ready_to_pan or self._stage.frame is None:
            self.unsetCursor()  # the canvas sets its own cursor
            event.ignore()
            return
        place = event.position().toTuple()
        part = self._part_at(place)
        if part is not None:
            self.began.emit()
            self._drag = _Drag(part, self._transform, place, self._picture(), place, place)
            self._way.begin(event.position())
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Continue a drag, or show the cursor of the part below the pointer."""
        place = event.position().toTuple()
        drag = self._drag
        if drag is None:
            self._show_cursor(place)
            event.ignore()
        else:
            self._way.move(event)

    def _follow(self, dx: float, dy: float, keys: int) -> None:
        """Move the dragged part by a pointer displacement in px."""
        drag = self._drag
        if drag is not None:
            drag.has_moved = True
            drag.follow((drag.pointer[0] + dx, drag.pointer[1] + dy), FINE if keys & SHIFT else 1.0)
            ends = (drag.pressed, drag.reached)
            self._transform = dragged(drag.start, drag.part, drag.picture, ends, snaps=bool(keys & CTRL))
            self.edited.emit(set_transform(self._transform), False)
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """End the gesture."""
        drag = self._drag
        if drag is None or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._way.flush()
        self._drag = None
        self.update()
        if drag.has_moved:
            self.edited.emit(set_transform(self._transform), True)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Reset the part below the pointer."""
        part = self.handles().at(event.position().toTuple(), theme.px(_REACH_PX))
        if part is None or event.button() != Qt.MouseButton.LeftButton:
            self.mousePressEvent(event)
        elif (reset := without(self._transform, part)) != self._transform:
            self.began.emit()
            self.edited.emit(set_transform(reset), True)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Zoom."""
        self._stage.wheelEvent(event)

    def _part_at(self, place: Place) -> Part | None:
        handles = self.handles()
        return handles.at(place, theme.px(_REACH_PX)) or ("place" if handles.holds(place) else None)

    def _show_cursor(self, place: Place) -> None:
        part = None if self._stage.is_ready_to_pan else self._part_at(place)
        if part is None:
            self.unsetCursor()
        elif part == "place":
            self.setCursor(Qt.CursorShape.SizeAllCursor)
        elif part == "angle":
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            middle = self.handles().middle
            falls = (place[0] - middle[0]) * (place[1] - middle[1]) >= 0
            self.setCursor(Qt.CursorShape.SizeFDiagCursor if falls else Qt.CursorShape.SizeBDiagCursor)

    # -- painting ---------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint lines and handles in a light and a dark ink, to contrast with any picture."""
        if self._stage.frame is None:
            return
        handles = self.handles()
        held = None if self._drag is None else self._drag.part
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setClipRect(self.rect().adjusted(2, 2, -2, round(self._stage.caption_rect().top()) - self.height()))
        outline = QPolygonF([QPointF(*corner) for corner in handles.frame])
        for pen in (QPen(ink.veil(0.75), theme.px(4)), QPen(QColor(theme.current().accent), theme.px(2))):
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawPolygon(outline)
            painter.drawLine(QPointF(*handles.stem), QPointF(*handles.knob))
        for corner in handles.corners:
            self._paint_handle(painter, corner, is_held=held == "scale", turn=self._transform.degrees)
        self._paint_handle(painter, handles.knob, is_held=held == "angle")
        self._paint_middle(painter, handles.middle, is_held=held == "place")

    def _paint_handle(self, painter: QPainter, at: Place, *, is_held: bool, turn: float | None = None) -> None:
        """Paint a rotated square for a corner, a disc for the knob."""
        size = theme.px(_HANDLE_PX)
        area = QRectF(-size, -size, 2 * size, 2 * size)
        painter.save()
        painter.translate(QPointF(*at))
        painter.setPen(QPen(ink.dark(), theme.px(2)))
        painter.setBrush(QColor(theme.current().accent) if is_held else ink.light())
        if turn is None:
            painter.drawEllipse(area)
        else:
            painter.rotate(-math.fmod(turn, 90.0))
            painter.drawRect(area)
        painter.restore()

    def _paint_middle(self, painter: QPainter, at: Place, *, is_held: bool) -> None:
        size = theme.px(_HANDLE_PX + 3)
        colour = QColor(theme.current().accent) if is_held else ink.light()
        for pen in (QPen(ink.veil(0.75), theme.px(4)), QPen(colour, theme.px(2))):
            painter.setPen(pen)
            painter.drawLine(QPointF(at[0] - size, at[1]), QPointF(at[0] + size, at[1]))
            painter.drawLine(QPointF(at[0], at[1] - size), QPointF(at[0], at[1] + size))
