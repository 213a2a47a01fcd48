"""The timeline's picture: a ruler, tracks with keys and curves, the playhead; takes mouse and keys.

What does not change while the playhead moves is painted once into a pixmap.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QSizePolicy, QWidget

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import KeyName, names_of, snapped, with_track
from explorer_app.session.tracks import NO_TIMELINE, Timeline
from explorer_app.window.controls.announce import announce
from explorer_app.window.look import fonts, theme
from explorer_app.window.timeline.key_drags import (
    BoxDrag,
    Drag,
    HandleDrag,
    KeyDrag,
    LoopDrag,
    PanDrag,
    SeekDrag,
    StretchDrag,
)
from explorer_app.window.timeline.key_pictures import KeyPictures
from explorer_app.window.timeline.selected_keys import SelectedKeys
from explorer_app.window.timeline.take_painter import Takes, paint_takes
from explorer_app.window.timeline.time_axis import RulerUnit, TimeAxis
from explorer_app.window.timeline.timeline_painter import paint_playhead, paint_still
from explorer_app.window.timeline.timeline_scene import GRAB_PX, LOOP_PX, Scene, is_near
from explorer_app.window.timeline.track_cursor import TrackCursor
from explorer_app.window.timeline.track_rows import TrackRow, rows_of

LABEL_PX = 150
"""Width of the tracks' names."""

_HINTS = (
    "Keep picture (I) makes a key of the picture at the playhead. "
    "Drag the playhead in the ruler, change the picture, and keep it again.",
    "Keep picture (I) makes a key of the picture at the playhead.",
    "Press I to keep the picture.",
)
"""What an empty timeline says."""

_NO_MODEL_HINTS = ("Open a model to animate its pictures", "Open a model first")
"""What it says without a model."""

_CENTRED = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)

_ZOOM_REST_MS = 200
"""After the last turn of the wheel: what is between keys at a scale that is passed is not rendered."""
_COPIES = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ControlModifier
"""A key is copied while one of these is held: many window managers take a drag with Alt for moving the window."""


def fitting_hint(metrics: QFontMetrics, area: QRect, *, has_model: bool = True) -> str:
    """Return what an empty timeline says: the longest wording that fits into an area, or nothing."""
    hints = _HINTS if has_model else _NO_MODEL_HINTS
    return next((text for text in hints if area.contains(metrics.boundingRect(area, _CENTRED, text))), "")


class TimelineView(QAbstractScrollArea):
    """Shows a timeline and edits it.

    Signals
    -------
    changed(object, str, bool)
        Another timeline, the label of the edit, and whether it is the last one of a gesture.
    cancelled()
        Escape ended a gesture.
    sought(object, bool)
        Time in seconds for the playhead, and whether it is the last one of a gesture.
    play_toggled()
        Space.
    key_wanted(str, object)
        A key of a parameter at a time, from a double-click on its track, or Enter.
    armed(str, bool)
        The dot of a track was clicked.
    track_menu_requested(str, QPoint), key_menu_requested(QPoint), ruler_menu_requested(object, QPoint)
        A right click, or the menu key, on a track, on a selected key, at a time of the ruler.
    thumbnail_wanted(object, object)
        The small picture of a session, under a key.
    refused(str)
        A sentence about an edit that is impossible.
    redrawn()
        Another axis, another timeline, another place of the playhead.
    """

    changed = Signal(object, str, bool)
    cancelled = Signal()
    sought = Signal(object, bool)
    play_toggled = Signal()
    key_wanted = Signal(str, object)
    armed = Signal(str, bool)
    track_menu_requested = Signal(str, QPoint)
    key_menu_requested = Signal(QPoint)
    ruler_menu_requested = Signal(object, QPoint)
    thumbnail_wanted = Signal(object, object)
    refused = Signal(str)
    redrawn = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Timeline")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.timeline = NO_TIMELINE
        self.session = Session()
        self.time = Fraction(0)
        self.selection: frozenset[KeyName] = frozenset()
        self.unit: RulerUnit = "seconds"
        self.keys = SelectedKeys(self)
        self.track_cursor = TrackCursor(self)
        self.rows: list[TrackRow] = []
        self.axis = TimeAxis(theme.px(LABEL_PX), 600.0, 0.0, 60.0)
        self._armed: frozenset[str] = frozenset()
        self._is_recording = False
        self._takes: Takes = {}
        self._is_fitted = True
        """Whether the axis shows the whole timeline, until a person zooms."""
        self._drag: Drag | None = None
        self._has_changed = False
        """Whether the drag has edited the timeline."""
        self._layer: QPixmap | None = None
        self._pictures = KeyPictures(self.thumbnail_wanted.emit)
        self._zoom_rest = QTimer(self, singleShot=True, interval=_ZOOM_REST_MS)
        self._zoom_rest.timeout.connect(self._redraw)
        self.verticalScrollBar().valueChanged.connect(self._redraw)

    # -- what is shown ----------------------------------------------------------------------------------------------

    def show_session(self, session: Session) -> None:
        """Show a session's timeline; while keys are dragged, the drag's own stays."""
        self.session = session
        if self._drag is None or not self._drag.is_edit:
            self._set_timeline(session.timeline)

    def show_time(self, t: Fraction) -> None:
        """Show the playhead at a time; the view follows it when it leaves."""
        self.time = t
        x = self.axis.x(float(t))
        if self._drag is None and not self.axis.left <= x <= self.axis.left + self.axis.width:
            self._set_axis(self.axis.scrolled(x - self.axis.left))
        self.viewport().update()
        self.redrawn.emit()

    def show_recording(self, armed: frozenset[str], is_recording: bool, takes: Takes) -> None:
        """Show which tracks are armed, and whether what a hand moves is recorded; `takes` grows with it."""
        self._takes = takes
        if (armed, is_recording) != (self._armed, self._is_recording):
            self._armed, self._is_recording = armed, is_recording
            self._redraw()

    def show_thumbnail(self, key: object, image: Any) -> None:
        """Show the small picture of a key's session."""
        self._pictures.show(key, image)
        self._redraw()

    def forget_pictures(self) -> None:
        """Request the small pictures again: another model renders them."""
        self._pictures.clear()
        self._redraw()

    def show_unit(self, unit: RulerUnit) -> None:
        """Count the ruler in seconds or in beats."""
        self.unit = unit
        self._redraw()

    @property
    def is_fitted(self) -> bool:
        """Whether the whole timeline is shown, also when its length or the panel changes."""
        return self._is_fitted

    def fit(self) -> None:
        """Show the whole timeline."""
        self._is_fitted = True
        self._set_axis(self.axis.fitted(float(self.timeline.end)))

    @property
    def scene(self) -> Scene:
        """What is painted now."""
        return Scene(
            self.timeline,
            self.session,
            self.rows,
            self.axis,
            self.verticalScrollBar().value(),
            self.selection,
            self.unit,
            self._armed,
            self._is_recording,
        )

    @property
    def tracks_area(self) -> QRectF:
        """Where keys are seen, in px of the viewport."""
        top = self.scene.ruler_px
        return QRectF(self.axis.left, top, self.axis.width, self.viewport().height() - top)

    def select(self, names: frozenset[KeyName]) -> None:
        """Select keys."""
        if names != self.selection:
            self.selection = names
            self._redraw()

    # -- painting ---------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return a size with room for a few tracks."""
        return QSize(theme.px(700), theme.px(200))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return a size with room for one track."""
        return QSize(theme.px(LABEL_PX + 160), theme.px(72))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the pixmap of everything at rest, then the playhead."""
        area = self.viewport().rect()
        ratio = self.devicePixelRatioF()
        if self._layer is None:
            self._layer = QPixmap(area.size() * ratio)
            self._layer.setDevicePixelRatio(ratio)
            still = QPainter(self._layer)
            scene = self.scene
            is_edited = self._drag is not None and self._drag.is_edit
            self._pictures.may_request = not is_edited and not self._zoom_rest.isActive()
            paint_still(
                still, scene, area, partial(self._pictures.of_key, scene), partial(self._pictures.between, scene)
            )
            still.end()
        painter = QPainter(self.viewport())
        painter.drawPixmap(0, 0, self._layer)
        if self._is_recording and self._takes:
            paint_takes(painter, self.scene, self._takes, area.width())
        elif not self.rows:
            self._paint_hint(painter)
        paint_playhead(painter, self.scene, self.time, area)
        if isinstance(self._drag, BoxDrag):
            painter.setPen(QPen(theme.alpha(theme.current().accent, 0.9), 1))
            painter.setBrush(theme.alpha(theme.current().accent, 0.15))
            painter.drawRect(self._drag.box)
        if self.hasFocus():
            self._paint_cursor(painter)
            painter.setPen(QPen(theme.alpha(theme.current().accent, 0.7), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()

    def _paint_cursor(self, painter: QPainter) -> None:
        """Paint a bar at the left of the track, or of the ruler, that keys act on."""
        row, scene = self.track_cursor.row, self.scene
        bar = QRectF(0, 0, theme.px(3), scene.ruler_px)
        if row is not None:
            painter.setClipRect(self.viewport().rect().adjusted(0, scene.ruler_px, 0, 0))
            bar = QRectF(0, scene.y(row), theme.px(3), row.height)
        painter.fillRect(bar, QColor(theme.current().accent))
        painter.setClipping(False)

    def _paint_hint(self, painter: QPainter) -> None:
        painter.setFont(fonts.body())
        painter.setPen(theme.alpha(theme.current().dim, 1.0))
        edge = theme.px(32)  # right of the playhead at the start
        area = self.viewport().rect().adjusted(int(self.axis.left) + edge, self.scene.ruler_px, -edge, 0)
        painter.drawText(area, _CENTRED, fitting_hint(painter.fontMetrics(), area, has_model=self.isEnabled()))

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """Paint the frame of the focus; Qt updates only the area around the viewport."""
        super().focusInEvent(event)
        self.setAccessibleDescription(self.track_cursor.text())
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """Paint without the frame of the focus."""
        super().focusOutEvent(event)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep the timeline fitted, or its scale."""
        super().resizeEvent(event)
        left = theme.px(LABEL_PX)
        width = max(10.0, self.viewport().width() - left)
        self.axis = TimeAxis(left, width, self.axis.start, self.axis.scale)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        """Repaint in another theme or font, and with or without a model."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.EnabledChange):
            self._redraw()

    def _set_timeline(self, timeline: Timeline) -> None:
        if timeline is self.timeline and self.rows:
            return
        self.timeline = timeline
        self.rows = rows_of(timeline, self.session)
        if self._drag is None:
            self.selection = self.selection & names_of(timeline) if self.selection else frozenset()
        self._arrange()

    def _arrange(self) -> None:
        height = self.rows[-1].top + self.rows[-1].height if self.rows else 0
        room = self.viewport().height() - self.scene.ruler_px
        self.verticalScrollBar().setRange(0, max(0, height - room))
        self.verticalScrollBar().setPageStep(max(1, room))
        if self._is_fitted and self._drag is None:
            self.axis = self.axis.fitted(float(self.timeline.end))
        self._redraw()

    def _set_axis(self, axis: TimeAxis) -> None:
        self.axis = axis
        self._redraw()

    def scroll_to(self, axis: TimeAxis) -> None:
        """Show another part of the time."""
        self._is_fitted = False
        self._set_axis(axis)

    def _redraw(self) -> None:
        self._layer = None
        self.viewport().update()
        self.redrawn.emit()

    # -- mouse ------------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Begin a gesture: seek, move keys, draw a box, drag a handle, stretch, set the loop."""
        if event.buttons() != event.button():
            return  # another button is held, whose gesture goes on
        self._end_drag(event)  # of which a menu has taken the release
        place, modifiers = event.position(), event.modifiers()
        if event.button() == Qt.MouseButton.MiddleButton:
            self._drag = PanDrag(self, place)
            return
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._has_changed = False
        row = self.scene.row_at(place) if place.y() >= self.scene.ruler_px else None
        self.track_cursor.path = "" if row is None else row.track.path
        if place.y() < self.scene.ruler_px:
            self._drag = self._ruler_drag(place, modifiers)
            self._drag.move(place, modifiers)
            return
        if place.x() < self.axis.left:
            if row is not None and is_near(place, self.scene.arm_place(row)):
                self.armed.emit(row.track.path, row.track.path not in self._armed)
            return
        handle = self.scene.handle_at(place)
        if handle is not None:
            self._drag = HandleDrag(self, *handle)
            return
        name = self.scene.key_near(place)
        if name is None:
            self._drag = BoxDrag(self, place, modifiers)
            return
        self._press_key(name, place, modifiers)

    def _press_key(self, name: KeyName, place: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        keys = Qt.KeyboardModifier
        is_added, is_copy = bool(modifiers & (keys.ShiftModifier | keys.ControlModifier)), bool(modifiers & _COPIES)
        was_selected = name in self.selection
        if not was_selected:
            self.select(self.selection | {name} if is_added else frozenset({name}))
        drops = name if is_added and was_selected else None
        self._drag = KeyDrag(self, name, place, is_copy=is_copy, drops=drops)

    def _ruler_drag(self, place: QPointF, modifiers: Qt.KeyboardModifier) -> Drag:
        if len(self.selection) > 1 and place.y() > theme.px(LOOP_PX + 8):
            first, last = self.scene.selected_span
            for at, pivot in ((first, last), (last, first)) if first < last else ():  # keys of one time have no length
                if abs(place.x() - at) <= theme.px(GRAB_PX):
                    return StretchDrag(self, place, self.axis.t(at), self.axis.t(pivot))
        if modifiers & Qt.KeyboardModifier.ShiftModifier or place.y() <= theme.px(LOOP_PX):
            return LoopDrag(self, place)
        return SeekDrag(self)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Go on with the gesture, or show what a press would do."""
        if self._drag is not None and not event.buttons():
            self._end_drag(event)  # a menu that a key opened has taken the release
        if self._drag is not None:
            self._drag.move(event.position(), event.modifiers())
            self.viewport().update()
            return
        self._show_cursor(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """End the gesture with the last button."""
        if not event.buttons():
            self._end_drag(event)

    def _end_drag(self, event: QMouseEvent) -> None:
        drag, self._drag = self._drag, None
        if drag is not None:
            drag.end(event.position(), event.modifiers())
            self._set_timeline(self.timeline)
            self._arrange()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Make a key on a track, or go to the one there."""
        place = event.position()
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if place.y() < self.scene.ruler_px:
            if place.y() <= theme.px(LOOP_PX):
                self.emit_change(replace(self.timeline, loop=None), "Loop")
            return
        row = self.scene.row_at(place)
        if row is None or place.x() < self.axis.left:
            return
        name = self.scene.key_near(place)
        if name is not None:
            self.sought.emit(name[1], True)
        else:
            self.key_wanted.emit(row.track.path, snapped(self.timeline, self.axis.t(place.x())))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Open the menu of the key, of the track or of the ruler under the pointer; none during a gesture."""
        if self._drag is not None:
            return
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self._open_menu()
            return
        place = QPointF(event.pos())
        name = self.scene.key_near(place) if place.x() >= self.axis.left else None
        row = self.scene.row_at(place)
        if place.y() < self.scene.ruler_px:
            self.ruler_menu_requested.emit(self.axis.t(place.x()), event.globalPos())
        elif name is not None:
            self.select(self.selection if name in self.selection else frozenset({name}))
            self.key_menu_requested.emit(event.globalPos())
        elif row is not None:
            self.track_menu_requested.emit(row.track.path, event.globalPos())

    def _open_menu(self) -> None:
        """Open the menu of what the keyboard is on: of the selected keys, else of the track, else of the ruler."""
        scene, row, names = self.scene, self.track_cursor.row, self.track_cursor.selected
        x = min(max(self.axis.x(float(names[0][1] if names else self.time)), self.axis.left), self.viewport().width())
        below = scene.ruler_px if row is None else scene.y(row) + row.height
        place = QPointF(x if names or row is None else theme.px(11), min(below, self.viewport().height()))
        at = self.viewport().mapToGlobal(place.toPoint())
        if names:
            self.key_menu_requested.emit(at)
        elif row is not None:
            self.track_menu_requested.emit(row.track.path, at)
        else:
            self.ruler_menu_requested.emit(self.time, at)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Scroll the tracks; with Ctrl zoom, with Shift or a sideways wheel move in time."""
        delta = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._is_fitted = False
            self._zoom_rest.start()
            self._set_axis(self.axis.zoomed(1.2 ** (delta.y() / 120), event.position().x()))
        elif delta.x() or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._is_fitted = False
            self._set_axis(self.axis.scrolled(-(delta.x() or delta.y()) / 2))
        else:
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() - delta.y() // 3)
        event.accept()

    def _show_cursor(self, place: QPointF) -> None:
        in_ruler = place.y() < self.scene.ruler_px and place.x() >= self.axis.left
        over_key = place.x() >= self.axis.left and self.scene.key_near(place) is not None
        shape = Qt.CursorShape.SizeHorCursor if in_ruler or over_key else Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)

    # -- keyboard and edits -------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Play, step, go to tracks and keys, nudge, copy, paste, delete, cancel."""
        key = event.key()
        if key == Qt.Key.Key_Escape and self._drag is not None:
            self.cancel_drag()
        elif self._drag is not None and self._drag.is_edit and key != Qt.Key.Key_Space:
            event.accept()  # the hand has the keys
        elif key == Qt.Key.Key_Escape and self.selection:
            self.select(frozenset())
        elif key == Qt.Key.Key_Space:
            self.play_toggled.emit()
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.keys.delete()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._enter()
        elif not self._go(key, event.modifiers()) and not self._edit_keys(key, event.modifiers()):
            super().keyPressEvent(event)
            return
        announce(self, self.track_cursor.text())

    def _go(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        """Go where an arrow key, Home or End leads, or take the selected keys there; return whether it is one."""
        ctrl = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        shift = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        back = key in (Qt.Key.Key_Left, Qt.Key.Key_Up)
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            step = -1 if back else 1
            if ctrl:
                self.track_cursor.select_next(step, adds=shift)
                self._reveal()
            else:
                self._step(step * (10 if shift else 1))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            if self.selection and not ctrl:
                self.keys.raise_by(0.01 * (1 if back else -1) * (10 if shift else 1))
            else:
                self.track_cursor.go(-1 if back else 1)
                self._reveal()
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self.sought.emit(self.timeline.playing_range[0 if key == Qt.Key.Key_Home else 1], True)
        else:
            return False
        return True

    def _edit_keys(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        """Select, copy, cut or paste keys; return whether a key of the keyboard does that."""
        if not modifiers & Qt.KeyboardModifier.ControlModifier:
            return False
        if key == Qt.Key.Key_A:
            self.select(names_of(self.timeline))
        elif key in (Qt.Key.Key_C, Qt.Key.Key_X):
            self.keys.copy()
            if key == Qt.Key.Key_X:
                self.keys.delete()
        elif key == Qt.Key.Key_V:
            self.keys.paste()
        else:
            return False
        return True

    def _enter(self) -> None:
        """Do what a double-click does: go to the selected key, else make a key on the track at the playhead."""
        names, row = self.track_cursor.selected, self.track_cursor.row
        if names:
            self.sought.emit(names[0][1], True)
        elif row is not None:
            self.key_wanted.emit(row.track.path, snapped(self.timeline, self.time))

    def _reveal(self) -> None:
        """Scroll to the track and to the selected key that the keyboard is on."""
        row, bar = self.track_cursor.row, self.verticalScrollBar()
        if row is not None:
            bar.setValue(min(max(bar.value(), row.top + row.height - bar.pageStep()), row.top))
            names = self.track_cursor.selected
            x = self.axis.x(float(names[-1][1])) if names else self.axis.left
            if not self.axis.left <= x <= self.axis.left + self.axis.width:
                self.scroll_to(self.axis.scrolled(x - self.axis.left - self.axis.width / 2))
        self.viewport().update()

    def event(self, event: QEvent) -> bool:
        """Take keys that are shortcuts of the window elsewhere."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            own = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_Home, Qt.Key.Key_End)
            plays = event.key() == Qt.Key.Key_Space and not ctrl  # with Ctrl it is the window's: Play, Record
            if (
                plays
                or event.key() in own
                or (ctrl and event.key() in (Qt.Key.Key_A, Qt.Key.Key_C, Qt.Key.Key_X, Qt.Key.Key_V))
            ):
                event.accept()
                return True
        return super().event(event)

    def cancel_drag(self) -> None:
        """Bring back what was before the gesture."""
        drag, self._drag = self._drag, None
        if drag is not None:
            drag.cancel()
            self._set_timeline(self.session.timeline)
            self._arrange()

    def undo_drag(self) -> bool:
        """Cancel a gesture that edits the timeline; return whether it had changed anything."""
        if self._drag is None or not self._drag.is_edit:
            return False
        self.cancel_drag()
        return self._has_changed

    def emit_change(self, timeline: Timeline, label: str, final: bool = True) -> None:
        """Show another timeline and report it."""
        self._has_changed = True
        self.timeline = timeline
        self.rows = rows_of(timeline, self.session)
        self._redraw()
        self.changed.emit(timeline, label, final)

    def _step(self, frames: int) -> None:
        """Nudge the selected keys; without any, move the playhead."""
        if self.selection:
            self.keys.nudge(frames)
        else:
            self.sought.emit(max(Fraction(0), self.time + frames / self.timeline.fps), True)

    def replace_track(self, track: Any, label: str) -> None:
        """Put another track in the place of that of its path."""
        self.emit_change(with_track(self.timeline, track), label)
