"""The dialog that finds directions: principal components, SeFa, or the difference of two groups of kept pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QIcon, QImage, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from explorer_app.session.history import HistoryEntry
from explorer_app.session.session import Session
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.picture_delegate import MARK, PictureDelegate
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.share_bar import ShareBar
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme
from gpu_backend import ModelFacts, RowRange

if TYPE_CHECKING:
    from explorer_app.controller.direction_finding import DirectionsState

_Method = Literal["pca", "sefa", "examples"]

_METHODS = (
    ("pca", "PCA", "Principal components of w over many seeds."),
    ("sefa", "SeFa", "Directions that the weights of the rows amplify most."),
    ("examples", "From examples", "The direction from one group of kept pictures to another."),
)
_ABOUT = {
    "pca": "Maps 4,096 seeds and takes the directions in which w varies most. One unit of a slider is one standard "
    "deviation.",
    "sefa": "Takes the directions that the weights of these rows amplify most. It needs no pictures and finishes "
    "immediately.",
    "examples": "Goes from the mean of group B to the mean of group A. From 20 pictures in each group on, it leaves "
    "out variation within the groups.",
}
_MOST_PICTURES = 200
_PICTURE_PX = 34
_ENTRY = Qt.ItemDataRole.UserRole


class FindDirections(QDialog):
    """Sets up a search and shows its progress. It stays open, so that the result can be removed again.

    Signals
    -------
    find_requested(object, object, object)
        The `DirectionSearch`, and the sessions of groups A and B.
    cancel_requested(), take_back_requested()
        Cancel the search; remove the directions found last.
    thumbnail_wanted(object, object)
        ``("history", number)`` and the `Session` of a kept picture; the result arrives in `show_thumbnail`.
    """

    find_requested = Signal(object, object, object)
    cancel_requested = Signal()
    take_back_requested = Signal()
    thumbnail_wanted = Signal(object, object)

    def __init__(self, facts: ModelFacts, kept: Sequence[HistoryEntry], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Find directions")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._method: _Method = "pca"
        self._is_named_by_hand = self._is_under_way = False
        self.method = SegmentedControl(_METHODS, "Method")
        self.about = WrappedLabel("", self)
        self.about.setMinimumHeight(3 * self.fontMetrics().lineSpacing())
        theme.set_role(self.about, "dim")
        self.name = QLineEdit("pca")
        self.name.setMaxLength(34)
        self.name.setAccessibleName("Name")
        self.name.setToolTip("Name of the sliders; a number is added if the name is taken.")
        self.count = NumberField(1, 32, decimals=0, step=1, widest="32")
        self.count.setAccessibleName("Number of directions")
        self.count.setToolTip("Number of directions, 1 to 32.")
        self.count.show_number(8)
        self.first_row = self._row_field("First row")
        self.last_row = self._row_field("Last row")
        self.show_model(facts)
        self.examples = QWidget()
        self.list = QListWidget()
        self._fill_examples(kept)
        self.bar = ShareBar("Search")
        self.said = WrappedLabel("", self)
        theme.set_role(self.said, "dim")
        self.find_button = QPushButton("Find")
        theme.set_role(self.find_button, "main")
        self.find_button.setDefault(True)
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Cancel the search and discard its results.")
        self.back = QPushButton("Undo")
        self.back.setToolTip("Remove the directions of the last search.")
        self.done_button = QPushButton("Close")
        self._build()
        self.method.chosen.connect(self._choose)
        self.name.textEdited.connect(self._named)
        self.list.itemSelectionChanged.connect(self._enable)
        self.find_button.clicked.connect(self._find)
        self.cancel.clicked.connect(self.cancel_requested)
        self.back.clicked.connect(self.take_back_requested)
        self.done_button.clicked.connect(self.accept)
        self._choose("pca")
        self._show(None, False)

    @staticmethod
    def _row_field(name: str) -> NumberField:
        field = NumberField(0, 0, decimals=0, step=1, widest="000")
        field.setAccessibleName(name)
        return field

    def show_model(self, facts: ModelFacts) -> None:
        """Offer the rows of w of a model; a last row that was the former model's last one is this one's."""
        last = facts.num_ws - 1
        was_last = self.last_row.value() == self.last_row.maximum()
        for field in (self.first_row, self.last_row):
            field.setRange(0, last)
            name = field.accessibleName()
            field.setToolTip(
                f"{name} of w that the directions act on, 0 to {last}: the first are coarse, the last fine."
            )
        if was_last:
            self.last_row.show_number(last)

    def _build(self) -> None:
        form = QGridLayout()
        form.setHorizontalSpacing(theme.px(8))
        form.setVerticalSpacing(theme.px(8))
        rows = QHBoxLayout()
        rows.addWidget(self.first_row)
        rows.addWidget(QLabel("to"))
        rows.addWidget(self.last_row)
        rows.addStretch(1)
        self._count_label = QLabel("Number")
        for line, label in enumerate((QLabel("Name"), QLabel("Rows"), self._count_label)):
            theme.set_role(label, "dim")
            form.addWidget(label, line, 0)
        form.addWidget(self.name, 0, 1)
        form.addLayout(rows, 1, 1)
        form.addWidget(self.count, 2, 1)
        self.count.setFixedWidth(self.count.sizeHint().width())
        form.setColumnStretch(1, 1)
        buttons = QHBoxLayout()
        buttons.addWidget(self.back)
        buttons.addStretch(1)
        for button in (self.done_button, self.cancel, self.find_button):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        edge = theme.px(16)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(10))
        layout.addWidget(self.method, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.about)
        layout.addLayout(form)
        layout.addWidget(self.examples, 1)
        layout.addStretch(0)
        layout.addWidget(self.said)
        layout.addWidget(self.bar)
        layout.addLayout(buttons)
        self.setMinimumWidth(theme.px(380))

    def _fill_examples(self, kept: Sequence[HistoryEntry]) -> None:
        self.list.setAccessibleName("Kept pictures")
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setIconSize(QSize(theme.px(_PICTURE_PX), theme.px(_PICTURE_PX)))
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(PictureDelegate(self.list))
        self.list.setMouseTracking(True)
        self.list.setMinimumHeight(theme.px(200))
        blank = QPixmap(theme.px(_PICTURE_PX), theme.px(_PICTURE_PX))
        blank.fill(Qt.GlobalColor.transparent)
        for entry in kept:
            item = QListWidgetItem(QIcon(blank), "", self.list)
            item.setData(_ENTRY, entry)
            self._put(item, "")
        self.to_a = QPushButton("Into A")
        self.to_b = QPushButton("Into B")
        self.to_none = QPushButton("Into none")
        tips = ("have what the direction adds", "lack it", "do not count")
        line = QHBoxLayout()
        for button, group, tip in zip((self.to_a, self.to_b, self.to_none), ("A", "B", ""), tips, strict=True):
            button.setToolTip(f"The selected pictures {tip}.")
            button.clicked.connect(lambda _on, group=group: self._put_selected(group))
            line.addWidget(button)
        line.addStretch(1)
        self.groups = QLabel()
        theme.set_role(self.groups, "dim")
        line.addWidget(self.groups)
        layout = QVBoxLayout(self.examples)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.list, 1)
        layout.addLayout(line)

    def request_thumbnails(self) -> None:
        """Request the thumbnails of the first kept pictures."""
        for row in reversed(range(min(self.list.count(), _MOST_PICTURES))):
            entry: HistoryEntry = self.list.item(row).data(_ENTRY)
            self.thumbnail_wanted.emit(("history", entry.number), entry.session)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture."""
        for row in range(min(self.list.count(), _MOST_PICTURES)):
            item = self.list.item(row)
            if key == ("history", item.data(_ENTRY).number):
                item.setIcon(QIcon(QPixmap.fromImage(image)))

    def show_state(self, state: DirectionsState) -> None:
        """Show the progress of the search, and whether its result can be removed."""
        self._show(state.share, state.added is not None)
        if state.added is not None:
            count = len(state.added.names)
            self.said.setText(f"{count} found; the sliders show {'them' if count != 1 else 'it'}.")
        elif state.share is None:
            self.said.setText("")

    def _show(self, share: float | None, can_take_back: bool) -> None:
        is_under_way = share is not None
        self.bar.setVisible(is_under_way)
        self.bar.show_share(share or 0.0)
        self.cancel.setVisible(is_under_way)
        self.done_button.setVisible(not is_under_way)
        self.back.setVisible(can_take_back and not is_under_way)
        self._is_under_way = is_under_way
        self._enable()

    @Slot(str)
    def _choose(self, method: str) -> None:
        self._method = cast("_Method", method)
        self.method.show_choice(method)
        self.about.setText(_ABOUT[method])
        is_examples = method == "examples"
        for widget in (self._count_label, self.count):
            widget.setVisible(not is_examples)
        self.examples.setVisible(is_examples)
        if not self._is_named_by_hand:
            self.name.setText("difference" if is_examples else method)
        self.adjustSize()
        self._enable()

    def _named(self, text: str) -> None:
        self._is_named_by_hand = bool(text)

    def _put(self, item: QListWidgetItem, group: str) -> None:
        entry: HistoryEntry = item.data(_ENTRY)
        item.setText(entry.label)
        item.setData(MARK, group)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{entry.label}, {f'group {group}' if group else 'no group'}")

    def _put_selected(self, group: str) -> None:
        for item in self.list.selectedItems():
            self._put(item, group)
        self._enable()

    def _group(self, group: str) -> tuple[Session, ...]:
        items = (self.list.item(row) for row in range(self.list.count()))
        return tuple(item.data(_ENTRY).session for item in items if item.data(MARK) == group)

    @Slot()
    def _enable(self) -> None:
        is_examples = self._method == "examples"
        having, lacking = (len(self._group(group)) for group in "AB") if is_examples else (0, 0)
        empty = "Keep pictures first (S)" if not self.list.count() else f"A {having} · B {lacking}"
        self.groups.setText(empty)
        for button in (self.to_a, self.to_b, self.to_none):
            button.setEnabled(bool(self.list.selectedItems()))
        is_ready = not is_examples or (having > 0 and lacking > 0)
        self.find_button.setEnabled(is_ready and not self._is_under_way)
        self.find_button.setToolTip("" if is_ready else "Put at least one picture into each group.")

    @Slot()
    def _find(self) -> None:
        from gpu_backend import DirectionSearch

        for field in (self.first_row, self.last_row, self.count):
            field.interpretText()
        first, last = sorted((int(self.first_row.value()), int(self.last_row.value())))
        search = DirectionSearch(self._method, self.name.text(), RowRange(first, last), int(self.count.value()))
        groups = (self._group("A"), self._group("B")) if self._method == "examples" else ((), ())
        self.find_requested.emit(search, *groups)
