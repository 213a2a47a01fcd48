"""The strip below the canvas: the steps one came through, and what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QPushButton, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from explorer_app.session.edits import ReplaceSession
from explorer_app.session.history import History
from explorer_app.session.session import Session
from explorer_app.window import theme
from explorer_app.window.history_list import HistoryList

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts


class HistoryStrip(QWidget):
    """The history strip. It has two pages and scrolls by itself.

    Signals
    -------
    go_to(int)
        Position in the history that the person goes to.
    edited(object, bool)
        `ReplaceSession`: the person goes to something kept.
    starred(int, bool)
        Number of an entry, and whether it is kept from now on.
    undo_requested(), redo_requested(), export_requested()
        The buttons in the header.
    thumbnail_wanted(object, object)
        ``("history", number)`` and the entry's `Session`; answered by `show_thumbnail`.
    """

    go_to = Signal(int)
    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    starred = Signal(int, bool)
    undo_requested = Signal()
    redo_requested = Signal()
    export_requested = Signal()
    thumbnail_wanted = Signal(object, object)

    page_titles: Sequence[str] = ("History", "Kept")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("History")
        self._history = History()
        self.steps = HistoryList("Steps", "Your steps will appear here")
        self.kept = HistoryList("Kept", "Star a step to keep it here")
        self.undo = QPushButton("Undo")
        self.redo = QPushButton("Redo")
        self.export = QPushButton("Export sequence…")
        theme.set_role(self.export, "main")
        self.export.setToolTip("Render a path through chosen latents into picture files (Ctrl+E).")
        self._pages = QStackedWidget()
        self._pages.addWidget(self.steps)
        self._pages.addWidget(self.kept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN - 1, 8, theme.MARGIN - 1, 0)
        layout.addWidget(self._pages)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.steps.chosen.connect(self.go_to)
        self.kept.chosen.connect(self._go_to_kept)
        for part in (self.steps, self.kept):
            part.starred.connect(self.starred)
            part.thumbnail_wanted.connect(self.thumbnail_wanted)
        self.undo.clicked.connect(self.undo_requested)
        self.redo.clicked.connect(self.redo_requested)
        self.export.clicked.connect(self.export_requested)
        self.show_history(self._history)
        self.show_model(None, None)

    def header_widgets(self) -> Sequence[QWidget]:
        """Return what the dock's header shows beside the tabs."""
        return (self.undo, self.redo, self.export)

    def show_page(self, index: int) -> None:
        """Turn to the steps (0) or to what was kept (1)."""
        self._pages.setCurrentIndex(index)

    def sizeHint(self) -> QSize:  # noqa: N802
        """One line of pictures."""
        return QSize(theme.px(600), self.steps.height() + 10)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """A few pictures."""
        return QSize(theme.px(200), self.steps.minimumHeight() + 10)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Allow an export once there is a model."""
        self.export.setEnabled(facts is not None)

    def show_session(self, session: Session) -> None:
        """The strip shows the history, not the session."""

    def show_history(self, history: History) -> None:
        """Show steps, the one that one stands on, and what was kept."""
        self._history = history
        numbers = frozenset(entry.number for entry in history.kept)
        here = history.current.number if history.current is not None else -1
        at_kept = next((row for row, entry in enumerate(history.kept) if entry.number == here), -1)
        self.steps.show_entries(history.entries, numbers, history.position)
        self.kept.show_entries(history.kept, numbers, at_kept)
        self.undo.setEnabled(history.can_undo)
        self.redo.setEnabled(history.can_redo)
        self.undo.setToolTip(f"Undo: {history.undo_label} (Ctrl+Z)." if history.can_undo else "Nothing to undo.")
        self.redo.setToolTip(f"Redo: {history.redo_label} (Ctrl+Shift+Z)." if history.can_redo else "Nothing to redo.")

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Hand a picture to the lists."""
        self.steps.show_thumbnail(key, image)
        self.kept.show_thumbnail(key, image)

    def _go_to_kept(self, row: int) -> None:
        entry = self._history.kept[row]
        self.edited.emit(ReplaceSession(entry.session, label="Go to kept"), True)
