"""A virtual list of history entries, which requests pictures for the visible ones only."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QImage, QPixmap, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QListView, QWidget

from explorer_app.window.history.history_entries import EntryModel


class EntryView(QListView):
    """Entries with pictures; the subclass lays them out and paints them.

    Signals
    -------
    thumbnail_wanted(object, object)
        ``(key_name, number)`` and the entry's `Session`, for visible entries without a picture; the result arrives in
        `show_thumbnail`.
    """

    key_name: ClassVar[str]
    """First part of the keys of this view's pictures."""
    request_ms: ClassVar[int]
    """Pictures are requested when nothing has moved for this long."""

    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.entries = EntryModel(self)
        self.setModel(self.entries)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self._request_timer = QTimer(self, singleShot=True, interval=self.request_ms)
        self._request_timer.timeout.connect(self._request_pictures)
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.valueChanged.connect(lambda _: self._request_timer.start())

    @abstractmethod
    def visible_rows(self) -> range:
        """Return the rows that are visible, whole or in part."""

    @abstractmethod
    def _by_urgency(self, rows: range) -> Iterable[int]:
        """Return rows in the order of their requests: the last request is rendered first."""

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture; ignore other widgets' keys."""
        if isinstance(key, tuple) and len(key) == 2 and key[0] == self.key_name:
            self.entries.show_picture(key[1], QPixmap.fromImage(image))
            self.viewport().update()

    def selected_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the selected entries, in display order."""
        rows = sorted(index.row() for index in self.selectionModel().selectedIndexes())
        return tuple(self.entries.entries[row].number for row in rows)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Request the pictures of newly visible entries."""
        super().resizeEvent(event)
        self._request_timer.start()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Request the pictures of visible entries."""
        super().showEvent(event)
        self._request_timer.start()

    def _request_pictures(self) -> None:
        if not self.isVisible():
            return
        for row in self._by_urgency(self.visible_rows()):
            entry = self.entries.entries[row]
            if entry.number not in self.entries.pictures:
                self.thumbnail_wanted.emit((self.key_name, entry.number), entry.session)
