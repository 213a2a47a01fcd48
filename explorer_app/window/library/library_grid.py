"""Kept pictures in rows: a virtual list that paints, and requests pictures for, visible entries only."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import (
    QEvent,
    QMimeData,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QDrag,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import (
    QApplication,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from explorer_app.session.history import HistoryEntry
from explorer_app.window.history.entry_view import EntryView
from explorer_app.window.history.history_entries import ENTRY, EntryModel
from explorer_app.window.library.kept_drop import kept_data
from explorer_app.window.look import fonts, ink, theme
from gpu_backend import printable

_SIDE, _GAP = 64, 8
"""Side of a picture and the gap around it, in px at the usual font size."""

_KEYS = "Enter goes there, F2 renames it, Delete no longer keeps it."


class _TileDelegate(QStyledItemDelegate):
    """Paints a picture with its name below, and its tags where it has some."""

    def __init__(self, entries: EntryModel, view: QListView) -> None:
        super().__init__(view)
        self._entries = entries

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:  # noqa: N802
        return tile_size()

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        tokens = theme.current()
        entry: HistoryEntry = index.data(ENTRY)
        item: QRect = option.rect
        side, gap = theme.px(_SIDE), theme.px(_GAP)
        rect = QRectF(item.left() + gap / 2, item.top() + gap / 2, side, side)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        picture = self._entries.pictures.get(entry.number)
        ink.draw_tile(painter, rect, 4, picture)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(QPen(QColor(tokens.strong), 2))
            painter.drawRoundedRect(rect, 4, 4)
        elif index.row() == self._entries.current:
            painter.setPen(QPen(QColor(tokens.accent), 2))
            painter.drawRoundedRect(rect, 4, 4)
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(QPen(QColor(tokens.dim), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        elif picture is None:
            painter.setPen(QPen(QColor(tokens.edge), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(ink.light(), 1, Qt.PenStyle.DotLine))
            painter.drawRoundedRect(rect.adjusted(3, 3, -3, -3), 3, 3)
        painter.setFont(fonts.caption())
        metrics = painter.fontMetrics()
        line = QRectF(rect.left(), rect.bottom() + 2, side, metrics.height())
        painter.setPen(QColor(tokens.text if not entry.tags else tokens.strong))
        name = metrics.elidedText(printable(entry.label), Qt.TextElideMode.ElideRight, side)
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, name)
        painter.setPen(QColor(tokens.dim))
        tags = metrics.elidedText(", ".join(entry.tags), Qt.TextElideMode.ElideRight, side)
        line.translate(0, metrics.height())
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, tags)
        painter.restore()


def tile_size() -> QSize:
    """Return the size of a picture with its two lines."""
    height = QFontMetrics(fonts.caption()).height()
    return QSize(theme.px(_SIDE) + theme.px(_GAP), theme.px(_SIDE) + theme.px(_GAP) + 2 * height + 2)


class LibraryGrid(EntryView):
    """Kept pictures in rows, which can be selected together and dragged to other panels.

    Signals
    -------
    chosen(int)
        Number of the entry that was activated by a click, Enter or Space.
    menu_requested(QPoint)
        A menu for the selected entries, at a point of the screen.
    rename_requested(), tags_requested(), remove_requested()
        F2, Ctrl+T, Delete.
    """

    key_name = "library"
    request_ms = 80

    chosen = Signal(int)
    menu_requested = Signal(object)
    rename_requested = Signal()
    tags_requested = Signal()
    remove_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setItemDelegate(_TileDelegate(self.entries, self))
        self.entries.keys = (_KEYS, _KEYS)
        self.setWrapping(True)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setAccessibleName("Library")
        self._empty = ""
        self._pressed = -1
        self._press_x = self._press_y = 0

    def show_entries(self, entries: tuple[HistoryEntry, ...], current: int, empty: str) -> None:
        """Show entries; `current` is the row of the picture on the screen, -1 for none."""
        self._empty = empty
        if [entry.number for entry in entries] != [entry.number for entry in self.entries.entries]:
            self._pressed = -1  # another entry may be in that row now, or none
        self.entries.show_entries(entries, frozenset(), current)
        self._request_timer.start()
        self.viewport().update()

    def forget_pictures(self) -> None:
        """Request the pictures again."""
        self.entries.pictures.clear()
        self._request_timer.start()
        self.viewport().update()

    def selected_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the selected entries, in the order shown; of the focused one if none is selected."""
        numbers = super().selected_numbers()
        if not numbers and self.currentIndex().isValid():
            return (self.entries.entries[self.currentIndex().row()].number,)
        return numbers

    def visible_rows(self) -> range:
        """Return the rows that are visible, whole or in part."""
        count = len(self.entries.entries)
        size = tile_size()
        columns = max(1, self.viewport().width() // size.width())
        top = self.verticalScrollBar().value()
        first = top // size.height() * columns
        last = (top + self.viewport().height()) // size.height() * columns + columns
        return range(min(first, count), min(last, count))

    def _by_urgency(self, rows: range) -> Iterable[int]:
        return reversed(rows)

    def _row_at(self, event: QMouseEvent) -> int:
        index = self.indexAt(event.position().toPoint())
        return index.row() if index.isValid() and event.button() == Qt.MouseButton.LeftButton else -1

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Record where a click or a drag begins; a press on a selected entry keeps the selection for a drag."""
        self._pressed = self._row_at(event)
        self._press_x, self._press_y = int(event.position().x()), int(event.position().y())
        index = self.indexAt(event.position().toPoint())
        is_selected = index.isValid() and self.selectionModel().isSelected(index)
        if not (is_selected and self._pressed >= 0 and not event.modifiers()):
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Begin to drag the selected entries."""
        if self._pressed < 0 or not event.buttons() & Qt.MouseButton.LeftButton:
            super().mouseMoveEvent(event)
            return
        way = abs(event.position().x() - self._press_x) + abs(event.position().y() - self._press_y)
        if way < QApplication.startDragDistance():
            return
        row, self._pressed = self._pressed, -1
        self._drag(row)

    def drag_data(self, row: int) -> QMimeData:
        """Return the data of a drag that begins on a row: the selected entries if it is one of them."""
        number = self.entries.entries[row].number
        chosen = self.selected_numbers()
        return kept_data(chosen if number in chosen else (number,))

    def _drag(self, row: int) -> None:
        drag = QDrag(self)
        drag.setMimeData(self.drag_data(row))
        picture = self.entries.pictures.get(self.entries.entries[row].number)
        if picture is not None:
            drag.setPixmap(picture)
        drag.exec(Qt.DropAction.CopyAction)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Activate the entry if the button is released where it was pressed; with a modifier key a click selects."""
        super().mouseReleaseEvent(event)
        pressed, self._pressed = self._pressed, -1
        if pressed < 0 or self._row_at(event) != pressed or event.modifiers():
            return
        self.setCurrentIndex(self.entries.index(pressed))
        self.chosen.emit(self.entries.entries[pressed].number)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter and Space activate, F2 renames, Ctrl+T tags, Delete removes."""
        index = self.currentIndex()
        is_ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if index.isValid() and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(self.entries.entries[index.row()].number)
        elif event.key() == Qt.Key.Key_F2:
            self.rename_requested.emit()
        elif event.key() == Qt.Key.Key_T and is_ctrl:
            self.tags_requested.emit()
        elif event.key() == Qt.Key.Key_Delete:
            self.remove_requested.emit()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Claim the keys of the focused grid before the window's shortcuts."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            own = (Qt.Key.Key_F2, Qt.Key.Key_Delete, Qt.Key.Key_Space)
            if event.key() in own or (event.key() == Qt.Key.Key_T and event.modifiers()):
                event.accept()
                return True
        return super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Request a menu for the entries; one that is not selected becomes the selection."""
        index = self.indexAt(event.pos())
        if not index.isValid():
            return
        if not self.selectionModel().isSelected(index):
            self.setCurrentIndex(index)
        self.menu_requested.emit(event.globalPos())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the entries, or the reason why there are none."""
        super().paintEvent(event)
        if not self.entries.entries and self._empty:
            painter = QPainter(self.viewport())
            painter.setFont(fonts.body())
            painter.setPen(QColor(theme.current().dim))
            flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
            painter.drawText(self.viewport().rect().adjusted(8, 8, -8, -8), flags, self._empty)
            painter.end()
