"""The pictures of a history in one line: a virtual list, only what is seen is painted or asked for."""

from __future__ import annotations

import math
from collections import OrderedDict

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
from PySide6.QtWidgets import QFrame, QListView, QMenu, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer_app.session.history import HistoryEntry
from explorer_app.window import icons, ink, theme
from explorer_app.window.layers.layer_words import channels_text

_Index = QModelIndex | QPersistentModelIndex

ENTRY = Qt.ItemDataRole.UserRole
_ASK_MS = 120
_KEPT_PICTURES = 1000
_SIDE, _PITCH = 56, 62


class EntryModel(QAbstractListModel):
    """History entries with their pictures and stars. Changes are told piece by piece, so that the view stays put."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.entries: tuple[HistoryEntry, ...] = ()
        self.kept: frozenset[int] = frozenset()
        self.current = -1
        self.pictures: OrderedDict[int, QPixmap] = OrderedDict()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's signature
        """Return how many entries there are."""
        return 0 if parent.isValid() else len(self.entries)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return an entry, or its words."""
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
        """Show entries; those at the front that stay the same are left alone."""
        if entries is not self.entries:
            old = self.entries
            same = 0
            for left, right in zip(old, entries, strict=False):
                if left.number != right.number:
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
        """Keep an entry's picture; the oldest go when there are too many."""
        self.pictures[number] = picture
        self.pictures.move_to_end(number)
        while len(self.pictures) > _KEPT_PICTURES:
            self.pictures.popitem(last=False)
        self._changed()

    def _changed(self) -> None:
        if self.entries:
            self.dataChanged.emit(self.index(0), self.index(len(self.entries) - 1))


def star_rect(item: QRect) -> QRect:
    """Return where an item's star is."""
    side = theme.px(18)
    return QRect(item.left() + theme.px(_SIDE) - side, item.top() + 1, side, side)


def mark_rect(item: QRect) -> QRect:
    """Return where the mark of an item that showed a layer is: across from its star."""
    side = theme.px(18)
    return QRect(item.left() + 1, item.top() + theme.px(_SIDE) + 3 - side, side, side)


def is_on_star(item: QRect, place: QPointF) -> bool:
    """Return whether a place is on an item's star: on its disc, not in the corners around it."""
    star = QRectF(star_rect(item))
    away = place - star.center()
    return math.hypot(away.x(), away.y()) <= star.width() / 2


class _EntryDelegate(QStyledItemDelegate):
    def __init__(self, model: EntryModel, view: QListView, dims_ahead: bool) -> None:
        super().__init__(view)
        self._model = model
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
        painter.restore()
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
        if entry.session.tap is not None:  # its picture is that of the latent, as its neighbours' are
            _draw_sign(painter, mark_rect(item), "layers", "strong")
        painter.restore()


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
        What it is called, and what it says while there is nothing.
    dims_ahead
        Whether entries after the current one are drawn faintly: steps that were undone.

    Signals
    -------
    chosen(int)
        The row that the person goes to: a click, Enter or Space.
    starred(int, bool)
        Number of an entry, and whether it is kept from now on: a click on the star, or S.
    thumbnail_wanted(object, object)
        ``("history", number)`` and the entry's `Session`, for entries in sight that have no picture.
    """

    chosen = Signal(int)
    starred = Signal(int, bool)
    thumbnail_wanted = Signal(object, object)

    def __init__(self, name: str, empty: str, *, dims_ahead: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._empty = empty
        self._pressed: tuple[int, bool] | None = None
        self.entries = EntryModel(self)
        self.setModel(self.entries)
        self.setItemDelegate(_EntryDelegate(self.entries, self, dims_ahead))
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(False)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QListView.SelectionMode.NoSelection)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setFixedHeight(theme.px(_SIDE) + 4 + theme.px(12))
        self.setAccessibleName(name)
        self._ask_later = QTimer(self, singleShot=True, interval=_ASK_MS)
        self._ask_later.timeout.connect(self._ask_for_pictures)
        self.horizontalScrollBar().valueChanged.connect(lambda _: self._ask_later.start())

    def show_entries(self, entries: tuple[HistoryEntry, ...], kept: frozenset[int], current: int) -> None:
        """Show entries; a new current one is brought into sight."""
        moved = current != self.entries.current or len(entries) != len(self.entries.entries)
        self.entries.show_entries(entries, kept, current)
        if moved and 0 <= current < len(entries):
            self.scrollTo(self.entries.index(current), QListView.ScrollHint.EnsureVisible)
        self._ask_later.start()
        self.viewport().update()

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a picture that was wanted; keys of others are left alone."""
        if isinstance(key, tuple) and len(key) == 2 and key[0] == "history":
            self.entries.show_picture(key[1], QPixmap.fromImage(image))

    def rows_in_sight(self) -> range:
        """Return the rows that are on the screen."""
        if not self.entries.entries:
            return range(0)
        pitch = theme.px(_PITCH)
        first = self.horizontalScrollBar().value() // pitch
        last = (self.horizontalScrollBar().value() + self.viewport().width()) // pitch
        return range(max(first, 0), min(last + 1, len(self.entries.entries)))

    def _ask_for_pictures(self) -> None:
        if not self.isVisible():
            return
        here = self.entries.current
        for row in sorted(self.rows_in_sight(), key=lambda row: -abs(row - here)):  # the last is made first
            entry = self.entries.entries[row]
            if entry.number not in self.entries.pictures:
                self.thumbnail_wanted.emit(("history", entry.number), entry.session)

    def _toggle_star(self, row: int) -> None:
        number = self.entries.entries[row].number
        self.starred.emit(number, number not in self.entries.kept)

    def event(self, event: QEvent) -> bool:
        """S is about the entry with the focus here, whatever it does elsewhere in the window."""
        is_key = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_S and not event.modifiers()
        if is_key and event.type() == QEvent.Type.ShortcutOverride and self.currentIndex().isValid():
            event.accept()
            return True
        return super().event(event)

    def _at(self, event: QMouseEvent) -> tuple[int, bool] | None:
        """Return the row under the pointer and whether it is on the star."""
        index = self.indexAt(event.position().toPoint())
        if event.button() != Qt.MouseButton.LeftButton or not index.isValid():
            return None
        return index.row(), is_on_star(self.visualRect(index), event.position())

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Take note of where a click begins."""
        super().mousePressEvent(event)
        self._pressed = self._at(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Two clicks are two clicks."""
        super().mouseDoubleClickEvent(event)
        self._pressed = self._at(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Go there, or keep it; a click that ends elsewhere than it began does neither."""
        super().mouseReleaseEvent(event)
        pressed, self._pressed = self._pressed, None
        if pressed is None or self._at(event) != pressed:
            return
        row, on_star = pressed
        if on_star:
            self._toggle_star(row)
        else:
            self.chosen.emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter and Space go there, S keeps it."""
        index = self.currentIndex()
        if index.isValid() and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(index.row())
        elif index.isValid() and event.key() == Qt.Key.Key_S and not event.modifiers():
            self._toggle_star(index.row())
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Offer both in words."""
        index = self.indexAt(event.pos())
        if not index.isValid():
            return
        row, number = index.row(), self.entries.entries[index.row()].number
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Go there", lambda: self.chosen.emit(row))
        kept = number in self.entries.kept
        menu.addAction(
            icons.icon("star", "dim"),
            "Keep no longer" if kept else "Keep",
            lambda: self.starred.emit(number, not kept),
        )
        menu.popup(event.globalPos())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Scroll along the line, whichever wheel is turned."""
        turn = event.pixelDelta() if not event.pixelDelta().isNull() else event.angleDelta() * 0.75
        bar = self.horizontalScrollBar()
        bar.setValue(bar.value() - (turn.x() or turn.y()))
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Ask for what came into sight."""
        super().resizeEvent(event)
        self._ask_later.start()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Ask for what is in sight."""
        super().showEvent(event)
        self._ask_later.start()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Say what will be here while there is nothing."""
        super().paintEvent(event)
        if not self.entries.entries:
            painter = QPainter(self.viewport())
            painter.setPen(QColor(theme.current().dim))
            painter.drawText(self.viewport().rect(), Qt.AlignmentFlag.AlignCenter, self._empty)
            painter.end()
