"""The library: kept pictures found by name or tag, in an order, selected together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QPoint, QSize, QTimer, Signal, Slot
from PySide6.QtGui import QActionGroup, QImage
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.history import MAX_TAG, MAX_TAGS, History, HistoryEntry
from explorer_app.window.controls.ask_popup import AskPopup
from explorer_app.window.library.library_grid import LibraryGrid, tile_size
from explorer_app.window.look import icons, theme

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Signature = NDArray[np.float16] | None

Order = Literal["own", "time", "name", "likeness"]

_ORDERS: dict[Order, str] = {
    "own": "My order",
    "time": "Newest first",
    "name": "By name",
    "likeness": "Most like the picture",
}

_SORT_MS = 300
"""Entries are sorted again by likeness this long after a signature arrived."""


class LibraryPanel(QWidget):
    """Kept pictures as a grid.

    The link sets `signature_of` and `shown_signature`, which return the signature of an entry's
    latent by its number, and of the picture on the screen, or None while it is unknown.

    Signals
    -------
    kept_requested(int)
        Number of the entry to show.
    mix_requested(object), key_requested(object), remove_requested(object), compare_requested(object)
        Numbers of entries to mix in, to put on the timeline from the playhead on, to keep no longer, to compare.
    rename_requested(int, str)
        Number of an entry, and its new name.
    tags_requested(object, str)
        Numbers of entries, and their tags with commas between them.
    copy_requested(int, str)
        Number of an entry, and "command" or "python".
    import_requested(), export_requested(object)
        Choose latents to keep; numbers of entries whose w rows to write.
    thumbnail_wanted(object, object)
        As of `LibraryGrid`.
    """

    kept_requested = Signal(int)
    mix_requested = Signal(object)
    key_requested = Signal(object)
    remove_requested = Signal(object)
    compare_requested = Signal(object)
    rename_requested = Signal(int, str)
    tags_requested = Signal(object, str)
    copy_requested = Signal(int, str)
    import_requested = Signal()
    export_requested = Signal(object)
    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Library")
        self._history = History()
        self._has_model = True
        self._order: Order = "own"
        self.signature_of: Callable[[int], Signature] = lambda number: None
        self.shown_signature: Callable[[], Signature] = lambda: None
        self._reference: Signature = None
        self.grid = LibraryGrid(self)
        self.ask = AskPopup(self)
        self.filter = QLineEdit(self)
        self.filter.setPlaceholderText("Find by name or tag")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Find kept pictures")
        self.filter.setToolTip("Show only pictures whose name or tags contain these words.")
        for clear in self.filter.findChildren(QToolButton):
            clear.setToolTip("Show all kept pictures again.")
        self.order = QToolButton(self)
        theme.set_role(self.order, "flat")
        self.order.setAccessibleName("Order of the library")
        self.order.setToolTip("Choose the order of the pictures.")
        self.order.clicked.connect(self._open_orders)
        self._orders = self._order_menu()
        line = QHBoxLayout()
        line.setSpacing(6)
        line.addWidget(self.filter, 1)
        line.addWidget(self.order)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN - 2, 8, theme.MARGIN - 2, 4)
        layout.setSpacing(6)
        layout.addLayout(line)
        layout.addWidget(self.grid, 1)
        self._sort_later = QTimer(self, singleShot=True, interval=_SORT_MS)
        self._sort_later.timeout.connect(self._show)
        self.filter.textChanged.connect(self._find)
        self.grid.chosen.connect(self.kept_requested)
        self.grid.menu_requested.connect(self._open_menu)
        self.grid.rename_requested.connect(self._rename)
        self.grid.tags_requested.connect(self._ask_tags)
        self.grid.remove_requested.connect(self._remove)
        self.grid.thumbnail_wanted.connect(self.thumbnail_wanted)
        self._show()

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return room for two columns and one row."""
        return QSize(2 * tile_size().width() + theme.px(34), tile_size().height() + theme.px(48))

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return room for three columns and three rows."""
        return QSize(3 * tile_size().width() + theme.px(34), 3 * tile_size().height() + theme.px(48))

    def show_history(self, history: History) -> None:
        """Show the kept pictures of a history."""
        self._history = history
        self._show()

    def set_has_model(self, has_model: bool) -> None:
        """Set whether a model is open: without one there is nothing to keep."""
        if has_model != self._has_model:
            self._has_model = has_model
            self._show()

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture; its likeness is known now, too."""
        self.grid.show_thumbnail(key, image)
        if self._order == "likeness" and not self._sort_later.isActive():
            self._sort_later.start()

    def selected_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the selected entries."""
        return self.grid.selected_numbers()

    def set_order(self, order: Order) -> None:
        """Show the entries in another order; by likeness, that to the picture which is on the screen now."""
        self._order = order
        if order == "likeness":
            self._reference = self.shown_signature()
            for entry in reversed(self._history.kept):
                if self.signature_of(entry.number) is None:
                    self.thumbnail_wanted.emit(("library", entry.number), entry.session)
        self._show()
        self.grid.scrollToTop()

    @Slot()
    def _find(self) -> None:
        """Show what the words find, from its beginning."""
        self._show()
        self.grid.scrollToTop()

    def _show(self) -> None:
        history, words = self._history, self.filter.text().casefold().split()
        shown = [entry for entry in history.kept if _matches(entry, words)]
        if self._order == "time":
            shown.sort(key=lambda entry: (-entry.kept_s, -entry.number))
        elif self._order == "name":
            shown.sort(key=lambda entry: (entry.label.casefold(), entry.number))
        elif self._order == "likeness" and self._reference is not None:
            distances = {entry.number: self._distance(entry.number) for entry in shown}
            shown.sort(key=lambda entry: distances[entry.number])
        here = history.current.number if history.current is not None else -1
        current = next((row for row, entry in enumerate(shown) if entry.number == here), -1)
        none_kept = "Press K to keep a picture here." if self._has_model else "Open a model to keep its pictures."
        empty = "No name or tag contains these words." if history.kept else none_kept
        self.grid.show_entries(tuple(shown), current, empty)
        self.order.setText(f"{_ORDERS[self._order]} ▾")

    def _distance(self, number: int) -> float:
        """Return the distance of an entry's latent to that of the picture; without one it comes last."""
        signature = self.signature_of(number)
        if signature is None or self._reference is None or signature.shape != self._reference.shape:
            return float("inf")
        difference = signature.astype("float32") - self._reference.astype("float32")
        return float((difference * difference).sum())

    def _order_menu(self) -> QMenu:
        menu = QMenu(self)
        group = QActionGroup(menu)
        for name, words in _ORDERS.items():
            action = menu.addAction(words, partial(self.set_order, name))
            action.setCheckable(True)
            action.setChecked(name == self._order)
            group.addAction(action)
        menu.addSeparator()
        menu.addAction(icons.icon("open", "dim"), "Import latents…", self.import_requested.emit)
        return menu

    def _open_orders(self) -> None:
        self._orders.popup(self.order.mapToGlobal(self.order.rect().bottomLeft()))

    def menu(self) -> QMenu:
        """Return the menu of the selected entries."""
        numbers = self.selected_numbers()
        several = len(numbers) > 1
        count = f"these {len(numbers)}" if several else "this"
        menu = QMenu(self)
        if not several:
            menu.addAction("Go there", partial(self.kept_requested.emit, numbers[0]))
        menu.addAction(icons.icon("mix-in", "dim"), f"Mix {count} in", partial(self.mix_requested.emit, numbers))
        menu.addAction(f"Put {count} on the timeline", partial(self.key_requested.emit, numbers))
        if len(numbers) <= 2:
            words = "Compare these two" if several else "Compare with the picture"
            menu.addAction(words, partial(self.compare_requested.emit, numbers))
        menu.addSeparator()
        if not several:
            menu.addAction(icons.icon("rename", "dim"), "Rename…\tF2", self._rename)
        menu.addAction("Tags…\tCtrl+T", self._ask_tags)
        menu.addSeparator()
        if not several:
            menu.addAction("Copy as command", partial(self.copy_requested.emit, numbers[0], "command"))
            menu.addAction("Copy as Python", partial(self.copy_requested.emit, numbers[0], "python"))
        menu.addAction(f"Export {'latents' if several else 'latent'}…", partial(self.export_requested.emit, numbers))
        menu.addSeparator()
        menu.addAction(f"Keep {count} no longer\tDel", self._remove)
        return menu

    def _open_menu(self, point: QPoint) -> None:
        menu = self.menu()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(point)

    def _entries(self, numbers: Collection[int]) -> Sequence[HistoryEntry]:
        return [entry for entry in self._history.kept if entry.number in numbers]

    def _below(self, number: int) -> QPoint:
        """Return the point of the screen below an entry's picture."""
        row = next(row for row, entry in enumerate(self.grid.entries.entries) if entry.number == number)
        place = self.grid.visualRect(self.grid.entries.index(row)).bottomLeft()
        return self.grid.viewport().mapToGlobal(place)

    def _rename(self) -> None:
        numbers = self.selected_numbers()
        if len(numbers) == 1:
            (entry,) = self._entries(numbers)
            answer = partial(self.rename_requested.emit, entry.number)
            self.ask.ask_text("Name of the kept picture", entry.label, "Rename", self._below(entry.number), answer)

    def _ask_tags(self) -> None:
        numbers = self.selected_numbers()
        if numbers:
            title = (
                "Tags, separated by commas"
                if len(numbers) == 1
                else f"Tags that all {len(numbers)} share, separated by commas"
            )
            text = ", ".join(self._history.common_tags(numbers))
            answer = partial(self.tags_requested.emit, numbers)
            self.ask.ask_text(title, text, "Set tags", self._below(numbers[0]), answer, most=MAX_TAGS * (MAX_TAG + 2))

    def _remove(self) -> None:
        numbers = self.selected_numbers()
        if numbers:
            self.remove_requested.emit(numbers)


def _matches(entry: HistoryEntry, words: Sequence[str]) -> bool:
    text = " ".join((entry.label, *entry.tags)).casefold()
    return all(word in text for word in words)
