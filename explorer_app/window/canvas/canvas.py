"""The canvas: shows the newest frame and handles the gestures on it.

Left-drag walks the seed plane, the wheel zooms at the pointer, the middle button or Space with a drag pans. The picture
keeps its place and size while drafts of lower resolution come and go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from PySide6.QtCore import QElapsedTimer, QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from explorer_app.controller import Preview
from explorer_app.session.edits import PLACE
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.canvas.canvas_caption import CanvasCaption
from explorer_app.window.canvas.canvas_view import is_smooth
from explorer_app.window.canvas.frame_image import frame_image, shrunk
from explorer_app.window.canvas.picture_stage import CAPTION_PX, PictureStage
from explorer_app.window.canvas.transform_frame import TransformFrame
from explorer_app.window.gestures.move_pacer import MovePacer
from explorer_app.window.gestures.plane_drag import ARROWS, KEY_STEP, SEEDS_PER_PX, Glide, PlaneDrag
from explorer_app.window.gestures.pointer_path import LEFT, SHIFT, PointerPath
from explorer_app.window.look import theme
from gpu_backend import Frame, ModelFacts

_SMOOTH = QPainter.RenderHint.SmoothPixmapTransform

_SENDS_PAINTS = ("xcb", "windows")
"""Platforms on which `repaint` reaches the screen without the event loop; others collect what was painted for it."""


class Canvas(PictureStage):
    """The picture and the gestures on it.

    Signals
    -------
    edited(edit, is_final)
        A drag over the seed plane, a transform, or a return from a layer to the picture. `is_final` is True for the
        last edit of a gesture.
    gesture_cancelled()
        Escape during a drag.
    painted_first()
        The first paint is done, with the stored picture if there is one.
    painted(frame)
        A new frame was painted.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("model", "position", "transform", "tap")

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    painted_first = Signal()
    painted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("canvas")
        self.setAccessibleName("Picture")
        self.setAccessibleDescription(
            "Drag or press the arrow keys to walk the seed plane, Shift slows; the wheel zooms, Space and drag pans."
        )
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # otherwise Qt repaints widgets below each frame
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.glides = False
        self._session = Session()
        self._image: QImage | None = None
        self._small: QImage | None = None
        self._is_new = self._was_painted = False
        self._target: QRectF | None = None
        """Rectangle of the picture at the last paint; None if the canvas was resized since."""
        self._target_px = QRect()
        """The smallest rectangle of whole px that contains that."""
        self._is_inside = False
        """Whether that is inside the canvas's rounded corners."""
        self._smooth_px = QSize()
        """Size of the pictures, in their own px, that are painted smoothly at that place; empty if unknown."""
        self._is_clear = False
        """Whether a frame alone has to be painted there: it reaches neither the focus ring nor the caption."""
        self._preview: Preview | None = None
        self._drag: PlaneDrag | None = None
        self._way = PointerPath(self._follow, self)
        self._pacer = MovePacer(self.wait_for_frame, self, sends_paints=QGuiApplication.platformName() in _SENDS_PAINTS)
        self.take_key: Callable[[QKeyEvent], bool] | None = None
        """Offers each key to a tool, which returns whether it has a use for it."""
        self.cancel_tool_stroke: Callable[[], bool] | None = None
        """Reverts what the pointer draws with a tool; returns whether it was drawing."""
        self._keys: set[int] = set()
        self._pan_from: QPointF | None = None
        self._last = QPointF()
        self._clock = QElapsedTimer()
        self._clock.start()
        self._glide = Glide(self)
        self._glide.moved.connect(lambda position: self.edited.emit(SetParameter(PLACE, position), False))
        self.transform = TransformFrame(self)
        self.caption = CanvasCaption(self, self.transform)
        self.caption.badge.clicked.connect(self._show_picture)
        self.transform.began.connect(self.stop_glide)
        self.transform.edited.connect(self.edited)
        self.transform.gesture_cancelled.connect(self.gesture_cancelled)

    # -- content ----------------------------------------------------------------------------------------------------

    @property
    def room_above(self) -> int:
        """Room for the knob of the transform, in px."""
        return self.transform.room_above

    @property
    def room_below(self) -> int:
        """Room for the caption, in px."""
        return self.caption.height

    def follow(self, preview: Preview) -> None:
        """Show every new frame of the preview, and report each frame to it once it is painted."""
        self._preview = preview
        preview.frame_changed.connect(self._frame_changed)

    def wait_for_frame(self, timeout_s: float) -> bool:
        """Wait until a newer frame is painted or the time is over; not at all, and return False, before a paint."""
        if self._is_new:
            return False
        if self._preview is not None:
            self._preview.wait_for_frame(timeout_s)
        return True

    @Slot()
    def _frame_changed(self) -> None:
        if self._preview is not None:
            self.show_frame(self._preview.frame)

    def show_frame(self, frame: Frame | None) -> None:
        """Show a frame; the old one stays until this one is painted."""
        if frame is self._frame:
            return
        before, self._frame = self._frame, frame
        self._image = None if frame is None else frame_image(frame)
        self._small = None
        self._is_new = frame is not None
        if frame is None or before is None or self._size is None or self._target is None:
            if frame is not None and self._size is None:
                self._size = (frame.width, frame.height)
            self.update()
            return
        if frame.is_draft != before.is_draft or _layer_size(frame) != _layer_size(before):
            self._smooth_px = QSize()
            self.update(self.caption_rect().toAlignedRect())
        # Now: `update` paints up to 5 ms later on most platforms, by a timer that wakes the event loop once more.
        self.repaint(self._target_px)

    def show_stored(self, image: QImage | None) -> None:
        """Show a stored picture until the first frame; None takes it away."""
        if self._frame is None:
            self._image, self._small = image, None
            if image is not None and self._size is None:
                self._size = (image.width(), image.height())
            self.update()

    def show_session(self, session: Session) -> None:
        """Take the position on the seed plane from the session; a glide stops if another edit changed the position."""
        self._session = session
        self._glide.stop_unless_at(session.position)
        self.transform.show_session(session)
        self.caption.show_tap(session.tap)

    def show_model(self, facts: ModelFacts | None) -> None:
        """Take the size of the full picture from the model, so that drafts are drawn at that size."""
        self.stop_glide()
        self._size = None if facts is None else (facts.resolution, facts.resolution)
        self.transform.show_model(facts)
        self.update()

    def show_drop(self, text: str) -> None:
        """Show what dropping the dragged file would do; an empty text hides it."""
        if text != self.drop_text:
            self.drop_text = text
            self.update()

    # -- mouse and keyboard -----------------------------------------------------------------------------------------

    @property
    def is_walking(self) -> bool:
        """Whether a drag or its glide is under way, which Escape cancels."""
        return self._drag is not None or self._glide.is_moving

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Stop a glide; begin a drag or a pan."""
        self.stop_glide()
        self._last = event.position()
        is_left = event.button() == Qt.MouseButton.LeftButton
        if event.button() == Qt.MouseButton.MiddleButton or (is_left and self.is_ready_to_pan):
            self._pan_from = event.position()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        elif is_left and self._image is not None:
            self._drag = PlaneDrag(self._session.position)
            self._way.begin(event.position())
            self._keys.clear()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Continue a drag or a pan."""
        if self._pan_from is not None:
            way = (event.position() - self._last) * self.devicePixelRatioF()
            self._last = event.position()
            self._pan(way.x(), way.y())
        elif self._drag is not None and (self._way.is_ticking or event.buttons().value & LEFT):
            self._way.move(event)

    def _follow(self, dx: float, dy: float, keys: int) -> None:
        """Move over the seed plane by a pointer displacement in px."""
        if self._drag is not None:
            position = self._drag.move(
                dx * SEEDS_PER_PX, dy * SEEDS_PER_PX, slow=bool(keys & SHIFT), now_ms=self._clock.elapsed()
            )
            self.edited.emit(SetParameter(PLACE, position), False)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """End a drag or start its glide; end a pan."""
        if self._pan_from is not None:
            self._pan_from = None
            self._show_cursor()
        elif event.button() == Qt.MouseButton.LeftButton and self._drag is not None:
            self._way.flush()
            drag, self._drag = self._drag, None
            speed = drag.flick(self._clock.elapsed()) if self.glides else None
            if not drag.has_moved:
                return
            if speed is not None:
                self._glide.start(drag.position, speed)
            else:
                self.edited.emit(SetParameter(PLACE, drag.position), True)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Open a menu of the canvas's actions.

        That of `Qt.ActionsContextMenu` is on the stack of an event loop inside this event: a canvas that is deleted
        meanwhile would free it there, which aborts the process.
        """
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(self.actions())
        menu.popup(event.globalPos())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Zoom at the pointer."""
        steps = event.angleDelta().y() / 120
        if steps and self._image is not None:
            self._zoom_at(1.2**steps, event.position())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Space enables panning, Escape cancels a drag or leaves a layer view, arrow keys move over the seed plane."""
        key = event.key()
        if self.take_key is not None and self.take_key(event):
            event.accept()
        elif key == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self.is_ready_to_pan = True
                self._show_cursor()
                self.transform.unsetCursor()
        elif key == Qt.Key.Key_Escape and self.is_walking:
            self._cancel_walk()
        elif key == Qt.Key.Key_Escape and self.transform.is_on:
            self.transform.leave()
        elif key == Qt.Key.Key_Escape and self._session.tap is not None:
            self._show_picture()
        elif key in ARROWS and self._image is not None:
            self._move_by_key(event)
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """End the key gesture when the last arrow key is released."""
        if event.isAutoRepeat():
            return
        if event.key() == Qt.Key.Key_Space:
            self.is_ready_to_pan = False
            self._show_cursor()
        elif event.key() in self._keys:
            self._keys.discard(event.key())
            if not self._keys:
                self._end_key_drag()
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """End a key gesture when the canvas loses keyboard focus."""
        self.is_ready_to_pan = False
        self._show_cursor()
        if self._keys:
            self._keys.clear()
            self._end_key_drag()
        super().focusOutEvent(event)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Repaint the focus ring."""
        super().focusInEvent(event)
        self.update()

    def cancel_stroke(self) -> bool:
        """Revert what the pointer or a held key is doing here; return whether it was doing something."""
        if self.cancel_tool_stroke is not None and self.cancel_tool_stroke():
            return True
        if self._drag is None:
            return self.transform.cancel()
        has_moved = self._drag.has_moved
        self._cancel_walk()
        return has_moved

    def _cancel_walk(self) -> None:
        self._drag = None
        self._keys.clear()
        self._glide.stop()
        self.gesture_cancelled.emit()

    def stop_glide(self) -> None:
        """Stop a glide and commit its position as one history step. Idempotent."""
        if self._glide.is_moving:
            self._glide.stop()
            self.edited.emit(SetParameter(PLACE, self._glide.position), True)

    def _show_picture(self) -> None:
        self.setFocus()  # the badge is about to be hidden and may have the focus
        self.stop_glide()
        self.edited.emit(SetParameter("layer", None), True)

    def _move_by_key(self, event: QKeyEvent) -> None:
        if self._drag is not None and not self._keys:
            return  # a mouse drag is active
        self.stop_glide()
        if self._drag is None:
            self._drag = PlaneDrag(self._session.position)
        self._keys.add(event.key())
        right, down = ARROWS[Qt.Key(event.key())]
        slow = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        position: Position = self._drag.move(right * KEY_STEP, down * KEY_STEP, slow=slow, now_ms=self._clock.elapsed())
        self.edited.emit(SetParameter(PLACE, position), False)

    def _end_key_drag(self) -> None:
        drag, self._drag = self._drag, None
        if drag is not None:
            self.edited.emit(SetParameter(PLACE, drag.position, by_key=True), True)

    def _show_cursor(self) -> None:
        shape = Qt.CursorShape.OpenHandCursor if self.is_ready_to_pan else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)

    # -- painting ---------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a comfortable size for viewing a picture."""
        return QSize(560, 560)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest usable size; a low screen has room for less, with panels around the canvas."""
        return QSize(240, 72 if theme.is_on_low_screen(self) else 200)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keep at least an edge of the picture on the canvas."""
        super().resizeEvent(event)
        self._target, self._is_clear = None, False
        self._keep_in_sight()
        self.caption.place()
        self.resized.emit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the background, the picture and the caption; for a new frame, only the picture's rectangle."""
        painter = QPainter(self)
        exposed_px, image = event.rect(), self._image
        # What moves or scales the picture repaints the whole canvas, so for a frame alone nothing is placed again.
        if self._is_clear and exposed_px == self._target_px and image is not None and not image.hasAlphaChannel():
            if image.size() == self._smooth_px and self._target is not None:
                painter.setRenderHint(_SMOOTH)
                painter.drawImage(self._target, image)
            else:
                self._paint_picture(painter, self._target or self.picture_rect(), image)
        else:
            self._paint_part(painter, QRectF(exposed_px))
        painter.end()
        if not self._was_painted:
            self._was_painted = True
            self.painted_first.emit()
        if self._is_new and self._frame is not None:
            self._is_new = False
            if self._preview is not None:
                self._preview.frame_painted(self._frame)
            self.painted.emit(self._frame)

    def _paint_part(self, painter: QPainter, exposed: QRectF) -> None:
        """Paint what a rectangle of the canvas shows, or all of it."""
        target, image = self.picture_rect(), self._image
        if target != self._target:
            self._target, self._target_px = target, target.toAlignedRect()
            self._is_inside = _is_inside(target, QRectF(self.rect()))
        is_captioned = self.caption.is_shown and target.intersects(self.caption_rect())
        self._is_clear = not is_captioned and _within_ring(QRectF(self.rect())).contains(target)
        if image is not None and self._is_inside and target.contains(exposed) and not image.hasAlphaChannel():
            self._paint_picture(painter, target, image)
            is_low = exposed.bottom() > self.height() - theme.px(CAPTION_PX)
            if is_low and exposed.intersects(self.caption_rect()):
                self.caption.paint(painter)
            if not self._is_clear:
                self._paint_edge(painter)
        else:
            self._paint_all(painter, target)

    def _paint_all(self, painter: QPainter, target: QRectF) -> None:
        tokens = theme.current()
        painter.fillRect(self.rect(), QColor(tokens.ground))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        well = self._well()
        painter.fillPath(well, QColor(tokens.well))
        if self._image is not None:
            painter.save()
            if not self._is_inside:
                painter.setClipPath(well)
            self._paint_picture(painter, target, self._image)
            painter.restore()
        self.caption.paint(painter)
        self._paint_edge(painter)

    def _paint_edge(self, painter: QPainter) -> None:
        """Paint the ring of the focus, or that of a file dragged over the canvas."""
        if self.drop_text or self.hasFocus():
            tokens = theme.current()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            colour = QColor(tokens.accent) if self.drop_text else theme.mixed(tokens.well, tokens.edge, 0.8)
            painter.setPen(QPen(colour, 2 if self.drop_text else 1))
            painter.drawPath(self._well())

    def _well(self) -> QPainterPath:
        """Return the outline of the canvas."""
        well = QPainterPath()
        ground = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        well.addRoundedRect(ground, theme.DOCK_RADIUS, theme.DOCK_RADIUS)
        return well

    def _paint_picture(self, painter: QPainter, target: QRectF, image: QImage) -> None:
        """Paint the picture."""
        wide = round(target.width() * self.devicePixelRatioF())
        scale = wide / image.width()
        if scale < 0.5:
            if self._small is None or self._small.width() != wide:
                self._small = shrunk(image, wide)
            image, scale = self._small, 1.0
        is_layer = self._frame is not None and self._frame.tap is not None
        smooths = is_smooth(scale) and not (is_layer and scale > 1)
        self._smooth_px = image.size() if smooths and image is self._image and not is_layer else QSize()
        painter.setRenderHint(_SMOOTH, smooths)
        painter.drawImage(target, image)


def _layer_size(frame: Frame) -> tuple[int, int] | None:
    """Return width and height of a layer in its own px; None for a picture."""
    return None if frame.tap is None else (frame.width, frame.height)


def _within_ring(canvas: QRectF) -> QRectF:
    """Return the part of a canvas inside its focus ring, which is also inside its rounded corners."""
    return canvas.adjusted(2, 2, -2, -2)


def _is_inside(picture: QRectF, canvas: QRectF) -> bool:
    """Return whether a picture is shown that reaches none of the canvas's rounded corners."""
    corner = theme.DOCK_RADIUS
    between = canvas.adjusted(corner, 0, -corner, 0), canvas.adjusted(0, corner, 0, -corner), _within_ring(canvas)
    return any(part.contains(picture) for part in between)
