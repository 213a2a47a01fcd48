"""The seed plane: thumbnails of the surrounding seeds, and a ring at the current position."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHideEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer_app.session.edits import PLACE
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.controls.value_slider import FINE
from explorer_app.window.gestures.plane_drag import ARROWS
from explorer_app.window.gestures.pointer_path import CTRL, SHIFT, PointerPath
from explorer_app.window.latent.plane_view import PlaneView
from explorer_app.window.look import fonts, ink, theme
from gpu_backend import plane_seed

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

_LOW, _HIGH = 108, 156
_REQUEST_MS = 120
_KEPT_PICTURES = 600
_KEY_STEP = 0.1
_RING_PX = 7.5
"""Radius of the ring."""
_RING_REACH_PX = _RING_PX + 4.0
"""Half of the side of the square that holds the ring and its hairline."""
_ZOOM = (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus)


class SeedPlane(QWidget):
    """Seeds as a plane of thumbnails; dragging changes the position.

    Signals
    -------
    edited(object, bool)
        `SetParameter` for the position; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    thumbnail_wanted(object, object)
        ``("plane", seed, look)`` and the `Session` to render, for visible cells without a thumbnail, nearest to the
        ring last; the results arrive in `show_thumbnail`. The sessions have no mix and no sliders, so that moving a
        slider does not invalidate them.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("model", "position", "truncation", "classes", "noise")

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = Session()
        self._has_model = False
        self._position = Position()
        self._seed = -1
        self._view = PlaneView(280.0, 140.0)
        self._before: Position | None = None
        self._has_moved = False
        self._pressed_at: QPointF | None = None
        self._keys: set[Qt.Key] = set()
        """Arrow keys that are held."""
        self._way = PointerPath(self._follow, self)
        self._exact = Position()
        self._panning = False
        self._hover: tuple[int, int] | None = None
        self._pictures: OrderedDict[int, tuple[object, QPixmap]] = OrderedDict()
        self._ring: tuple[object, QPixmap] | None = None
        """The ring, with the colours and the scale that it is painted for."""
        self._cells: tuple[object, QPixmap] | None = None
        """The cells, with what they are painted for; a ring that moves over them does not paint them again."""
        self._look: object = None
        self._ask = QTimer(self, singleShot=True, interval=_REQUEST_MS)
        self._ask.timeout.connect(self._request_pictures)
        self.setMinimumHeight(theme.px(_LOW))
        self.setMaximumHeight(theme.px(_HIGH))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # or each move of the ring repaints the widgets below
        self.setAccessibleName("Seed plane")
        self.setEnabled(False)
        self.setToolTip(
            "Drag to move among the seeds, or use the arrow keys: Shift slows down, Ctrl snaps to seeds, Escape "
            "cancels, a double-click goes to a seed, the wheel zooms, the middle button pans."
        )

    @property
    def position(self) -> Position:
        """Position of the ring."""
        return self._position

    @property
    def view(self) -> PlaneView:
        """The current view."""
        return self._view

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of four columns and three rows."""
        return QSize(theme.px(320), theme.px(_HIGH))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the size of two columns, slightly lower than the size hint."""
        return QSize(120, theme.px(_LOW))

    def show_model(self, facts: ModelFacts | None, directions: Directions | None = None) -> None:
        """Clear the cells for a new model; without a model, show a text."""
        self._has_model = facts is not None
        self.setEnabled(self._has_model)
        self._pictures.clear()
        self._cells = None
        self._ask.start()
        self.update()

    def show_session(self, session: Session) -> None:
        """Show a session's position; ignored while the ring is dragged."""
        first = self._session.model != session.model
        self._session = session
        look = (session.model.model_id, session.truncation, session.classes, session.noise)
        if look != self._look:
            self._look = look
            self._ask.start()
        if self._before is None or self._pressed_at is None:
            if session.position != self._position:
                self._before = None
            self._place_ring(session.position, recentre=first)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture; ignore other widgets' keys, and a late picture of a former look."""
        if not (isinstance(key, tuple) and len(key) == 3 and key[0] == "plane"):
            return
        _, seed, look = key
        known = self._pictures.get(seed)
        if look != self._look and known is not None and known[0] == self._look:
            return  # requested before the session went back to what is shown
        self._pictures[seed] = (look, QPixmap.fromImage(image))
        self._pictures.move_to_end(seed)
        while len(self._pictures) > _KEPT_PICTURES:
            self._pictures.popitem(last=False)
        self._cells = None
        self.update()

    # --- pictures ---------------------------------------------------------------------------------------------------

    def _request_pictures(self) -> None:
        if not self._has_model or not self.isVisible():
            return
        here = self._position
        cells = sorted(self._view.cells(), key=lambda cell: (cell[0] - here.x) ** 2 + (cell[1] - here.y) ** 2)
        for x, y in reversed(cells):  # the last request is rendered first
            seed = plane_seed(float(x), float(y))
            known = self._pictures.get(seed)
            if known is None or known[0] != self._look:
                place = Position(float(x), float(y))
                session = replace(self._session, position=place, pinned_blend=(), mix=(), sliders=())
                self.thumbnail_wanted.emit(("plane", seed, self._look), session)

    def _set_view(self, view: PlaneView) -> None:
        if view != self._view:
            before = set(self._view.cells())
            self._view = view
            if set(view.cells()) != before:
                self._ask.start()
            self.update()

    def _place_ring(self, position: Position, *, recentre: bool = False) -> None:
        before, self._position = self._position, position
        old = self._ring_area(before)
        self._set_view(self._view.around(position) if recentre else self._view.following(position))
        seed = plane_seed(position.x, position.y)
        if seed != self._seed:
            self._seed = seed
            self.setAccessibleDescription(f"At seed {seed}")
        if position != before:
            self.update(old)
            self.update(self._ring_area(position))

    # --- gestures ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._before is None:
            self._before = self._position
            self._exact = self._position
            self._has_moved = False

    def _move(self, dx: float, dy: float, *, whole: bool) -> None:
        self._exact = Position(self._exact.x + dx, self._exact.y + dy)
        target = Position(round(self._exact.x, 4) + 0.0, round(self._exact.y, 4) + 0.0)
        if whole:
            target = Position(float(round(target.x)), float(round(target.y)))
        if target != self._position:
            self._has_moved = True
            self._place_ring(target)
            self.edited.emit(SetParameter(PLACE, target), False)

    def finish(self) -> None:
        """End the active gesture as a mouse release does."""
        before, self._before = self._before, None
        by_key, self._pressed_at = bool(self._keys) and self._pressed_at is None, None
        self._keys.clear()
        self._panning = False
        if before is not None and self._has_moved:  # even if it ends at its first place
            self.edited.emit(SetParameter(PLACE, self._position, by_key=by_key), True)
        self._set_cursor()

    def cancel(self) -> bool:
        """Return the ring to the start of the active gesture; return False if no gesture is active."""
        if self._before is None:
            return False
        before, self._before = self._before, None
        self._pressed_at = None
        self._keys.clear()
        self._place_ring(before)
        self.gesture_cancelled.emit()
        self._set_cursor()
        return True

    def undo_drag(self) -> bool:
        """End a drag and return the ring to its start; return whether the ring had moved."""
        return self._pressed_at is not None and self.cancel() and self._has_moved

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Begin a drag: the left button moves the ring, the middle button pans."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.finish()
            self._begin()
            self._pressed_at = event.position()
        elif event.button() == Qt.MouseButton.MiddleButton:
            self._panning = True
        self._way.begin(event.position())
        self._set_cursor()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Move the ring, pan, or highlight the cell under the pointer."""
        if self._pressed_at is not None or self._panning:
            self._way.move(event)
            return
        place = self._view.to_place(event.position().x(), event.position().y())
        hover = (round(place.x), round(place.y))
        if hover != self._hover:
            self._hover = hover
            self.update()

    def _follow(self, dx: float, dy: float, keys: int) -> None:
        """Move the ring or pan by a pointer movement in px."""
        if self._pressed_at is not None:
            slow = FINE if keys & SHIFT else 1.0
            self._move(dx * slow / self._view.cell_width, dy * slow / self._view.cell_height, whole=bool(keys & CTRL))
        elif self._panning:
            self._set_view(self._view.panned(dx, dy))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """End the drag."""
        self._way.flush()
        if self._pressed_at is not None or self._panning:
            self.finish()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Go to the seed under the pointer."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self.finish()
        place = self._view.to_place(event.position().x(), event.position().y())
        target = Position(float(round(place.x)), float(round(place.y)))
        self._place_ring(target)
        self.edited.emit(SetParameter(PLACE, target, "Go to seed"), True)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Zoom at the pointer; with Shift or sideways, scroll."""
        turn = event.angleDelta()
        at = event.position()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier or abs(turn.x()) > abs(turn.y()):
            self._set_view(self._view.panned((turn.x() or turn.y()) * 0.4, 0.0))
        elif turn.y():
            self._set_view(self._view.zoomed(1.2 ** (turn.y() / 120.0), at.x(), at.y()))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Arrow keys move the ring, plus and minus zoom, Home scrolls to the ring, Escape reverts the gesture."""
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape:
            if not self.cancel():
                event.ignore()
        elif key in ARROWS:
            dx, dy = ARROWS[key]
            whole = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            size = 1.0 if whole else _KEY_STEP * (FINE if fine else 1.0)
            self._begin()
            self._keys.add(key)
            self._move(dx * size, dy * size, whole=whole)
            self._set_view(self._view.around_neighbours(self._position))
        elif key in _ZOOM:
            x, y = self._view.to_px(self._position.x, self._position.y)
            self._set_view(self._view.zoomed(1 / 1.2 if key == Qt.Key.Key_Minus else 1.2, x, y))
        elif key == Qt.Key.Key_Home:
            self._set_view(self._view.around(self._position))
        else:
            event.ignore()

    def keyReleaseEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """End the gesture of held keys when the last one is released."""
        if event.key() in self._keys and not event.isAutoRepeat() and self._pressed_at is None:
            if len(self._keys) == 1:
                self.finish()  # which empties them
            self._keys.discard(Qt.Key(event.key()))
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """End the gesture of a held key when focus is lost."""
        if self._pressed_at is None:
            self.finish()
        self.update()
        super().focusOutEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """Clear the highlighted cell."""
        self._hover = None
        self.update()
        super().leaveEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """End the active gesture when the plane is hidden."""
        self.finish()
        super().hideEvent(event)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Request the thumbnails of the visible cells."""
        self._ask.start()
        super().showEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep whole cells and the ring visible."""
        view = self._view.resized(self.width(), self.height())
        aligned = (self._view.left + 0.5) % 1.0 == 0.0 and (self._view.top + 0.5) % 1.0 == 0.0
        self._set_view(view.around(self._position) if aligned else view.following(self._position))
        super().resizeEvent(event)

    def _set_cursor(self) -> None:
        held = self._pressed_at is not None or self._panning
        self.setCursor(Qt.CursorShape.ClosedHandCursor if held else Qt.CursorShape.OpenHandCursor)

    # --- painting ---------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Claim plus and minus for zooming before the window's shortcuts."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and event.key() in _ZOOM:
            event.accept()
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the cells, the highlighted cell and the ring."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        exposed = QRectF(event.rect())
        edge = theme.RADIUS
        if not QRectF(self.rect()).adjusted(edge, edge, -edge, -edge).contains(exposed):
            painter.fillRect(exposed, QColor(tokens.panel))  # around the rounded corners
            frame = QPainterPath()
            frame.addRoundedRect(QRectF(self.rect()), edge, edge)
            painter.setClipPath(frame)
        if not self._has_model:
            painter.fillRect(exposed, QColor(tokens.well))
            painter.setPen(QColor(tokens.dim))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "Open a model to see its seeds")
            painter.end()
            return
        painter.drawPixmap(0, 0, self._picture_of_cells())
        if self._hover is not None and self._pressed_at is None:
            self._paint_tag(painter, *self._hover)
        self._paint_ring(painter)
        if self.hasFocus():
            painter.setClipping(False)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(tokens.accent), 1.5))
            inner = QRectF(self.rect()).adjusted(0.75, 0.75, -0.75, -0.75)
            painter.drawRoundedRect(inner, theme.RADIUS, theme.RADIUS)
        painter.end()

    def _ring_area(self, position: Position) -> QRect:
        """Return the rectangle that the ring covers at a position."""
        x, y = self._view.to_px(position.x, position.y)
        side = 2.0 * _RING_REACH_PX
        return QRectF(x - _RING_REACH_PX, y - _RING_REACH_PX, side, side).toAlignedRect()

    def _picture_of_cells(self) -> QPixmap:
        """Return the cells of the view, painted when one of them or the view changed."""
        tokens, ratio = theme.current(), self.devicePixelRatioF()
        key = self._view, self.size(), tokens.well, tokens.head, ratio
        if self._cells is None or self._cells[0] != key:
            picture = QPixmap(math.ceil(self.width() * ratio), math.ceil(self.height() * ratio))
            picture.setDevicePixelRatio(ratio)
            picture.fill(QColor(tokens.well))
            painter = QPainter(picture)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for x, y in self._view.cells():
                self._paint_cell(painter, x, y)
            painter.end()
            self._cells = key, picture
        return self._cells[1]

    def _cell_area(self, x: int, y: int) -> QRectF:
        """Return the rectangle of a cell in px, without the gap to its neighbours."""
        left, top = self._view.to_px(x - 0.5, y - 0.5)
        right, bottom = self._view.to_px(x + 0.5, y + 0.5)
        return QRectF(round(left), round(top), round(right) - round(left) - 1, round(bottom) - round(top) - 1)

    def _paint_cell(self, painter: QPainter, x: int, y: int) -> None:
        known = self._pictures.get(plane_seed(float(x), float(y)))
        if known is None:
            painter.fillRect(self._cell_area(x, y), QColor(theme.current().head))
        else:
            ink.draw_cropped(painter, self._cell_area(x, y), known[1])

    def _paint_tag(self, painter: QPainter, x: int, y: int) -> None:
        """Paint the seed of a cell into its corner."""
        seed, cell = str(plane_seed(float(x), float(y))), self._cell_area(x, y)
        painter.setFont(fonts.caption())
        tag = QRectF(cell.left(), cell.bottom() - 15, painter.fontMetrics().horizontalAdvance(seed) + 8, 15)
        painter.fillRect(tag, ink.veil(0.62))
        painter.setPen(ink.light())
        painter.drawText(tag, Qt.AlignmentFlag.AlignCenter, seed)

    def _paint_ring(self, painter: QPainter) -> None:
        x, y = self._view.to_px(self._position.x, self._position.y)
        key = ink.light().rgba(), ink.dark().rgba(), self.devicePixelRatioF()
        if self._ring is None or self._ring[0] != key:
            self._ring = key, _ring(self.devicePixelRatioF())
        painter.drawPixmap(QPointF(x - _RING_REACH_PX, y - _RING_REACH_PX), self._ring[1])


def _ring(ratio: float) -> QPixmap:
    """Return a picture of the ring, in `ratio` device px for each px: repainting it costs more than all the rest."""
    side = 2.0 * _RING_REACH_PX
    picture = QPixmap(math.ceil(side * ratio), math.ceil(side * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    centre = QPointF(_RING_REACH_PX, _RING_REACH_PX)
    painter.setPen(QPen(ink.veil(0.55), 5.0))
    painter.drawEllipse(centre, _RING_PX, _RING_PX)
    painter.setPen(QPen(ink.light(), 2.5))
    painter.drawEllipse(centre, _RING_PX, _RING_PX)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink.light())
    painter.drawEllipse(centre, 1.5, 1.5)
    painter.end()
    return picture
