"""The class list: one class, or several with weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from explorer_app.session.edits import SetClasses
from explorer_app.session.session import Session
from explorer_app.window import theme
from explorer_app.window.controls.popup import Popup
from explorer_app.window.controls.slider_row import SliderRow

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

Classes = tuple[tuple[int, float], ...]
_Index = QModelIndex | QPersistentModelIndex

MAX_WEIGHED = 8
"""Classes that can be weighed against each other at once."""

_CLASS = Qt.ItemDataRole.UserRole
_WEIGHT = Qt.ItemDataRole.UserRole + 1


def classes_label(classes: Classes) -> str:
    """Return the words on the button: ``"Class"``, ``"Class 17"``, ``"3 classes"``."""
    if not classes:
        return "Class"
    return f"Class {classes[0][0]}" if len(classes) == 1 else f"{len(classes)} classes"


class ClassListModel(QAbstractListModel):
    """All classes whose number holds the filter; the first entry is "No class" while nothing is filtered."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._count = 0
        self._filter = ""
        self._shown: list[int] = []
        self._weights: dict[int, float] = {}

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's signature
        """Return how many classes are shown."""
        return 0 if parent.isValid() else len(self._shown)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a class's words, number or weight."""
        number = self._shown[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return "No class" if number < 0 else f"Class {number}"
        if role == _CLASS:
            return number
        if role == _WEIGHT:
            return self._weights.get(number, 0.0) if number >= 0 else float(not self._weights)
        return None

    def show_classes(self, count: int) -> None:
        """Take on the classes of a model."""
        self._count = count
        self._rebuild()

    def show_filter(self, text: str) -> None:
        """Show only classes whose number holds the digits of a text."""
        self._filter = "".join(letter for letter in text if letter.isdigit())
        self._rebuild()

    def show_weights(self, classes: Classes) -> None:
        """Mark the chosen classes."""
        self._weights = dict(classes)
        if self._shown:
            self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))

    def _rebuild(self) -> None:
        self.beginResetModel()
        numbers = [number for number in range(self._count) if self._filter in str(number)]
        self._shown = numbers if self._filter else [-1, *numbers]
        self.endResetModel()


class _ClassDelegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:  # noqa: N802
        return QSize(120, theme.px(theme.ROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        tokens = theme.current()
        rect = QRectF(option.rect)
        state = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if state & (QStyle.StateFlag.State_MouseOver | QStyle.StateFlag.State_HasFocus):
            painter.setBrush(QColor(tokens.raised))
            painter.drawRoundedRect(rect, 4, 4)
        weight = float(index.data(_WEIGHT))
        if weight:
            painter.setBrush(QColor(tokens.accent))
            painter.drawEllipse(QRectF(rect.left() + 8, rect.center().y() - 3, 6, 6))
        painter.setPen(QColor(tokens.strong if weight else tokens.text))
        inner = rect.adjusted(22, 0, -8, 0)
        painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, str(index.data()))
        if weight and int(index.data(_CLASS)) >= 0:
            painter.setPen(QColor(tokens.dim))
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, f"{weight:.2f}")
        painter.restore()


class ClassList(QListView):
    """The list.

    A click or Enter chooses one class; with Ctrl, or Space, a class joins or leaves those that are weighed.

    Signals
    -------
    chosen(int, bool)
        A class (-1 for none), and whether it joins the others.
    """

    chosen = Signal(int, bool)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setUniformItemSizes(True)
        self.setItemDelegate(_ClassDelegate(self))
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Classes")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Choose."""
        super().mouseReleaseEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and index.isValid():
            joins = bool(event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier))
            self.chosen.emit(int(index.data(_CLASS)), joins)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter chooses, Space joins."""
        index = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and index.isValid():
            self.chosen.emit(int(index.data(_CLASS)), event.key() == Qt.Key.Key_Space)
        else:
            super().keyPressEvent(event)


class ClassPicker(Popup):
    """A popup with a filter, the list of classes, and a slider for each class that is weighed.

    Signals
    -------
    edited(object, bool)
        `SetClasses`; True once a gesture.
    gesture_cancelled()
        Escape ended a drag on a weight.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._classes: Classes = ()
        self.setAccessibleName("Choose a class")
        self.filter = QLineEdit()
        self.filter.setClearButtonEnabled(False)
        self.filter.setAccessibleName("Filter classes")
        self.filter.setToolTip("Show only classes whose number holds these digits.")
        self.model = ClassListModel(self)
        self.list = ClassList(self)
        self.list.setModel(self.model)
        self.list.setFixedHeight(theme.px(theme.ROW) * 8)
        self.hint = QLabel("Click for one class, Ctrl-click to weigh several")
        theme.set_role(self.hint, "hint")
        self.rows: list[SliderRow] = []
        self._weights = QVBoxLayout()
        self._weights.setSpacing(0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.MARGIN, theme.MARGIN, theme.MARGIN)
        layout.setSpacing(6)
        layout.addWidget(self.filter)
        layout.addWidget(self.list)
        layout.addLayout(self._weights)
        layout.addWidget(self.hint)
        self.setFixedWidth(theme.px(300))
        self.filter.textChanged.connect(self.model.show_filter)
        self.filter.returnPressed.connect(self._choose_first)
        self.list.chosen.connect(self._choose)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None = None) -> None:
        """Take on a model's classes."""
        count = facts.c_dim if facts is not None else 0
        self.model.show_classes(count)
        self.filter.setPlaceholderText(f"Filter {count} classes")

    def show_session(self, session: Session) -> None:
        """Mark the session's classes."""
        if session.classes != self._classes:
            self._show(session.classes)

    def open_at(self, point: QPoint) -> None:
        """Open with the chosen class in sight."""
        self.filter.clear()
        super().open_at(point)
        row = self._classes[0][0] + 1 if self._classes else 0
        self.list.setCurrentIndex(self.model.index(row))
        self.list.scrollTo(self.model.index(row), QListView.ScrollHint.PositionAtCenter)
        self.filter.setFocus()

    def _choose_first(self) -> None:
        if self.model.rowCount():
            self._choose(int(self.model.index(0).data(_CLASS)), False)

    def _choose(self, number: int, joins: bool) -> None:
        weights = dict(self._classes)
        if number < 0:
            classes: Classes = ()
        elif not joins:
            classes = ((number, 1.0),)
        elif number in weights:
            classes = tuple(item for item in self._classes if item[0] != number)
        elif len(weights) < MAX_WEIGHED:
            classes = (*self._classes, (number, 1.0))
        else:
            self.hint.setText(f"{MAX_WEIGHED} classes are weighed already: take one away first")
            return
        if classes != self._classes:
            self._show(classes)
            self.edited.emit(SetClasses(classes), True)

    def _weigh(self, number: int, weight: float, final: bool) -> None:
        self._classes = tuple((known, weight if known == number else old) for known, old in self._classes)
        self.model.show_weights(self._classes)
        self.edited.emit(SetClasses(self._classes, label="Class weight"), final)

    def _show(self, classes: Classes) -> None:
        same = [number for number, _ in classes] == [number for number, _ in self._classes]
        self._classes = classes
        self.model.show_weights(classes)
        self.hint.setText("Click for one class, Ctrl-click to weigh several")
        if not same:
            for row in self.rows:
                row.hide()
                row.deleteLater()
            self.rows = [self._weight_row(number) for number, _ in classes]
            for row in self.rows:
                self._weights.addWidget(row)
            if self.isVisible():
                self.adjustSize()
        for row, (_, weight) in zip(self.rows, classes, strict=True):
            row.show_amount(weight)

    def _weight_row(self, number: int) -> SliderRow:
        row = SliderRow(f"Class {number}", 0.0, 1.0, reset=1.0, beyond=10.0, tip="weight of this class.")
        row.moved.connect(lambda weight, final: self._weigh(number, weight, final))
        row.cancelled.connect(self.gesture_cancelled)
        return row
