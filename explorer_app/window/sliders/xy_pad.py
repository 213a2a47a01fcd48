"""The XY pad: two directions under one finger, and paths drawn with it as keys of the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QElapsedTimer, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QComboBox, QGridLayout, QLabel, QPushButton, QSizePolicy, QWidget

from explorer_app.session.direction_names import default_name, shown_directions
from explorer_app.session.edits import SetParameters
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.controls.named_box import NamedBox
from explorer_app.window.gestures.pointer_path import SHIFT, PointerPath
from explorer_app.window.look import fonts, theme
from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

_FINE = 0.1
_KEY_STEP, _FINE_KEY_STEP = 0.05, 0.005
"""Steps of the arrow keys, as shares of a direction's range."""

_STEPS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, 1),
    Qt.Key.Key_Down: (0, -1),
}
_MOST_POINTS = 20_000
"""Longest drawn path: more than five minutes at 60 points a second."""


@dataclass(frozen=True, slots=True)
class PadAxis:
    """One direction of the pad: its name, and its range around a centre."""

    direction: str
    centre: float = 0.0
    reach: float = 1.0

    @property
    def path(self) -> str:
        """Path of the parameter."""
        return f"slider/{self.direction}"

    def amount(self, share: float) -> float:
        """Return the amount at a share, 0..1, of the way over the pad; the middle is zero, as on a slider."""
        end = self.centre + self.reach if share > 0.5 else self.reach - self.centre
        return round(end * (2.0 * share - 1.0), 4)

    def share(self, amount: float) -> float:
        """Return the place of an amount on the pad, kept to 0..1."""
        end = self.centre + self.reach if amount > 0.0 else self.reach - self.centre
        return 0.5 if amount == 0.0 or end <= 0.0 else min(max(0.5 + 0.5 * amount / end, 0.0), 1.0)


class PadField(QWidget):
    """The square of the pad.

    Signals
    -------
    moved(float, float, bool)
        Shares of the ranges, to the right and upwards; True for the last of a gesture.
    drawn(object)
        The path that was drawn: (seconds since its start, share to the right, share upwards) for each point.
    cancelled(), reset()
        Escape ended a gesture; a double-click, or Backspace.
    """

    moved = Signal(float, float, bool)
    drawn = Signal(object)
    cancelled = Signal()
    reset = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("XY pad")
        self.setToolTip(
            "Drag to move both directions; Shift moves finely, a double-click resets both. Hold Alt, or press Draw, "
            "and the path becomes keys of the timeline. A kept picture dropped at the left or right becomes the "
            "direction of that axis; at the top or bottom, of the other one."
        )
        self.draws = False
        """Whether a drag draws a path without Alt."""
        self._place = QPointF(0.5, 0.5)
        self._dragged: QPointF | None = None
        """Where a drag has led, in shares."""
        self._path: list[tuple[float, float, float]] | None = None
        self._clock = QElapsedTimer()
        self._way = PointerPath(self._follow, self)
        self._names = ("", "")
        self._hint = ""
        self._has_moved = False

    @property
    def is_held(self) -> bool:
        """Whether a drag is under way."""
        return self._dragged is not None

    def show_place(self, right: float, up: float) -> None:
        """Show the amounts, as shares of their ranges."""
        if self._dragged is None and self._place != QPointF(right, up):
            self._place = QPointF(right, up)
            self.update()

    def show_names(self, across: str, up: str) -> None:
        """Show the names of both directions."""
        self._names = across, up
        self.setAccessibleDescription(f"{across} to the right, {up} upwards")
        self.update()

    def show_hint(self, text: str) -> None:
        """Show what is missing in place of the middle lines; an empty text shows them."""
        self._hint = text
        self.update()

    # -- gestures ---------------------------------------------------------------------------------------------------

    def _area(self) -> QRectF:
        edge = theme.px(8)
        return QRectF(self.rect()).adjusted(edge, edge, -edge, -edge)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Go to the pointer, and begin to follow it."""
        if event.button() != Qt.MouseButton.LeftButton or not self.isEnabled():
            return
        area = self._area()
        at = event.position() - area.topLeft()
        self._dragged = _kept(QPointF(at.x() / area.width(), 1.0 - at.y() / area.height()))
        draws = self.draws or bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        self._path = [] if draws else None
        self._has_moved = False
        self._clock.start()
        self._way.begin(event.position())
        self._take(final=False)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Follow the pointer."""
        if self._dragged is not None:
            self._way.move(event)

    def _follow(self, dx: float, dy: float, keys: int) -> None:
        if self._dragged is not None:
            area, factor = self._area(), _FINE if keys & SHIFT else 1.0
            step = QPointF(factor * dx / area.width(), -factor * dy / area.height())
            self._dragged = _kept(self._dragged + step)
            self._has_moved = True
            self._take(final=False)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """End the gesture: the amounts stay, or the path is drawn."""
        if event.button() != Qt.MouseButton.LeftButton or self._dragged is None:
            return
        self._way.flush()
        path, self._path = self._path, None
        if path is None:
            self._take(final=True)
            self._dragged = None
            return
        self._dragged = None
        self.update()
        self.cancelled.emit()  # the keys move the sliders from now on
        if self._has_moved and len(path) > 1:
            self.drawn.emit(tuple(path))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Reset both directions."""
        self.reset.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Arrow keys move, Shift finely; Backspace resets; Escape cancels a drag."""
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape and self.undo_drag():
            return
        if key == Qt.Key.Key_Backspace:
            self.reset.emit()
        elif key in _STEPS and self._dragged is None:
            step = _FINE_KEY_STEP if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else _KEY_STEP
            right, up = _STEPS[key]
            self._place = _kept(self._place + QPointF(right * step, up * step))
            self.update()
            self.moved.emit(self._place.x(), self._place.y(), True)
        else:
            super().keyPressEvent(event)

    def undo_drag(self) -> bool:
        """End a drag and revert what it moved; return whether there was one."""
        if self._dragged is None:
            return False
        self._dragged = self._path = None
        self.update()
        self.cancelled.emit()
        return True

    def _take(self, *, final: bool) -> None:
        assert self._dragged is not None
        self._place = self._dragged
        if self._path is not None and len(self._path) < _MOST_POINTS:
            self._path.append((self._clock.elapsed() / 1000.0, self._place.x(), self._place.y()))
        self.update()
        self.moved.emit(self._place.x(), self._place.y(), final)

    # -- painting ---------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a square."""
        return QSize(theme.px(240), theme.px(240))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest usable size."""
        return QSize(theme.px(120), theme.px(96))

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Show the focus."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the focus."""
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the field, its middle lines, the path and the knob."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(QColor(tokens.accent if self.hasFocus() else tokens.edge), 1))
        painter.setBrush(QColor(tokens.well))
        painter.drawRoundedRect(frame, theme.RADIUS, theme.RADIUS)
        area = self._area()
        if self._hint:
            painter.setFont(fonts.body())
            painter.setPen(QColor(tokens.dim))
            painter.drawText(area, int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap), self._hint)
            painter.end()
            return
        painter.setPen(QPen(QColor(tokens.edge), 1))
        middle = area.center()
        painter.drawLine(QPointF(area.left(), middle.y()), QPointF(area.right(), middle.y()))
        painter.drawLine(QPointF(middle.x(), area.top()), QPointF(middle.x(), area.bottom()))
        painter.setFont(fonts.caption())
        painter.setPen(QColor(tokens.dim))
        right = Qt.AlignmentFlag.AlignRight
        painter.drawText(area, right | Qt.AlignmentFlag.AlignBottom, f"{self._names[0]} →" if self._names[0] else "")
        painter.drawText(area, Qt.AlignmentFlag.AlignTop, f"↑ {self._names[1]}" if self._names[1] else "")
        if self.isEnabled():
            self._paint_knob(painter, area)
        painter.end()

    def _paint_knob(self, painter: QPainter, area: QRectF) -> None:
        tokens = theme.current()
        place = _point(area, self._place)
        if self._path is not None:
            points = [_point(area, QPointF(right, up)) for _, right, up in self._path]
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(tokens.bad), 2))
            painter.drawPolyline(QPolygonF(points))
        painter.setPen(QPen(QColor(tokens.bad if self._path is not None else tokens.accent), 2))
        painter.setBrush(QColor(tokens.strong))
        radius = theme.px(6)
        painter.drawEllipse(place, radius, radius)


class XyPad(QWidget):
    """The panel: the pad, the choice of both directions, and Draw.

    Signals
    -------
    edited(object, bool)
        Both amounts as one edit; True for the last of a gesture.
    gesture_cancelled()
        A gesture was reverted.
    path_drawn(object, object)
        Paths of both parameters, and the points: (seconds since the start, amount, amount) each.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("sliders",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    path_drawn = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("XY pad")
        self._session = Session()
        self._axes: dict[str, PadAxis] = {}
        self._awaited: tuple[int, frozenset[str]] | None = None
        """Axis, 0 or 1, that the next new direction is for, and the directions before."""
        self.across, self.up = self._box("to the right"), self._box("upwards")
        self.field = PadField()
        self.draw = QPushButton("Draw")
        self.draw.setCheckable(True)
        self.draw.setToolTip("A drag over the pad becomes keys of the timeline, from the playhead on (or hold Alt).")
        self.values = HintLabel("")
        labels = QLabel("Right"), QLabel("Up")
        for label in labels:
            theme.set_role(label, "dim")
        layout = QGridLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.MARGIN, theme.MARGIN, theme.MARGIN)
        layout.setSpacing(theme.px(6))
        for row, (label, box) in enumerate(zip(labels, (self.across, self.up), strict=True)):
            layout.addWidget(label, row, 0)
            layout.addWidget(box, row, 1, 1, 2)
        layout.addWidget(self.field, 2, 0, 1, 3)
        layout.addWidget(self.draw, 3, 0, 1, 2, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.values, 3, 2)
        layout.setColumnStretch(2, 1)
        layout.setRowStretch(2, 1)
        self.field.moved.connect(self._moved)
        self.field.drawn.connect(self._drawn)
        self.field.cancelled.connect(self.gesture_cancelled)
        self.field.reset.connect(self._reset)
        self.draw.toggled.connect(lambda on: setattr(self.field, "draws", on))
        self.show_model(None, None)

    def _box(self, name: str) -> QComboBox:
        box = NamedBox(f"Direction {name}")
        box.setToolTip(f"Direction that the pad moves {name}.")
        box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        box.activated.connect(lambda _: self._show())
        return box

    # -- content ----------------------------------------------------------------------------------------------------

    @property
    def axes(self) -> tuple[PadAxis, PadAxis] | None:
        """The chosen directions; None without a model."""
        names = self.across.currentData(), self.up.currentData()
        return (self._axes[names[0]], self._axes[names[1]]) if all(name in self._axes for name in names) else None

    def await_direction(self, place: QPointF) -> None:
        """Take the next direction that is found for the axis on whose side of the field a place is."""
        middle = QRectF(self.field.rect()).center()
        is_up = abs(place.y() - middle.y()) * self.field.width() > abs(place.x() - middle.x()) * self.field.height()
        self._awaited = int(is_up), frozenset(self._axes)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Offer the directions of a model; chosen axes stay if the model has them."""
        chosen = [self.across.currentData(), self.up.currentData()]
        self._axes = {}
        if facts is not None and directions is not None:
            self._axes = {
                directions.names[place]: PadAxis(
                    directions.names[place],
                    directions.centre[place],
                    directions.reach[place],
                )
                for place in shown_directions(directions.names)
            }
        if self._awaited is not None:
            axis, before = self._awaited
            if self._axes and (new := [name for name in self._axes if name not in before]):
                chosen[axis] = new[0]
                self._awaited = None
        for place, box in enumerate((self.across, self.up)):
            box.clear()
            for name in self._axes:
                box.addItem(self._session.slider(name).label or default_name(name), name)
            index = box.findData(chosen[place])
            box.setCurrentIndex(index if index >= 0 else min(place, box.count() - 1))
        for part in (self.across, self.up, self.field, self.draw):
            part.setEnabled(bool(self._axes))
        none_found = "Open a model to move its directions" if facts is None else "Find directions first (Ctrl+D)"
        self.field.show_hint("" if self._axes else none_found)
        self._show()

    def show_session(self, session: Session) -> None:
        """Show the amounts and names of a session."""
        self._session = session
        for box in (self.across, self.up):
            for index in range(box.count()):
                name = box.itemData(index)
                words = session.slider(name).label or default_name(name)
                if box.itemText(index) != words:
                    box.setItemText(index, words)
        self._show()

    def _show(self) -> None:
        axes = self.axes
        if axes is None:
            self.field.show_names("", "")
            self.values.show_text("")
            return
        amounts = [self._session.slider(axis.direction).amount for axis in axes]
        self.field.show_names(self.across.currentText(), self.up.currentText())
        self.field.show_place(axes[0].share(amounts[0]), axes[1].share(amounts[1]))
        self.values.show_text(f"{amounts[0]:+z.2f}, {amounts[1]:+z.2f}".replace("-", "−"))

    # -- edits ------------------------------------------------------------------------------------------------------

    def _moved(self, right: float, up: float, final: bool) -> None:
        axes = self.axes
        if axes is not None:
            self.edited.emit(self._edit(axes, (axes[0].amount(right), axes[1].amount(up))), final)

    def _edit(self, axes: tuple[PadAxis, PadAxis], amounts: tuple[float, float]) -> SetParameters:
        """Return the edit of both amounts."""
        edits = [SetParameter(axis.path, amount) for axis, amount in zip(axes, amounts, strict=True)]
        if axes[0].direction == axes[1].direction:
            del edits[1]
        return SetParameters(tuple(edits), "XY pad")

    def _reset(self) -> None:
        axes = self.axes
        if axes is not None:
            self.gesture_cancelled.emit()
            self.edited.emit(self._edit(axes, (0.0, 0.0)), True)

    def _drawn(self, points: tuple[tuple[float, float, float], ...]) -> None:
        axes = self.axes
        if axes is not None:
            path = tuple((t, axes[0].amount(right), axes[1].amount(up)) for t, right, up in points)
            self.path_drawn.emit((axes[0].path, axes[1].path), path)
            self.draw.setChecked(False)


def _kept(place: QPointF) -> QPointF:
    """Return a place within the pad."""
    return QPointF(min(max(place.x(), 0.0), 1.0), min(max(place.y(), 0.0), 1.0))


def _point(area: QRectF, place: QPointF) -> QPointF:
    return QPointF(area.left() + place.x() * area.width(), area.bottom() - place.y() * area.height())
