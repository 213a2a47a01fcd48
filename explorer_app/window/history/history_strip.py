"""The strip below the canvas: the steps one came through, and what was kept."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from explorer_app.session.history import History
from explorer_app.window import theme
from explorer_app.window.history.history_list import HistoryList


class HistoryStrip(QWidget):
    """The history strip. It has two pages and scrolls by itself.

    Signals
    -------
    go_to_asked(int)
        Position in the history that the person goes to.
    kept_asked(int)
        Number of the kept entry that the person goes to.
    star_asked(int, bool)
        Number of an entry, and whether it is kept from now on.
    thumbnail_wanted(object, object)
        ``("history", number)`` and the entry's `Session`; answered by `show_thumbnail`.
    """

    go_to_asked = Signal(int)
    kept_asked = Signal(int)
    star_asked = Signal(int, bool)
    thumbnail_wanted = Signal(object, object)

    page_titles: Sequence[str] = ("Steps", "Kept")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("History")
        self._history = History()
        self.steps = HistoryList("Steps", "Your steps will appear here", dims_ahead=True)
        self.kept = HistoryList("Kept", "Star a step to keep it here")
        self._pages = QStackedWidget()
        self._pages.addWidget(self.steps)
        self._pages.addWidget(self.kept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN - 1, 8, theme.MARGIN - 1, 0)
        layout.addWidget(self._pages)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.steps.chosen.connect(self.go_to_asked)
        self.kept.chosen.connect(self._go_to_kept)
        for part in (self.steps, self.kept):
            part.starred.connect(self.star_asked)
            part.thumbnail_wanted.connect(self.thumbnail_wanted)
        self.show_history(self._history)

    def show_page(self, index: int) -> None:
        """Turn to the steps (0) or to what was kept (1)."""
        self._pages.setCurrentIndex(index)

    def sizeHint(self) -> QSize:  # noqa: N802
        """One line of pictures."""
        return QSize(theme.px(600), self.steps.height() + 10)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """A few pictures."""
        return QSize(theme.px(200), self.steps.minimumHeight() + 10)

    def show_history(self, history: History) -> None:
        """Show steps, the one that one stands on, and what was kept."""
        self._history = history
        numbers = frozenset(entry.number for entry in history.kept)
        here = history.current.number if history.current is not None else -1
        at_kept = next((row for row, entry in enumerate(history.kept) if entry.number == here), -1)
        self.steps.show_entries(history.entries, numbers, history.position)
        self.kept.show_entries(history.kept, numbers, at_kept)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Hand a picture to the lists."""
        self.steps.show_thumbnail(key, image)
        self.kept.show_thumbnail(key, image)

    def _go_to_kept(self, row: int) -> None:
        self.kept_asked.emit(self._history.kept[row].number)
