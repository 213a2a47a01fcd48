"""An entry of a history: the model of a list of them, and how one is painted."""

from __future__ import annotations

import math
from collections import OrderedDict

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import (
    QColor,
    QPainter,
    QPen,
    QPixmap,
)
from PySide6.QtWidgets import (
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from explorer_app.session.history import HistoryEntry
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.layers.layer_text import channels_text
from explorer_app.window.look import fonts, icons, ink, theme
from gpu_backend import printable

_Index = QModelIndex | QPersistentModelIndex

ENTRY = Qt.ItemDataRole.UserRole
_KEPT_PICTURES = 1000
SIDE_PX, PITCH_PX = 56, 62
"""Side of an entry's picture, and distance from one entry to the next, before scaling."""


class EntryModel(QAbstractListModel):
    """History entries with pictures and stars. Changes are signalled per row, so that the view keeps its place.

    Attributes
    ----------
    keys
        What the view's keys do with an entry, for tooltips: with one that is not kept, and with a kept one.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.keys = ("Enter goes there, S keeps it.", "Enter goes there, S no longer keeps it.")
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
            is_tip = role == Qt.ItemDataRole.ToolTipRole
            return plain_tip(f"{words}: {self.keys[bool(star)]}") if is_tip else words
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
        """Store an entry's picture, which the view then paints; the oldest pictures are dropped beyond the limit.

        No change of rows is signalled: a list view would lay out thousands of them again for each picture.
        """
        self.pictures[number] = picture
        self.pictures.move_to_end(number)
        while len(self.pictures) > _KEPT_PICTURES:
            self.pictures.popitem(last=False)

    def _changed(self) -> None:
        if self.entries:
            self.dataChanged.emit(self.index(0), self.index(len(self.entries) - 1))


def star_rect(item: QRect) -> QRect:
    """Return the rectangle of an item's star."""
    side = theme.px(18)
    return QRect(item.left() + theme.px(SIDE_PX) - side, item.top() + 1, side, side)


def mark_rect(item: QRect) -> QRect:
    """Return the rectangle of the layer mark, opposite the star."""
    side = theme.px(18)
    return QRect(item.left() + 1, item.top() + theme.px(SIDE_PX) + 3 - side, side, side)


def is_on_star(item: QRect, place: QPointF) -> bool:
    """Return whether a point is on the disc of an item's star, not only in its rectangle."""
    star = QRectF(star_rect(item))
    away = place - star.center()
    return math.hypot(away.x(), away.y()) <= star.width() / 2


class EntryDelegate(QStyledItemDelegate):
    """Paints an entry: picture, star, name, and marks of the current and the undone steps.

    Parameters
    ----------
    dims_ahead
        Whether entries after the current one (undone steps) are dimmed.
    has_names
        Whether the name is painted over the picture.
    """

    def __init__(self, model: EntryModel, view: QListView, dims_ahead: bool, has_names: bool) -> None:
        super().__init__(view)
        self._model = model
        self._has_names = has_names
        self._dims_ahead = dims_ahead

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:  # noqa: N802, D102 - Qt's name
        return QSize(theme.px(PITCH_PX), theme.px(SIDE_PX) + 4)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:  # noqa: D102 - Qt's
        tokens = theme.current()
        item: QRect = option.rect
        state = option.state
        entry: HistoryEntry = index.data(ENTRY)
        side = theme.px(SIDE_PX)
        rect = QRectF(item.left() + 1, item.top() + 2, side, side)
        is_here = index.row() == self._model.current
        is_hot = bool(state & QStyle.StateFlag.State_MouseOver)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        picture = self._model.pictures.get(entry.number)
        is_ahead = self._dims_ahead and 0 <= self._model.current < index.row()
        ink.draw_tile(painter, rect, 5, picture, opacity=0.4 if is_ahead and not is_hot else 1.0)
        if picture is None:
            painter.setPen(QPen(QColor(tokens.edge), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        if self._has_names:
            _draw_name(painter, rect, entry.label)
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
    """Paint an elided name over the lower edge of a picture, within its rounded corners."""
    painter.save()
    painter.setClipPath(ink.rounded(rect, 5))
    painter.setFont(fonts.caption())
    metrics = painter.fontMetrics()
    line = QRectF(rect.left(), rect.bottom() - metrics.height() - 1, rect.width(), metrics.height() + 1)
    painter.fillRect(line, ink.veil(0.66))
    painter.setPen(ink.light())
    cut = metrics.elidedText(printable(name), Qt.TextElideMode.ElideRight, int(line.width()) - 2)
    painter.drawText(line, Qt.AlignmentFlag.AlignCenter, cut)
    painter.restore()


def _draw_sign(painter: QPainter, rect: QRect, name: str, token: str) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.alpha(theme.current().panel, 0.78))
    painter.drawEllipse(QPointF(rect.center()) + QPointF(0.5, 0.5), rect.width() / 2 - 1, rect.width() / 2 - 1)
    icons.icon(name, token).paint(painter, rect.adjusted(3, 3, -3, -3))
