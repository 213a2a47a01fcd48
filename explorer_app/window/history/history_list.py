"""The pictures of a history in one line: a virtual list that paints and requests only visible entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import (
    QEvent,
    QPoint,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QListView,
    QMenu,
    QWidget,
)

from explorer_app.session.history import HistoryEntry
from explorer_app.window.controls.ask_popup import AskPopup
from explorer_app.window.controls.menu_text import menu_text
from explorer_app.window.history.entry_view import EntryView
from explorer_app.window.history.history_entries import (
    PITCH_PX,
    SIDE_PX,
    EntryDelegate,
    is_on_star,
)
from explorer_app.window.look import icons, theme


@dataclass(slots=True)
class _Drag:
    """A drag of a kept entry: row (-1 for none), start position, and the row before which it would drop."""

    row: int = -1
    x: int = 0
    is_moving: bool = False
    before: int = 0


class HistoryList(EntryView):
    """Entries in one line.

    Parameters
    ----------
    name, empty
        Accessible name, and the text of an empty list.
    dims_ahead
        Whether entries after the current one (undone steps) are dimmed.
    is_kept
        Whether these are kept entries, which show names and can be renamed, moved, and selected together.

    Signals
    -------
    chosen(int)
        The row that was activated by a click, Enter or Space.
    starred(int, bool)
        Number of an entry, and whether to keep it: a click on the star, or S.
    renamed(int, str)
        Number of a kept entry, and its new name.
    moved(int, object)
        Number of a kept entry, and of the entry before which it was moved; None for the end.
    compare_requested(object)
        Numbers of the one or two entries to compare.
    mix_grid_requested(object, str)
        Numbers of kept entries for the rows or the columns of a mix grid: "rows" or "columns".
    average_requested(object), weighted_requested(object, str)
        Numbers of kept entries to sum; of a weighted sum, the weights as the user typed them.
    difference_requested(int, int)
        Numbers of two kept entries, of which the first minus the second is to be a direction.
    """

    key_name = "history"
    request_ms = 120

    chosen = Signal(int)
    starred = Signal(int, bool)
    renamed = Signal(int, str)
    moved = Signal(int, object)
    compare_requested = Signal(object)
    mix_grid_requested = Signal(object, str)
    average_requested = Signal(object)
    weighted_requested = Signal(object, str)
    difference_requested = Signal(int, int)

    def __init__(
        self,
        name: str,
        empty: str,
        *,
        dims_ahead: bool = False,
        is_kept: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._empty = empty
        self._is_kept = is_kept
        self.can_move = is_kept
        """Whether all entries are shown in the custom order, so that one can be moved."""
        self._drag = _Drag()
        self.ask = AskPopup(self)
        self._pressed: tuple[int, bool] | None = None
        self.setItemDelegate(EntryDelegate(self.entries, self, dims_ahead, is_kept))
        self.setWrapping(False)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        mode = QListView.SelectionMode
        self.setSelectionMode(mode.ExtendedSelection if is_kept else mode.NoSelection)
        self.setFixedHeight(theme.px(SIDE_PX) + 4 + theme.px(12))
        self.setAccessibleName(name)

    def show_entries(self, entries: tuple[HistoryEntry, ...], kept: frozenset[int], current: int) -> None:
        """Show entries; scroll to a new current one. A drag ends if entries came, went or moved."""
        if self._drag.row >= 0 and [entry.number for entry in entries] != [e.number for e in self.entries.entries]:
            self._give_up_drag()
        moved = current != self.entries.current or len(entries) != len(self.entries.entries)
        self.entries.show_entries(entries, kept, current)
        if moved and 0 <= current < len(entries):
            self.scrollTo(self.entries.index(current), QListView.ScrollHint.EnsureVisible)
        self._request_timer.start()
        self.viewport().update()

    def say_empty(self, words: str) -> None:
        """Set the text of an empty list."""
        self._empty = words
        self.viewport().update()

    def visible_rows(self) -> range:
        """Return the visible rows."""
        if not self.entries.entries:
            return range(0)
        pitch = theme.px(PITCH_PX)
        first = self.horizontalScrollBar().value() // pitch
        last = (self.horizontalScrollBar().value() + self.viewport().width()) // pitch
        return range(max(first, 0), min(last + 1, len(self.entries.entries)))

    def _by_urgency(self, rows: range) -> Iterable[int]:
        here = self.entries.current
        return sorted(rows, key=lambda row: -abs(row - here))

    def _toggle_star(self, row: int) -> None:
        number = self.entries.entries[row].number
        self.starred.emit(number, number not in self.entries.kept)

    def event(self, event: QEvent) -> bool:
        """Claim S for the focused entry before the window's shortcuts."""
        is_key = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_S and not event.modifiers()
        if is_key and event.type() == QEvent.Type.ShortcutOverride and self.currentIndex().isValid():
            event.accept()
            return True
        return super().event(event)

    # --- selecting, moving and renaming -------------------------------------------------------------------------------

    def rename(self, number: int) -> None:
        """Open a popup below a kept entry's picture to rename it."""
        row = self._row_of(number)
        if row is not None:
            label = self.entries.entries[row].label
            place = self._below(row)
            self.ask.ask_text("Name of the kept picture", label, "Rename", place, partial(self.renamed.emit, number))

    def _row_of(self, number: int) -> int | None:
        """Return where an entry is now; None if it is not shown."""
        return next((row for row, entry in enumerate(self.entries.entries) if entry.number == number), None)

    def _below(self, row: int) -> QPoint:
        """Return the place below an entry's picture, on the screen."""
        return self.viewport().mapToGlobal(self.visualRect(self.entries.index(row)).bottomLeft())

    def _go_to(self, number: int) -> None:
        row = self._row_of(number)
        if row is not None:
            self.chosen.emit(row)

    def _give_up_drag(self) -> None:
        self._drag = _Drag()
        self._pressed = None
        self.viewport().update()

    def _move_by(self, row: int, step: int) -> None:
        """Move an entry by one place to the left (-1) or right (1)."""
        target = row + step
        if self.can_move and 0 <= target < len(self.entries.entries):
            before = target if step < 0 else target + 1
            self._move(row, before)
            self.setCurrentIndex(self.entries.index(target))

    def _move(self, row: int, before: int) -> None:
        entries = self.entries.entries
        if before not in (row, row + 1):
            self.moved.emit(entries[row].number, entries[before].number if before < len(entries) else None)

    def _drop_row(self, x: int) -> int:
        """Return the row before which an entry dropped at x is inserted."""
        row = round((x + self.horizontalScrollBar().value()) / theme.px(PITCH_PX))
        return min(max(row, 0), len(self.entries.entries))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Drag a kept entry; scroll near an end of the list."""
        drag = self._drag
        if drag.row < 0 or not event.buttons() & Qt.MouseButton.LeftButton:
            super().mouseMoveEvent(event)
            return
        place = event.position().toPoint()
        if not drag.is_moving and abs(place.x() - drag.x) < QApplication.startDragDistance():
            return
        drag.is_moving = True
        drag.before = self._drop_row(place.x())
        bar, edge = self.horizontalScrollBar(), theme.px(PITCH_PX) // 2
        if place.x() < edge:
            bar.setValue(bar.value() - edge // 2)
        elif place.x() > self.viewport().width() - edge:
            bar.setValue(bar.value() + edge // 2)
        self.viewport().update()

    def _at(self, event: QMouseEvent) -> tuple[int, bool] | None:
        """Return the row under the pointer and whether it is on the star."""
        index = self.indexAt(event.position().toPoint())
        if event.button() != Qt.MouseButton.LeftButton or not index.isValid():
            return None
        return index.row(), is_on_star(self.visualRect(index), event.position())

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Record the start of a click."""
        super().mousePressEvent(event)
        self._pressed = self._at(event)
        can_drag = self.can_move and self._pressed is not None and not self._pressed[1] and not event.modifiers()
        row = self._pressed[0] if can_drag and self._pressed is not None else -1
        self._drag = _Drag(row, event.position().toPoint().x())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Handle a double-click as two clicks."""
        super().mouseDoubleClickEvent(event)
        self._pressed = self._at(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Activate or star the entry, if the button is released where it was pressed."""
        super().mouseReleaseEvent(event)
        pressed, self._pressed = self._pressed, None
        drag, self._drag = self._drag, _Drag()
        if drag.is_moving:
            self.viewport().update()
            self._move(drag.row, drag.before)
            return
        if pressed is None or self._at(event) != pressed:
            return
        row, on_star = pressed
        if on_star:
            self._toggle_star(row)
        elif not (self._is_kept and event.modifiers()):  # with a modifier key, a click selects
            self.chosen.emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter and Space activate, S stars; F2 renames a kept entry, Ctrl with an arrow key moves it."""
        index = self.currentIndex()
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if event.key() == Qt.Key.Key_Escape and self._drag.is_moving:
            self._give_up_drag()
        elif self._is_kept and index.isValid() and event.key() == Qt.Key.Key_F2:
            self.rename(self.entries.entries[index.row()].number)
        elif index.isValid() and step and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._move_by(index.row(), step)
        elif index.isValid() and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(index.row())
        elif index.isValid() and event.key() == Qt.Key.Key_S and not event.modifiers():
            self._toggle_star(index.row())
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Show a menu with all actions of the entry."""
        index = self.indexAt(event.pos())
        if not index.isValid():
            return
        self.menu_of(index.row()).popup(event.globalPos())

    def menu_of(self, row: int) -> QMenu:
        """Return a menu with all actions of an entry and of its selection; closing deletes it."""
        number = self.entries.entries[row].number
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Go there", lambda: self._go_to(number))
        chosen = self.selected_numbers()
        if len(chosen) == 2 and number in chosen:
            menu.addAction("Compare these two", lambda: self.compare_requested.emit(chosen))
        else:
            menu.addAction("Compare with the picture", lambda: self.compare_requested.emit((number,)))
        if self._is_kept:
            menu.addAction(icons.icon("rename", "dim"), "Rename…", lambda: self.rename(number))
            self._add_sums(menu, number, chosen if number in chosen else (number,))
        kept = number in self.entries.kept
        menu.addAction(
            icons.icon("star", "dim"),
            "Keep no longer" if kept else "Keep",
            lambda: self.starred.emit(number, not kept),
        )
        return menu

    def _add_sums(self, menu: QMenu, number: int, numbers: tuple[int, ...]) -> None:
        """Add what several kept entries can be made into."""
        menu.addSeparator()
        menu.addAction("Rows of a mix grid", lambda: self.mix_grid_requested.emit(numbers, "rows"))
        menu.addAction("Columns of a mix grid", lambda: self.mix_grid_requested.emit(numbers, "columns"))
        if len(numbers) >= 2:
            menu.addAction(f"Average of {len(numbers)}", lambda: self.average_requested.emit(numbers))
            menu.addAction("Weighted sum…", lambda: self._ask_weights(number, numbers))
        if len(numbers) == 2:
            names = {entry.number: entry.label for entry in self.entries.entries}
            for a, b in (numbers, numbers[::-1]):
                words = f"“{names[a][:24]}” − “{names[b][:24]}” as a direction"
                menu.addAction(menu_text(words), partial(self.difference_requested.emit, a, b))
        menu.addSeparator()

    def _ask_weights(self, number: int, numbers: tuple[int, ...]) -> None:
        row = self._row_of(number)
        if row is not None:
            words, usual = "Weights, in the order of the pictures", ", ".join("1" for _ in numbers)
            self.ask.ask_text(words, usual, "Sum", self._below(row), partial(self.weighted_requested.emit, numbers))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Scroll horizontally with either wheel axis."""
        turn = event.pixelDelta() if not event.pixelDelta().isNull() else event.angleDelta() * 0.75
        bar = self.horizontalScrollBar()
        bar.setValue(bar.value() - (turn.x() or turn.y()))
        event.accept()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the entries, or the text of an empty list."""
        super().paintEvent(event)
        if self._drag.is_moving:
            painter = QPainter(self.viewport())
            x = self._drag.before * theme.px(PITCH_PX) - self.horizontalScrollBar().value() - 1
            painter.fillRect(max(x, 0), 2, 2, theme.px(SIDE_PX), QColor(theme.current().accent))
            painter.end()
        if not self.entries.entries:
            painter = QPainter(self.viewport())
            painter.setPen(QColor(theme.current().dim))
            painter.drawText(self.viewport().rect(), Qt.AlignmentFlag.AlignCenter, self._empty)
            painter.end()
