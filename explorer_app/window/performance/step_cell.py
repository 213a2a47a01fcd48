"""Cells of the step table: text, with a bar behind it in some columns.

The table is repainted during drags, so cells bypass QStyle: text and bar come directly from the model instead of one
`data` call per role.
"""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QIcon, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer_app.window.look import theme
from explorer_app.window.performance.step_columns import COLUMNS, KEYS
from explorer_app.window.performance.step_model import StepModel

_DIM = frozenset(KEYS.index(key) for key in ("kernel", "state"))
_KERNEL, _STATE = KEYS.index("kernel"), KEYS.index("state")
_SERIES = {KEYS.index("share"): 0, KEYS.index("roofline"): 1}
"""Column -> index of its bar's colour in the plot series colours."""

_BAR_OPACITY = 0.38
_MOST_CUT = 1000
_MIDDLE = Qt.AlignmentFlag.AlignVCenter
_LEFT = int(_MIDDLE | Qt.AlignmentFlag.AlignLeft)
_RIGHT = int(_MIDDLE | Qt.AlignmentFlag.AlignRight)


class StepCell(QStyledItemDelegate):
    """Paints all cells of the table.

    Parameters
    ----------
    steps
        The model of the table.
    """

    def __init__(self, steps: StepModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._steps = steps
        self._tokens: theme.Tokens | None = None
        self._cut: dict[tuple[str, int], str] = {}
        self._inset = theme.px(4)
        self._icon = theme.px(12)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint bar, icon and text."""
        self._take_colours()
        row, column = index.row(), index.column()
        rect: QRect = option.rect.adjusted(self._inset, 0, -self._inset, 0)
        text = self._steps.text(row, column)
        about = COLUMNS[column]
        if about.has_bar:
            fraction = self._steps.fraction(row, column)
            if fraction is not None:
                width = max(2, round(rect.width() * max(0.0, min(1.0, fraction))))
                painter.fillRect(rect.x(), rect.y() + 4, width, rect.height() - 8, self._bars[column])
        if column == _KERNEL and (sign := self._steps.sign(row)) is not None:
            self._paint_sign(painter, rect, sign)
            rect.setLeft(rect.left() + self._icon + self._inset)
            text = text.removeprefix("plain_")  # the icon shows it
        if about.is_left:
            text = self._elided(option, text, rect.width())
        is_quiet = column in _DIM and not option.state & QStyle.StateFlag.State_Selected
        if column == _STATE and text == "fallback":
            painter.setPen(self._fallen)
        else:
            painter.setPen(self._dim if is_quiet else self._strong)
        painter.drawText(rect, _LEFT if about.is_left else _RIGHT, text)

    def _elided(self, option: QStyleOptionViewItem, text: str, width: int) -> str:
        """Return a name elided to a width in px; cached, because the same few names recur."""
        if (text, width) not in self._cut:
            if len(self._cut) > _MOST_CUT:
                self._cut.clear()
            self._cut[text, width] = option.fontMetrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        return self._cut[text, width]

    def _paint_sign(self, painter: QPainter, rect: QRect, sign: QIcon) -> None:
        below = (rect.height() - self._icon) // 2
        sign.paint(painter, rect.x(), rect.y() + below, self._icon, self._icon)

    def _take_colours(self) -> None:
        tokens = theme.current()
        if tokens is not self._tokens:
            self._tokens = tokens
            self._cut.clear()
            self._fallen = QColor(tokens.accent_text)
            self._strong, self._dim = QColor(tokens.strong), QColor(tokens.dim)
            self._bars = {
                column: theme.alpha(theme.source_colour(series), _BAR_OPACITY) for column, series in _SERIES.items()
            }
