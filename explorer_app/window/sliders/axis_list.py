"""Every dimension of w as a slider, in a virtual list: rows are painted, not built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QContextMenuEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QFrame, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer_app.session.direction_names import default_name
from explorer_app.session.edits import set_slider
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session, Slider
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.parameter_menu import open_parameter_menu
from explorer_app.window.controls.slider_painting import paint_slider
from explorer_app.window.controls.value_slider import FINE
from explorer_app.window.look import theme
from gpu_backend import RowRange

_Index = QModelIndex | QPersistentModelIndex

REACH = 6.0
"""Ends of a dimension's slider; larger values can be typed."""

STEP, SNAP = 0.01, 0.5
_TYPED_UP_TO = 999.0
_HANDLE = 8.0


def axis_name(axis: int) -> str:
    """Return the direction name of a dimension of w."""
    return f"axis/{axis}"


def axis_rows(session: Session, chosen: RowRange, axis: int) -> Slider:
    """Return a dimension's slider; an untouched one gets the rows selected in the panel, if these are not all."""
    slider = session.slider(axis_name(axis))
    is_new = slider == Slider(slider.direction) and chosen != RowRange()
    return replace(slider, rows=chosen) if is_new else slider


def axis_parts(row: QRect) -> tuple[QRect, QRect, QRect]:
    """Return the rectangles of a row's label, slider and number."""
    label, number = theme.px(64), theme.px(60)
    inner = row.adjusted(theme.MARGIN, 0, -theme.MARGIN, 0)
    return (
        QRect(inner.left(), inner.top(), label, inner.height()),
        QRect(inner.left() + label, inner.top(), max(inner.width() - label - number, 40), inner.height()),
        QRect(inner.right() - number + 7, inner.top(), number - 6, inner.height()),
    )


class AxisModel(QAbstractListModel):
    """List model of the dimensions of w and their amounts; `only_moved` filters out axes at zero."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.amounts: dict[int, float] = {}
        self.played: dict[int, float] = {}
        """Amounts that sounds and controllers give dimensions."""
        self._count = 0
        self._only_moved = False
        self._shown: list[int] = []

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's signature
        """Return the number of shown dimensions."""
        return 0 if parent.isValid() else len(self._shown)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a dimension's label, index or amount."""
        axis = self._shown[index.row()]
        amount = self.amounts.get(axis, 0.0)
        if role == Qt.ItemDataRole.UserRole:
            return axis
        if role == Qt.ItemDataRole.EditRole:
            return amount
        if role == Qt.ItemDataRole.DisplayRole:
            return default_name(axis_name(axis))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{default_name(axis_name(axis))}: {amount:+.2f}".replace("-", "−")
        if role == Qt.ItemDataRole.ToolTipRole:
            return (
                f"Dimension {axis} of w, −{REACH:g} to +{REACH:g}: drag, or step with Left and Right; "
                "Shift moves finely, Ctrl snaps, a double-click sets 0.00, Enter types."
            )
        return None

    def flags(self, index: _Index) -> Qt.ItemFlag:
        """Return the flags with `ItemIsEditable`, because amounts can be typed."""
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def axis_at(self, row: int) -> int:
        """Return the dimension in a row."""
        return self._shown[row]

    def show_dimensions(self, count: int) -> None:
        """Set the number of dimensions of w."""
        self._count = count
        self._rebuild()

    def show_only_moved(self, only_moved: bool) -> None:
        """Filter out the dimensions at zero, or show all."""
        self._only_moved = only_moved
        self._rebuild()

    def show_amounts(self, amounts: dict[int, float]) -> None:
        """Show amounts. With `only_moved`, a shown dimension that returns to zero stays in the list."""
        if amounts == self.amounts:
            return
        self.amounts = amounts
        shown = set(self._shown)
        if self._only_moved and (not amounts or not shown.issuperset(amounts)):
            self._rebuild()
        elif self._shown:
            self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))

    def show_played(self, played: dict[int, float]) -> None:
        """Show the amounts that sounds and controllers give dimensions."""
        if played != self.played:
            self.played = played
            if self._shown:
                self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))

    def _rebuild(self) -> None:
        self.beginResetModel()
        moved = sorted(axis for axis in self.amounts if axis < self._count)
        self._shown = moved if self._only_moved else list(range(self._count))
        self.endResetModel()


class _AxisDelegate(QStyledItemDelegate):
    def __init__(self, view: AxisList) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:  # noqa: N802
        return QSize(160, theme.px(theme.ROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        tokens = theme.current()
        label, slider, number = axis_parts(option.rect)
        state = option.state
        focused = bool(state & QStyle.StateFlag.State_HasFocus)
        amount = float(index.data(Qt.ItemDataRole.EditRole))
        played = self._view.axes.played.get(int(index.data(Qt.ItemDataRole.UserRole)))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if focused:
            painter.setPen(QPen(QColor(tokens.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            row = QRectF(option.rect).adjusted(4.5, 1.5, -4.5, -1.5)
            painter.drawRoundedRect(row, 4, 4)
        painter.setPen(QColor(tokens.text if amount else tokens.dim))
        painter.drawText(label, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, str(index.data()))
        paint_slider(
            painter,
            QRectF(slider),
            at=x_of(slider, amount),
            neutral=x_of(slider, 0.0),
            played=None if played is None else x_of(slider, played),
            enabled=self._view.isEnabled(),
            hot=bool(state & QStyle.StateFlag.State_MouseOver),
        )
        painter.setPen(QColor(tokens.strong if amount else tokens.dim))
        words = f"{amount:+.2f}".replace("-", "−") if amount else "0.00"
        painter.drawText(number, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, words)
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:  # noqa: N802
        field = NumberField(-_TYPED_UP_TO, _TYPED_UP_TO, step=SNAP, signed=True, quiet=True, parent=parent)
        field.setAccessibleName(f"{index.data()}, number")
        return field

    def setEditorData(self, editor: QWidget, index: _Index) -> None:  # noqa: N802
        if isinstance(editor, NumberField):
            editor.show_number(float(index.data(Qt.ItemDataRole.EditRole)))
            editor.selectAll()

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:  # noqa: N802
        if isinstance(editor, NumberField):
            editor.interpretText()
            self._view.set_amount(int(index.data(Qt.ItemDataRole.UserRole)), editor.value())

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:  # noqa: N802
        editor.setGeometry(axis_parts(option.rect)[2].adjusted(-4, 1, 4, -1))


def x_of(slider: QRect, amount: float) -> float:
    """Return the x coordinate of an amount on a row's track."""
    share = (min(max(amount, -REACH), REACH) + REACH) / (2 * REACH)
    return slider.left() + _HANDLE + share * (slider.width() - 2 * _HANDLE)


class AxisList(QListView):
    """All dimensions; drag a row's slider, or step the current row with Left and Right.

    Signals
    -------
    edited(object, bool)
        An Edit, from `set_slider`; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.axes = AxisModel(self)
        self._session = Session()
        self.new_rows = RowRange()
        self._axis = -1
        self._before: float | None = None
        self._exact = 0.0
        self._amount = 0.0
        self._last = QPointF()
        self._dragging = False
        self._has_moved = False
        """Whether the active gesture has emitted an amount."""
        self.setModel(self.axes)
        self.setItemDelegate(_AxisDelegate(self))
        self.setUniformItemSizes(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setSelectionMode(QListView.SelectionMode.NoSelection)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setAccessibleName("Dimensions of w")

    def show_session(self, session: Session) -> None:
        """Show the session's amounts; a dragged row keeps its own."""
        self._session = session
        amounts = {
            int(item.direction.removeprefix("axis/")): item.amount
            for item in session.sliders
            if item.direction.startswith("axis/") and item.amount
        }
        if self._dragging:
            amounts[self._axis] = self._amount
        self.axes.show_amounts(amounts)

    def show_played(self, values: Mapping[str, float]) -> None:
        """Show the amounts that sounds and controllers give dimensions, path of a parameter -> value."""
        first = "slider/axis/"
        played = {int(path.removeprefix(first)): value for path, value in values.items() if path.startswith(first)}
        self.axes.show_played(played)

    def set_amount(self, axis: int, amount: float) -> None:
        """Set an amount as one complete gesture."""
        self._begin(axis)
        self._go(amount)
        self.finish()

    def finish(self) -> None:
        """End the active gesture as a mouse release does."""
        before, self._before = self._before, None
        self._dragging = False
        if before is not None and self._has_moved:  # even if it ends at its first amount: its edits were emitted
            self._emit(True)

    def cancel(self) -> bool:
        """Restore the amount before the active gesture; return False if no gesture is active."""
        if self._before is None:
            return False
        self._show(self._before)
        self._before = None
        self._dragging = False
        self.gesture_cancelled.emit()
        return True

    def undo_drag(self) -> bool:
        """End a drag and restore the amount before it; return whether the drag had changed it."""
        return self._dragging and self.cancel() and self._has_moved

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Offer to animate a dimension, and to learn a controller for it."""
        is_by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        index = self.indexAt(event.pos()) if is_by_mouse else self.currentIndex()
        if not index.isValid():
            super().contextMenuEvent(event)
            return
        self.finish()
        corner = self.viewport().mapToGlobal(self.visualRect(index).bottomLeft())
        place = event.globalPos() if is_by_mouse else corner
        path = f"slider/{axis_name(self.axes.axis_at(index.row()))}"
        open_parameter_menu(self, path, place, -REACH, REACH)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Begin dragging the slider of a row."""
        super().mousePressEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() != Qt.MouseButton.LeftButton or not index.isValid():
            return
        slider = axis_parts(self.visualRect(index))[1]
        if not slider.contains(event.position().toPoint()):
            return
        self.finish()
        self._begin(self.axes.axis_at(index.row()))
        self._dragging = True
        self._last = event.position()
        self._exact = min(max(self._amount, -REACH), REACH)
        if abs(event.position().x() - x_of(slider, self._amount)) > _HANDLE + 1:
            share = (event.position().x() - slider.left() - _HANDLE) / max(slider.width() - 2 * _HANDLE, 1)
            self._exact = (2 * share - 1) * REACH
            self._follow(event.modifiers())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Follow the pointer."""
        if not self._dragging:
            super().mouseMoveEvent(event)
            return
        span = max(axis_parts(QRect(0, 0, self.viewport().width(), 10))[1].width() - 2 * _HANDLE, 1)
        fine = FINE if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1.0
        self._exact += (event.position().x() - self._last.x()) * fine * 2 * REACH / span
        self._last = event.position()
        self._follow(event.modifiers())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """End the drag."""
        super().mouseReleaseEvent(event)
        if self._dragging:
            self.finish()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Reset the amount on the slider; edit it on the number."""
        index = self.indexAt(event.position().toPoint())
        if event.button() != Qt.MouseButton.LeftButton or not index.isValid():
            return
        if axis_parts(self.visualRect(index))[2].contains(event.position().toPoint()):
            self.edit(index)
        else:
            self.set_amount(self.axes.axis_at(index.row()), 0.0)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Step, reset, edit or cancel; Up and Down change the row."""
        key, index = event.key(), self.currentIndex()
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key == Qt.Key.Key_Escape:
            if not self.cancel():
                event.ignore()
        elif not index.isValid() or self.state() == QListView.State.EditingState:
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._begin(self.axes.axis_at(index.row()))
            way = 1 if key == Qt.Key.Key_Right else -1
            self._go(round(self._amount + way * (STEP if fine else SNAP), 4))
        elif key in (Qt.Key.Key_Backspace, Qt.Key.Key_Delete):
            self.set_amount(self.axes.axis_at(index.row()), 0.0)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.edit(index)
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """End the gesture of a held key."""
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and not event.isAutoRepeat() and not self._dragging:
            self.finish()
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """End the gesture of a held key when focus is lost."""
        if not self._dragging:
            self.finish()
        super().focusOutEvent(event)

    def _begin(self, axis: int) -> None:
        if self._before is None or self._axis != axis:
            self.finish()
            self._axis = axis
            self._amount = self.axes.amounts.get(axis, 0.0)
            self._before = self._amount
            self._has_moved = False

    def _follow(self, modifiers: Qt.KeyboardModifier) -> None:
        size = SNAP if modifiers & Qt.KeyboardModifier.ControlModifier else STEP
        self._go(min(max(round(round(self._exact / size) * size, 6) + 0.0, -REACH), REACH))

    def _go(self, amount: float) -> None:
        if amount != self._amount:
            self._show(amount)
            self._has_moved = True
            self._emit(False)

    def _show(self, amount: float) -> None:
        self._amount = amount
        self.axes.show_amounts(
            {axis: known for axis, known in self.axes.amounts.items() if axis != self._axis}
            | ({self._axis: amount} if amount else {})
        )

    def _emit(self, final: bool) -> None:
        slider = axis_rows(self._session, self.new_rows, self._axis)
        name = slider.label or default_name(slider.direction)
        edit = SetParameter(f"slider/{slider.direction}", self._amount, name)
        self.edited.emit(set_slider(slider.direction, slider.rows, edit), final)
