"""The pictures of a history in one line: a virtual list that paints and requests only visible entries."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from explorer_app.session.history import HistoryEntry
from explorer_app.window.controls.ask_popup import AskPopup
from explorer_app.window.layers.layer_text import channels_text
from explorer_app.window.look import fonts, icons, ink, theme

_Index = QModelIndex | QPersistentModelIndex

ENTRY = Qt.ItemDataRole.UserRole
_REQUEST_MS = 120
_KEPT_PICTURES = 1000
_SIDE, _PITCH = 56, 62


@dataclass(slots=True)
class _Drag:
    """A drag of a kept entry: row (-1 for none), start position, and the row before which it would drop."""

    row: int = -1
    x: int = 0
    is_moving: bool = False
    before: int = 0


class EntryModel(QAbstractListModel):
    """History entries with pictures and stars. Changes are signalled per row, so that the view keeps its place."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.entries: tuple[HistoryEntry, ...] = ()
        self.kept: frozenset[int] = frozenset()
        self.current = -1
        self.pictures: OrderedDict[int, QPixmap] = OrderedDict()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's signature
        """Return the number of entries."""
        return 0 if parent.isValid() else len(self.entries)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return an entry or its label."""
        entry = self.entries[index.row()]
        if role == ENTRY:
            return entry
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            star = ", kept" if entry.number in self.kept else ""
            here = ", here" if index.row() == self.current else ""
            tap = entry.session.tap
            layer = "" if tap is None else f", showing {tap.layer}, {channels_text(tap)}"
            words = f"{entry.label}{layer}{star}{here}"
            return words if role == Qt.ItemDataRole.AccessibleTextRole else f"{words}: Enter goes there, S keeps it."
        return None

    def show_entries(self, entries: tuple[HistoryEntry, ...], kept: frozenset[int], current: int) -> None:
        """Show entries; an unchanged prefix is not signalled."""
        if entries is not self.entries:
            old = self.entries
            same = 0
            for left, right in zip(old, entries, strict=False):
                if left != right:
                    break
                same += 1
            if same < len(old):
                self.beginRemoveRows(QModelIndex(), same, len(old) - 1)
                self.entries = old[:same]
                self.endRemoveRows()
            if same < len(entries):
                self.beginInsertRows(QModelIndex(), same, len(entries) - 1)
                self.entries = entries
                self.endInsertRows()
            self.entries = entries
        self.kept, self.current = kept, current
        self._changed()

    def show_picture(self, number: int, picture: QPixmap) -> None:
        """Store an entry's picture; the oldest pictures are dropped beyond the limit."""
        self.pictures[number] = picture
        self.pictures.move_to_end(number)
        while len(self.pictures) > _KEPT_PICTURES:
            self.pictures.popitem(last=False)
        self._changed()

    def _changed(self) -> None:
        if self.entries:
            self.dataChanged.emit(self.index(0), self.index(len(self.entries) - 1))


def star_rect(item: QRect) -> QRect:
    """Return the rectangle of an item's star."""
    side = theme.px(18)
    return QRect(item.left() + theme.px(_SIDE) - side, item.top() + 1, side, side)


def mark_rect(item: QRect) -> QRect:
    """Return the rectangle of the layer mark, opposite the star."""
    side = theme.px(18)
    return QRect(item.left() + 1, item.top() + theme.px(_SIDE) + 3 - side, side, side)


def is_on_star(item: QRect, place: QPointF) -> bool:
    """Return whether a point is on the disc of an item's star, not only in its rectangle."""
    star = QRectF(star_rect(item))
    away = place - star.center()
    return math.hypot(away.x(), away.y()) <= star.width() / 2


class _EntryDelegate(QStyledItemDelegate):
    def __init__(self, model: EntryModel, view: QListView, dims_ahead: bool, has_names: bool) -> None:
        super().__init__(view)
        self._model = model
        self._has_names = has_names
        self._dims_ahead = dims_ahead

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:  # noqa: N802
        return QSize(theme.px(_PITCH), theme.px(_SIDE) + 4)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        tokens = theme.current()
        item: QRect = option.rect
        state = option.state
        entry: HistoryEntry = index.data(ENTRY)
        side = theme.px(_SIDE)
        rect = QRectF(item.left() + 1, item.top() + 2, side, side)
        is_here = index.row() == self._model.current
        is_hot = bool(state & QStyle.StateFlag.State_MouseOver)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        path = QPainterPath()
        path.addRoundedRect(rect, 5, 5)
        painter.save()
        painter.setClipPath(path)
        painter.fillRect(rect, QColor(tokens.raised))
        picture = self._model.pictures.get(entry.number)
        if picture is not None:
            is_ahead = self._dims_ahead and 0 <= self._model.current < index.row()
            painter.setOpacity(0.4 if is_ahead and not is_hot else 1.0)
            ink.draw_cropped(painter, rect, picture)
        if picture is None:
            painter.setPen(QPen(QColor(tokens.edge), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        if self._has_names:
            _draw_name(painter, rect, entry.label)
        painter.restore()
        if state & QStyle.StateFlag.State_Selected:
            painter.setPen(QPen(QColor(tokens.strong), 2))
            painter.drawRoundedRect(rect, 5, 5)
        if is_here:
            painter.setPen(QPen(QColor(tokens.accent), 2))
            painter.drawRoundedRect(rect.adjusted(0, 0, 0, 0), 5, 5)
        elif is_hot:
            painter.setPen(QPen(QColor(tokens.dim), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(ink.light(), 1, Qt.PenStyle.DotLine))
            painter.drawRoundedRect(rect.adjusted(3, 3, -3, -3), 3, 3)
        is_kept = entry.number in self._model.kept
        if is_kept or is_hot:
            name, token = ("star-filled", "accent") if is_kept else ("star", "dim")
            _draw_sign(painter, star_rect(item), name, token)
        if entry.session.tap is not None:  # its thumbnail shows the picture, not the layer
            _draw_sign(painter, mark_rect(item), "layers", "strong")
        painter.restore()


def _draw_name(painter: QPainter, rect: QRectF, name: str) -> None:
    """Paint an elided name over the lower edge of a picture."""
    painter.setFont(fonts.caption())
    metrics = painter.fontMetrics()
    line = QRectF(rect.left(), rect.bottom() - metrics.height() - 1, rect.width(), metrics.height() + 1)
    painter.fillRect(line, ink.veil(0.66))
    painter.setPen(ink.light())
    cut = metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(line.width()) - 2)
    painter.drawText(line, Qt.AlignmentFlag.AlignCenter, cut)


def _draw_sign(painter: QPainter, rect: QRect, name: str, token: str) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.alpha(theme.current().panel, 0.78))
    painter.drawEllipse(QPointF(rect.center()) + QPointF(0.5, 0.5), rect.width() / 2 - 1, rect.width() / 2 - 1)
    icons.icon(name, token).paint(painter, rect.adjusted(3, 3, -3, -3))


class HistoryList(QListView):
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
    thumbnail_wanted(object, object)
        ``("history", number)`` and the entry's `Session`, for visible entries without a picture.
    """

    chosen = Signal(int)
    starred = Signal(int, bool)
    renamed = Signal(int, str)
    moved = Signal(int, object)
    compare_requested = Signal(object)
    mix_grid_requested = Signal(object, str)
    average_requested = Signal(object)
    weighted_requested = Signal(object, str)
    difference_requested = Signal(int, int)
    thumbnail_wanted = Signal(object, object)

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
        self.entries = EntryModel(self)
        self.setModel(self.entries)
        self.setItemDelegate(_EntryDelegate(self.entries, self, dims_ahead, is_kept))
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(False)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        mode = QListView.SelectionMode
        self.setSelectionMode(mode.ExtendedSelection if is_kept else mode.NoSelection)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setFixedHeight(theme.px(_SIDE) + 4 + theme.px(12))
        self.setAccessibleName(name)
        self._request_timer = QTimer(self, singleShot=True, interval=_REQUEST_MS)
        self._request_timer.timeout.connect(self._request_pictures)
        self.horizontalScrollBar().valueChanged.connect(lambda _: self._request_timer.start())

    def show_entries(self, entries: tuple[HistoryEntry, ...], kept: frozenset[int], current: int) -> None:
        """Show entries; scroll to a new current one."""
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

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture; ignore other widgets' keys."""
        if isinstance(key, tuple) and len(key) == 2 and key[0] == "history":
            self.entries.show_picture(key[1], QPixmap.fromImage(image))

    def rows_in_sight(self) -> range:
        """Return the visible rows."""
        if not self.entries.entries:
            return range(0)
        pitch = theme.px(_PITCH)
        first = self.horizontalScrollBar().value() // pitch
        last = (self.horizontalScrollBar().value() + self.viewport().width()) // pitch
        return range(max(first, 0), min(last + 1, len(self.entries.entries)))

    def _request_pictures(self) -> None:
        if not self.isVisible():
            return
        here = self.entries.current
        for row in sorted(self.rows_in_sight(), key=lambda row: -abs(row - here)):  # the last request is rendered first
            entry = self.entries.entries[row]
            if entry.number not in self.entries.pictures:
                self.thumbnail_wanted.emit(("history", entry.number), entry.session)

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

    def selected_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the selected entries, in display order."""
        rows = sorted(index.row() for index in self.selectionModel().selectedIndexes())
        return tuple(self.entries.entries[row].number for row in rows)

    def rename(self, row: int) -> None:
        """Open a popup below a kept entry's picture to rename it."""
        entry = self.entries.entries[row]
        place = self.viewport().mapToGlobal(self.visualRect(self.entries.index(row)).bottomLeft())
        self.ask.ask_text(
            "Name of the kept picture", entry.label, "Rename", place, lambda name: self.renamed.emit(entry.number, name)
        )

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
        row = round((x + self.horizontalScrollBar().value()) / theme.px(_PITCH))
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
        bar, edge = self.horizontalScrollBar(), theme.px(_PITCH) // 2
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
            self._drag = _Drag()
            self._pressed = None
            self.viewport().update()
        elif self._is_kept and index.isValid() and event.key() == Qt.Key.Key_F2:
            self.rename(index.row())
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
        menu.addAction("Go there", lambda: self.chosen.emit(row))
        chosen = self.selected_numbers()
        if len(chosen) == 2 and number in chosen:
            menu.addAction("Compare these two", lambda: self.compare_requested.emit(chosen))
        else:
            menu.addAction("Compare with the picture", lambda: self.compare_requested.emit((number,)))
        if self._is_kept:
            menu.addAction(icons.icon("rename", "dim"), "Rename…", lambda: self.rename(row))
            self._add_sums(menu, row, chosen if number in chosen else (number,))
        kept = number in self.entries.kept
        menu.addAction(
            icons.icon("star", "dim"),
            "Keep no longer" if kept else "Keep",
            lambda: self.starred.emit(number, not kept),
        )
        return menu

    def _add_sums(self, menu: QMenu, row: int, numbers: tuple[int, ...]) -> None:
        """Add what several kept entries can be made into."""
        menu.addSeparator()
        menu.addAction("Rows of a mix grid", lambda: self.mix_grid_requested.emit(numbers, "rows"))
        menu.addAction("Columns of a mix grid", lambda: self.mix_grid_requested.emit(numbers, "columns"))
        if len(numbers) >= 2:
            menu.addAction(f"Average of {len(numbers)}", lambda: self.average_requested.emit(numbers))
            menu.addAction("Weighted sum…", lambda: self._ask_weights(row, numbers))
        if len(numbers) == 2:
            names = {entry.number: entry.label for entry in self.entries.entries}
            for a, b in (numbers, numbers[::-1]):
                words = f"“{names[a][:24]}” − “{names[b][:24]}” as a direction"
                menu.addAction(words, partial(self.difference_requested.emit, a, b))
        menu.addSeparator()

    def _ask_weights(self, row: int, numbers: tuple[int, ...]) -> None:
        place = self.viewport().mapToGlobal(self.visualRect(self.entries.index(row)).bottomLeft())
        usual = ", ".join("1" for _ in numbers)
        self.ask.ask_text(
            "Weights, in the order of the pictures", usual, "Sum", place, partial(self.weighted_requested.emit, numbers)
        )

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Scroll horizontally with either wheel axis."""
        turn = event.pixelDelta() if not event.pixelDelta().isNull() else event.angleDelta() * 0.75
        bar = self.horizontalScrollBar()
        bar.setValue(bar.value() - (turn.x() or turn.y()))
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Request the pictures of newly visible entries."""
        super().resizeEvent(event)
        self._request_timer.start()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Request the pictures of visible entries."""
        super().showEvent(event)
        self._request_timer.start()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the entries, or the text of an empty list."""
        super().paintEvent(event)
        if self._drag.is_moving:
            painter = QPainter(self.viewport())
            x = self._drag.before * theme.px(_PITCH) - self.horizontalScrollBar().value() - 1
            painter.fillRect(max(x, 0), 2, 2, theme.px(_SIDE), QColor(theme.current().accent))
            painter.end()
        if not self.entries.entries:
            painter = QPainter(self.viewport())
            painter.setPen(QColor(theme.current().dim))
            painter.drawText(self.viewport().rect(), Qt.AlignmentFlag.AlignCenter, self._empty)
            painter.end()
