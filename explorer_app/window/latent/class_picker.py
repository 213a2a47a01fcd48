"""The class list: one class, or several with weights; by name where a file beside the model has names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from explorer_app.session.class_names import class_words
from explorer_app.session.edits import SetParameter
from explorer_app.session.session import Session
from explorer_app.window import theme
from explorer_app.window.controls.popup import Popup
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.latent.class_list_model import CLASS, COLUMN, NAME, WEIGHT, Classes, ClassListModel

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

_Index = QModelIndex | QPersistentModelIndex

MAX_WEIGHED = 8
"""Classes that can be weighed against each other at once."""

NAMES_TIP = "a text file MODEL.labels.txt beside the model, a name a line, or labels.txt for all models of the folder"
"""Where names of classes come from; `gpu_backend.model.class_names` lists all that is looked for."""

_CUT = Qt.TextElideMode.ElideRight
_BEFORE, _BETWEEN, _AFTER = 22, 10, 8
"""px before a number, between it and a name, and at the end of a line."""

_WIDTH = 300
_NAMED_WIDTH = 380


def classes_label(classes: Classes, names: Sequence[str] = ()) -> str:
    """Return the words on the button: ``"Class"``, ``"Class 17"``, ``"17 jay"``, ``"3 classes"``."""
    if not classes:
        return "Class"
    return class_words(classes[0][0], names) if len(classes) == 1 else f"{len(classes)} classes"


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
        weight = float(index.data(WEIGHT))
        if weight:
            painter.setBrush(QColor(tokens.accent))
            painter.drawEllipse(QRectF(rect.left() + 8, rect.center().y() - 3, 6, 6))
        colour = QColor(tokens.strong if weight else tokens.text)
        painter.setPen(colour)
        metrics = painter.fontMetrics()
        flags = Qt.AlignmentFlag.AlignVCenter
        inner = rect.adjusted(_BEFORE, 0, -_AFTER, 0)
        if weight and int(index.data(CLASS)) >= 0:
            painter.setPen(QColor(tokens.dim))
            painter.drawText(inner, flags | Qt.AlignmentFlag.AlignRight, f"{weight:.2f}")
            painter.setPen(colour)
        name = str(index.data(NAME))
        if name:
            painter.setPen(QColor(tokens.dim))
            column = metrics.horizontalAdvance(index.data(COLUMN))
            number = QRectF(inner.left(), inner.top(), column, inner.height())
            painter.drawText(number, flags | Qt.AlignmentFlag.AlignRight, str(index.data(CLASS)))
            painter.setPen(colour)
        words = name or str(index.data())
        place = inner.adjusted(self._indent(metrics, index), 0, 0, 0)
        room = self._room(metrics, option, index)
        painter.drawText(place, flags | Qt.AlignmentFlag.AlignLeft, metrics.elidedText(words, _CUT, room))
        painter.restore()

    def helpEvent(  # noqa: N802
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: _Index
    ) -> bool:
        """Tell a name that is cut."""
        metrics, name = view.fontMetrics(), str(index.data(NAME) or "")
        if event.type() == QEvent.Type.ToolTip and metrics.horizontalAdvance(name) <= self._room(
            metrics, option, index
        ):
            QToolTip.hideText()
            return True
        return super().helpEvent(event, view, option, index)

    @staticmethod
    def _indent(metrics: QFontMetrics, index: _Index) -> int:
        """Return where words begin, right of the column of numbers."""
        column = str(index.data(COLUMN))
        return metrics.horizontalAdvance(column) + _BETWEEN if column else 0

    def _room(self, metrics: QFontMetrics, option: QStyleOptionViewItem, index: _Index) -> int:
        """Return the px that a name has, which ends before the weight."""
        weight = metrics.horizontalAdvance("0.00") + _BETWEEN if index.data(WEIGHT) else 0
        return int(option.rect.width()) - _BEFORE - _AFTER - self._indent(metrics, index) - weight


class ClassFilter(QLineEdit):
    """The field to search in; the arrow down leaves it for the list.

    Signals
    -------
    left()
        The arrow down was pressed.
    """

    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Go down into the list."""
        if event.key() == Qt.Key.Key_Down:
            self.left.emit()
        else:
            super().keyPressEvent(event)


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

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Say so where no class is found."""
        super().paintEvent(event)
        if self.model().rowCount() == 0:
            painter = QPainter(self.viewport())
            painter.setPen(QColor(theme.current().dim))
            painter.drawText(self.viewport().rect(), Qt.AlignmentFlag.AlignCenter, "No class is like that")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Choose."""
        super().mouseReleaseEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and index.isValid():
            joins = bool(event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier))
            self.chosen.emit(int(index.data(CLASS)), joins)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter chooses, Space joins."""
        index = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and index.isValid():
            self.chosen.emit(int(index.data(CLASS)), event.key() == Qt.Key.Key_Space)
        else:
            super().keyPressEvent(event)


class ClassPicker(Popup):
    """A popup with a filter, the list of classes, and a slider for each class that is weighed.

    Signals
    -------
    edited(object, bool)
        `SetParameter` for the classes; True once a gesture.
    gesture_cancelled()
        Escape ended a drag on a weight.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("classes",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._classes: Classes = ()
        self._names: Sequence[str] = ()
        self._has_none = True
        self.setAccessibleName("Choose a class")
        self.filter = ClassFilter()
        self.filter.setClearButtonEnabled(False)
        self.filter.setAccessibleName("Filter classes")
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
        self.setFixedWidth(theme.px(_WIDTH))
        self.filter.textChanged.connect(self._filter)
        self.filter.left.connect(self._enter_list)
        self.filter.returnPressed.connect(self._choose_first)
        self.list.chosen.connect(self._choose)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None = None) -> None:
        """Take on a model's classes."""
        count, file = (facts.c_dim, facts.class_file) if facts is not None else (0, "")
        self._names = facts.class_names if facts is not None else ()
        self._has_none = facts is None or not facts.looks_classes_up
        self.model.show_classes(count, self._names, has_none=self._has_none)
        self.setFixedWidth(theme.px(_NAMED_WIDTH if self._names else _WIDTH))
        self.filter.setPlaceholderText(
            f"Search {count} classes by name or number" if self._names else f"Filter {count} classes"
        )
        self.filter.setToolTip(
            f"Show only classes whose number or name holds these words; the names are from {file}."
            if self._names
            else f"Show only classes whose number holds these digits; {NAMES_TIP}, gives them names."
        )
        self._show_rows()

    def show_session(self, session: Session) -> None:
        """Mark the session's classes."""
        if session.classes != self._classes:
            self._show(session.classes)

    def open_at(self, point: QPoint) -> None:
        """Open with the chosen class in sight."""
        self.filter.clear()
        super().open_at(point)
        row = self.model.row_of(self._classes[0][0] if self._classes else -1)
        self.list.setCurrentIndex(self.model.index(row))
        self.list.scrollTo(self.model.index(row), QListView.ScrollHint.PositionAtCenter)
        self.filter.setFocus()

    def _filter(self, text: str) -> None:
        self.model.show_filter(text)
        self.list.scrollToTop()

    def _enter_list(self) -> None:
        if not self.list.currentIndex().isValid():
            self.list.setCurrentIndex(self.model.index(0))
        self.list.setFocus()

    def _choose_first(self) -> None:
        if self.model.rowCount():
            self._choose(int(self.model.index(0).data(CLASS)), False)

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
        if classes != self._classes and (classes or self._has_none):
            self._show(classes)
            self.edited.emit(SetParameter("classes", classes), True)

    def _weigh(self, number: int, weight: float, final: bool) -> None:
        self._classes = tuple((known, weight if known == number else old) for known, old in self._classes)
        self.model.show_weights(self._classes)
        self.edited.emit(SetParameter("classes", self._classes, "Class weight"), final)

    def _show(self, classes: Classes) -> None:
        same = [number for number, _ in classes] == [number for number, _ in self._classes]
        self._classes = classes
        self.model.show_weights(classes)
        self.hint.setText("Click for one class, Ctrl-click to weigh several")
        if not same:
            self._show_rows()
        for row, (_, weight) in zip(self.rows, classes, strict=True):
            row.show_amount(weight)

    def _show_rows(self) -> None:
        """Show a slider for each class that is weighed."""
        for row in self.rows:
            row.hide()
            row.deleteLater()
        self.rows = [self._weight_row(number, weight) for number, weight in self._classes]
        for row in self.rows:
            self._weights.addWidget(row)
            row.show()  # a layout would do so later, when the size is settled
        if self.isVisible():
            super().open_at(self.pos())  # of its new size, and all of it seen

    def _weight_row(self, number: int, weight: float) -> SliderRow:
        words = class_words(number, self._names)
        wide = 170 if self._names else 98
        row = SliderRow(words, 0.0, 1.0, reset=1.0, beyond=10.0, label_px=wide, tip="weight of this class.")
        row.show_amount(weight)
        row.moved.connect(lambda weight, final: self._weigh(number, weight, final))
        row.cancelled.connect(self.gesture_cancelled)
        return row
