"""Items of a list with pictures: the selection is an outline in the accent, which tints no picture."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from explorer_app.window.look import theme
from gpu_backend import printable

MARK = Qt.ItemDataRole.UserRole + 100
"""Role of a short text in a badge at the right end of a row; empty or None for none."""

_GAP_PX, _RADIUS = 4, 4
_DOTTED = Qt.PenStyle.DotLine


class PictureDelegate(QStyledItemDelegate):
    """Paints the items of a list: in rows, or in icon mode with the text below the picture.

    Qt's own items are filled with the selection's colour, and their pictures blended with it.

    Parameters
    ----------
    view
        Its icon size is that of the pictures.
    """

    def __init__(self, view: QListView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:  # noqa: N802
        """Return room for the picture, its outline and the text."""
        side, gap = self._view.iconSize(), theme.px(_GAP_PX)
        line_px = option.fontMetrics.height()
        if self._has_text_below:
            return QSize(side.width() + 2 * gap, side.height() + 2 * gap + line_px)
        return QSize(theme.px(160), max(side.height(), line_px) + 2 * gap)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint the outline, the picture, the text and the mark."""
        item = QStyleOptionViewItem(option)
        self.initStyleOption(item, index)
        tokens, state = theme.current(), item.state
        side, gap = self._view.iconSize(), theme.px(_GAP_PX)
        rect = QRectF(item.rect)
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        picture = QRectF(QPointF(rect.left() + gap, rect.top() + gap), side)
        if self._has_text_below:
            picture.moveLeft(rect.center().x() - picture.width() / 2)
            outline, text = picture.adjusted(-1, -1, 1, 1), QRectF(rect)
            text.setTop(picture.bottom() + 2)
        else:
            outline = rect.adjusted(2, 1, -2, -1)
            picture.moveLeft(outline.left() + gap)
            text = rect.adjusted(picture.width() + 4 * gap, 0, -2 * gap - 2, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if is_selected and not self._has_text_below:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(tokens.raised))
            painter.drawRoundedRect(outline, _RADIUS, _RADIUS)
        item.icon.paint(painter, picture.toRect())
        if not self._has_text_below:
            text = self._paint_mark(painter, text, str(index.data(MARK) or ""))
        painter.setPen(QColor(tokens.strong if is_selected else tokens.text))
        across = Qt.AlignmentFlag.AlignHCenter if self._has_text_below else Qt.AlignmentFlag.AlignLeft
        down = Qt.AlignmentFlag.AlignTop if self._has_text_below else Qt.AlignmentFlag.AlignVCenter
        words = item.fontMetrics.elidedText(printable(item.text), Qt.TextElideMode.ElideMiddle, int(text.width()))
        painter.drawText(text, across | down, words)
        if is_selected:
            self._outline(painter, outline, QPen(QColor(tokens.accent), 2))
        elif state & QStyle.StateFlag.State_MouseOver:
            self._outline(painter, outline, QPen(QColor(tokens.dim), 1))
        if state & QStyle.StateFlag.State_HasFocus and self._view.hasFocus():
            self._outline(painter, outline.adjusted(3, 3, -3, -3), QPen(QColor(tokens.strong), 1, _DOTTED))
        painter.restore()

    @property
    def _has_text_below(self) -> bool:
        return self._view.viewMode() == QListView.ViewMode.IconMode

    @staticmethod
    def _outline(painter: QPainter, rect: QRectF, pen: QPen) -> None:
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(rect, _RADIUS, _RADIUS)

    @staticmethod
    def _paint_mark(painter: QPainter, text: QRectF, mark: str) -> QRectF:
        """Paint a mark at the right end; return what is left for the text."""
        if not mark:
            return text
        tokens, metrics = theme.current(), painter.fontMetrics()
        height = metrics.height() + theme.px(2)
        width = max(height, metrics.horizontalAdvance(mark) + 2 * theme.px(6))
        badge = QRectF(text.right() - width, text.center().y() - height / 2, width, height)
        painter.setPen(QPen(QColor(tokens.edge), 1))
        painter.setBrush(QColor(tokens.hover))
        painter.drawRoundedRect(badge, _RADIUS, _RADIUS)
        painter.setPen(QColor(tokens.strong))
        painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, mark)
        return text.adjusted(0, 0, -width - theme.px(6), 0)
