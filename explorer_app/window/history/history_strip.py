"""The strip below the canvas: the steps of the history, and the kept pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QActionGroup, QImage
from PySide6.QtWidgets import QLineEdit, QMenu, QSizePolicy, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.history import History, HistoryEntry
from explorer_app.window.history.history_list import HistoryList
from explorer_app.window.look import theme

_ORDERS: dict[str, tuple[str, Callable[[HistoryEntry], tuple[object, ...]] | None]] = {
    "own": ("My order", None),
    "name": ("By name", lambda entry: (entry.label.casefold(), entry.number)),
    "time": ("Newest first", lambda entry: (-entry.kept_s, -entry.number)),
}
"""Order -> its menu text and the sort key of entries; None keeps the custom order."""


class HistoryStrip(QWidget):
    """The history strip. It has two pages and scrolls by itself.

    Signals
    -------
    go_to_requested(int)
        Position in the history to go to.
    kept_requested(int)
        Number of the kept entry to show.
    star_requested(int, bool)
        Number of an entry, and whether to keep it.
    rename_requested(int, str)
        Number of a kept entry, and its new name.
    move_requested(int, object)
        Number of a kept entry, and of the entry before which to move it; None for the end.
    compare_requested(object)
        Numbers of one or two entries.
    mix_grid_requested(object, str), average_requested(object), weighted_requested(object, str)
    difference_requested(int, int)
        What kept entries are to be made into; see `HistoryList`.
    thumbnail_wanted(object, object)
        ``("history", number)`` and the entry's `Session`; the result arrives in `show_thumbnail`.
    """

    go_to_requested = Signal(int)
    kept_requested = Signal(int)
    star_requested = Signal(int, bool)
    rename_requested = Signal(int, str)
    move_requested = Signal(int, object)
    compare_requested = Signal(object)
    mix_grid_requested = Signal(object, str)
    average_requested = Signal(object)
    weighted_requested = Signal(object, str)
    difference_requested = Signal(int, int)
    thumbnail_wanted = Signal(object, object)

    page_titles: Sequence[str] = ("Steps", "Kept")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("History")
        self._history = History()
        self._has_model = True
        self._order = "own"
        self.steps = HistoryList("Steps", "", dims_ahead=True)
        self.kept = HistoryList("Kept", "", is_kept=True)
        self.filter = QLineEdit(self)
        self.filter.setPlaceholderText("Filter by name")
        self.filter.setClearButtonEnabled(True)
        for clear in self.filter.findChildren(QToolButton):
            clear.setToolTip("Show all kept pictures again.")
        self.filter.setAccessibleName("Filter kept pictures")
        self.filter.setToolTip("Show only kept pictures whose name contains these words.")
        self.filter.setMinimumWidth(theme.px(72))
        self.filter.setMaximumWidth(theme.px(132))
        self.order = QToolButton(self)
        theme.set_role(self.order, "flat")
        self.order.setAccessibleName("Order of kept pictures")
        self.order.setToolTip("Choose the order of the kept pictures; in your own order, drag to rearrange them.")
        self._menu = self._order_menu()
        self._pages = QStackedWidget()
        self._pages.addWidget(self.steps)
        self._pages.addWidget(self.kept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN - 1, 8, theme.MARGIN - 1, 0)
        layout.addWidget(self._pages)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.steps.chosen.connect(self.go_to_requested)
        self.kept.chosen.connect(self._go_to_kept)
        self.kept.renamed.connect(self.rename_requested)
        self.kept.moved.connect(self.move_requested)
        self.kept.mix_grid_requested.connect(self.mix_grid_requested)
        self.kept.average_requested.connect(self.average_requested)
        self.kept.weighted_requested.connect(self.weighted_requested)
        self.kept.difference_requested.connect(self.difference_requested)
        self.filter.textChanged.connect(self._show_kept)
        self.order.clicked.connect(self._open_menu)
        for part in (self.steps, self.kept):
            part.starred.connect(self.star_requested)
            part.compare_requested.connect(self.compare_requested)
            part.thumbnail_wanted.connect(self.thumbnail_wanted)
        self.show_page(0)
        self.show_history(self._history)

    def header_widgets(self) -> Sequence[QWidget]:
        """Return the header widgets for the page of kept pictures."""
        return (self.filter, self.order)

    def show_page(self, index: int) -> None:
        """Show the steps (0) or the kept pictures (1)."""
        self._pages.setCurrentIndex(index)
        for widget in (self.filter, self.order):
            widget.setVisible(index == 1)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of one line of pictures."""
        return QSize(theme.px(600), self.steps.height() + 10)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the width of a few pictures."""
        return QSize(theme.px(200), self.steps.minimumHeight() + 10)

    def show_history(self, history: History) -> None:
        """Show the steps, the current step and the kept pictures."""
        self._history = history
        self._show_steps()
        self._show_kept()

    def set_has_model(self, has_model: bool) -> None:
        """Set whether a model is open: without one, an unchanged session is no step to return to."""
        if has_model != self._has_model:
            self._has_model = has_model
            self._show_steps()
            self._show_kept()

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Pass a picture to both lists."""
        self.steps.show_thumbnail(key, image)
        self.kept.show_thumbnail(key, image)

    def selected_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the selected kept pictures; empty while their page is hidden."""
        return self.kept.selected_numbers() if self._pages.currentWidget() is self.kept else ()

    def _show_steps(self) -> None:
        history = self._history
        is_blank = not self._has_model and len(history.entries) == 1
        numbers = frozenset(entry.number for entry in history.kept)
        self.steps.say_empty("Your steps will appear here" if self._has_model else "Open a model to see your steps")
        self.steps.show_entries(() if is_blank else history.entries, numbers, -1 if is_blank else history.position)

    def _show_kept(self) -> None:
        """Show the kept entries that match the filter, in the chosen order."""
        history, words = self._history, self.filter.text().casefold().split()
        shown = tuple(entry for entry in history.kept if all(word in entry.label.casefold() for word in words))
        key = _ORDERS[self._order][1]
        if key is not None:
            shown = tuple(sorted(shown, key=key))
        here = history.current.number if history.current is not None else -1
        at_kept = next((row for row, entry in enumerate(shown) if entry.number == here), -1)
        self.kept.can_move = key is None and len(shown) == len(history.kept)
        none_kept = "Keep a step (S) to find it here" if self._has_model else "Open a model to keep its pictures"
        self.kept.say_empty("No name contains these words" if history.kept else none_kept)
        self.kept.show_entries(shown, frozenset(entry.number for entry in shown), at_kept)
        self.order.setText(f"{_ORDERS[self._order][0]} ▾")

    def _order_menu(self) -> QMenu:
        menu = QMenu(self)
        group = QActionGroup(menu)
        for name, (words, _) in _ORDERS.items():
            action = menu.addAction(words, partial(self._set_order, name))
            action.setCheckable(True)
            action.setChecked(name == self._order)
            group.addAction(action)
        return menu

    def _open_menu(self) -> None:
        self._menu.popup(self.order.mapToGlobal(self.order.rect().bottomLeft()))

    def _set_order(self, name: str) -> None:
        self._order = name
        self._show_kept()

    def _go_to_kept(self, row: int) -> None:
        self.kept_requested.emit(self.kept.entries.entries[row].number)
