"""A cell with a bar: the number, and behind it how much of the whole it is."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from explorer_app.window import theme

FRACTION_ROLE = Qt.ItemDataRole.UserRole + 2
"""A number in 0..1: how far the bar goes."""


class BarCell(QStyledItemDelegate):
    """Paints the bar under the text that the cell has anyway."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint bar and text."""
        self.initStyleOption(option, index)
        tokens = theme.current()
        fraction = index.data(FRACTION_ROLE)
        if isinstance(fraction, float):
            area = QRectF(option.rect).adjusted(2, 4, -theme.px(6), -4)
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.alpha(tokens.accent, 0.38))
            area.setWidth(max(2.0, area.width() * max(0.0, min(1.0, fraction))))
            painter.drawRoundedRect(area, 2, 2)
            painter.restore()
        painter.save()
        painter.setFont(option.font)
        painter.setPen(QColor(tokens.strong))
        text = QRectF(option.rect).adjusted(theme.px(8), 0, 0, 0)
        painter.drawText(text, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, option.text)
        painter.restore()
