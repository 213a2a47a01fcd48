"""The class picker: one class or several with weights, by name if a file beside the model has names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
)
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

from explorer_app.session.class_names import class_text
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from explorer_app.window.controls.popup import Popup
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.latent.class_list_model import CLASS, COLUMN, NAME, PICTURE, WEIGHT, Classes, ClassListModel
from explorer_app.window.look import theme
from explorer_app.window.mix.mix_cells import paint_picture

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

_Index = QModelIndex | QPersistentModelIndex

MAX_WEIGHED = 8
"""Maximum number of classes with weights."""

NAMES_TIP = "a text file MODEL.labels.txt beside the model, a name a line, or labels.txt for all models of the folder"
"""Hint about the source of class names; `gpu_backend.model.class_names` lists the files that are read."""

_CUT = Qt.TextElideMode.ElideRight
_DOT, _BETWEEN, _AFTER = 20, 10, 8
"""Spacing before a picture, between picture, number and name, and at the end of a line, in px."""

_WIDTH = 300
_NAMED_WIDTH = 400
_ROW, _PICTURE = 36, 32
"""Height of a line, and of the picture at its left end, in px."""

_ROWS_IN_SIGHT = 7
_REQUEST_MS = 120
_KEPT_PICTURES = 256


def _before() -> int:
    """Return the x offset in px of the text, right of the picture."""
    return _DOT + theme.px(_PICTURE) + _BETWEEN


def classes_label(classes: Classes, names: Sequence[str] = ()) -> str:
    """Return the button's label: ``"Class"``, ``"Class 17"``, ``"17 jay"``, ``"3 classes"``."""
    if not classes:
        return "Class"
    return class_text(classes[0][0], names) if len(classes) == 1 else f"{len(classes)} classes"


class _ClassDelegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:  # noqa: N802
        return QSize(120, theme.px(_ROW))

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
        side = theme.px(_PICTURE)
        place = QRectF(rect.left() + _DOT, rect.top() + (rect.height() - side) / 2, side, side)
        if int(index.data(CLASS)) >= 0:
            paint_picture(painter, place, index.data(PICTURE))
        weight = float(index.data(WEIGHT))
        if weight:
            painter.setBrush(QColor(tokens.accent))
            painter.drawEllipse(QRectF(rect.left() + 7, rect.center().y() - 3, 6, 6))
        colour = QColor(tokens.strong if weight else tokens.text)
        painter.setPen(colour)
        metrics = painter.fontMetrics()
        flags = Qt.AlignmentFlag.AlignVCenter
        inner = rect.adjusted(_before(), 0, -_AFTER, 0)
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
        """Show the full name of an elided entry."""
        metrics, name = view.fontMetrics(), str(index.data(NAME) or "")
        if event.type() == QEvent.Type.ToolTip and metrics.horizontalAdvance(name) <= self._room(
            metrics, option, index
        ):
            QToolTip.hideText()
            return True
        return super().helpEvent(event, view, option, index)

    @staticmethod
    def _indent(metrics: QFontMetrics, index: _Index) -> int:
        """Return the x offset in px of the name, right of the column of numbers."""
        column = str(index.data(COLUMN))
        return metrics.horizontalAdvance(column) + _BETWEEN if column else 0

    def _room(self, metrics: QFontMetrics, option: QStyleOptionViewItem, index: _Index) -> int:
        """Return the width in px for a name, which ends before the weight."""
        weight = metrics.horizontalAdvance("0.00") + _BETWEEN if index.data(WEIGHT) else 0
        return int(option.rect.width()) - _before() - _AFTER - self._indent(metrics, index) - weight


class ClassFilter(QLineEdit):
    """The search field; the Down key moves the focus to the list.

    Signals
    -------
    left()
        The Down key was pressed.
    """

    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Move to the list on the Down key."""
        if event.key() == Qt.Key.Key_Down:
            self.left.emit()
        else:
            super().keyPressEvent(event)


class ClassList(QListView):
    """The list.

    A click or Enter selects one class; Ctrl with a click, or Space, adds a class to the weighted ones or removes it.

    Signals
    -------
    chosen(int, bool)
        A class (-1 for none), and whether it is added to or removed from the weighted ones.
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
        """Show a text if no class matches."""
        super().paintEvent(event)
        if self.model().rowCount() == 0:
            painter = QPainter(self.viewport())
            painter.setPen(QColor(theme.current().dim))
            painter.drawText(self.viewport().rect(), Qt.AlignmentFlag.AlignCenter, "No class matches")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Select the class under the pointer."""
        super().mouseReleaseEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and index.isValid():
            joins = bool(event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier))
            self.chosen.emit(int(index.data(CLASS)), joins)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter selects, Space adds or removes."""
        index = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and index.isValid():
            self.chosen.emit(int(index.data(CLASS)), event.key() == Qt.Key.Key_Space)
        else:
            super().keyPressEvent(event)


class ClassPicker(Popup):
    """A popup with a filter, the list of classes, and a slider for each weighted class.

    Signals
    -------
    edited(object, bool)
        `SetParameter` for the classes; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag on a weight.
    thumbnail_wanted(object, object)
        ``("class", session)`` and that session, for visible classes without a picture; the result arrives in
        `show_thumbnail`.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("classes",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._place = Session()
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
        self.list.setFixedHeight(theme.px(_ROW) * _ROWS_IN_SIGHT)
        self.hint = QLabel("Click for one class, Ctrl-click to weight several")
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
        self._request_timer = QTimer(self, singleShot=True, interval=_REQUEST_MS)
        self._request_timer.timeout.connect(self._request_pictures)
        self.list.verticalScrollBar().valueChanged.connect(lambda _: self._request_timer.start())
        self.model.modelReset.connect(self._request_timer.start)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None = None) -> None:
        """Set up the classes of a model."""
        count, file = (facts.c_dim, facts.class_file) if facts is not None else (0, "")
        self._names = facts.class_names if facts is not None else ()
        self.model.forget_pictures()
        self._has_none = facts is None or not facts.looks_classes_up
        self.model.show_classes(count, self._names, has_none=self._has_none)
        self.setFixedWidth(theme.px(_NAMED_WIDTH if self._names else _WIDTH))
        self.filter.setPlaceholderText(
            f"Search {count} classes by name or number" if self._names else f"Filter {count} classes"
        )
        self.filter.setToolTip(
            f"Show only classes whose number or name contains these words; the names are from {file}."
            if self._names
            else f"Show only classes whose number contains these digits; {NAMES_TIP}, gives them names."
        )
        self._show_rows()

    def show_session(self, session: Session) -> None:
        """Show the session's classes and weights."""
        if session.classes != self._classes:
            self._show(session.classes)

    def set_place(self, session: Session) -> None:
        """Set the session that gives the class pictures' position, from the next opening on."""
        place = replace(session, mix=(), sliders=(), tap=None)
        if place != self._place:
            self._place = place
            self.model.forget_pictures()

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture; keys of others and of former places are left alone."""
        if isinstance(key, tuple) and len(key) == 2 and key[0] == "class":
            session = key[1]
            number = session.classes[0][0]
            if session == self._session_of(number):
                self.model.show_picture(number, QPixmap.fromImage(image), _KEPT_PICTURES)

    def _session_of(self, number: int) -> Session:
        """Return the place that is shown, with one class."""
        return SetParameter("classes", ((number, 1.0),)).apply(self._place)

    def _request_pictures(self) -> None:
        if not self.isVisible():
            return
        rows = range(self.model.rowCount())
        top, pitch = self.list.verticalScrollBar().value(), theme.px(_ROW)
        for row in reversed(rows[top // pitch : (top + self.list.viewport().height()) // pitch + 1]):
            number = int(self.model.index(row).data(CLASS))
            if number >= 0 and self.model.index(row).data(PICTURE) is None:  # the last request is rendered first
                session = self._session_of(number)
                self.thumbnail_wanted.emit(("class", session), session)

    def open_at(self, point: QPoint) -> None:
        """Open, scrolled to the selected class."""
        self.filter.clear()
        super().open_at(point)
        row = self.model.row_of(self._classes[0][0] if self._classes else -1)
        self.list.setCurrentIndex(self.model.index(row))
        self.list.scrollTo(self.model.index(row), QListView.ScrollHint.PositionAtCenter)
        self.filter.setFocus()
        self._request_timer.start()

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
            self.hint.setText(f"{MAX_WEIGHED} classes have weights already: remove one first")
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
        self.hint.setText("Click for one class, Ctrl-click to weight several")
        if not same:
            self._show_rows()
        for row, (_, weight) in zip(self.rows, classes, strict=True):
            row.show_amount(weight)

    def _show_rows(self) -> None:
        """Show a slider for each weighted class."""
        for row in self.rows:
            row.hide()
            row.deleteLater()
        self.rows = [self._weight_row(number, weight) for number, weight in self._classes]
        for row in self.rows:
            self._weights.addWidget(row)
            row.show()  # a layout would show it only after the size is set
        if self.isVisible():
            super().open_at(self.pos())  # with its new size, kept on the screen

    def _weight_row(self, number: int, weight: float) -> SliderRow:
        words = class_text(number, self._names)
        wide = 170 if self._names else 98
        row = SliderRow(words, 0.0, 1.0, reset=1.0, beyond=10.0, label_px=wide, tip="weight of this class.")
        row.show_amount(weight)
        row.moved.connect(lambda weight, final: self._weigh(number, weight, final))
        row.cancelled.connect(self.gesture_cancelled)
        return row
