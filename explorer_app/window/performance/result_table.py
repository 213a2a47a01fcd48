"""A table of results that grows row by row: names at the left, figures at the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from explorer_app.window.look import fonts, theme


class ResultTable(QTableWidget):
    """Shows texts only; nothing can be selected or edited. The first column takes the width that is left.

    Parameters
    ----------
    columns
        Titles.
    least_px
        Smallest width of a column, unscaled.
    """

    def __init__(self, columns: Sequence[str], name: str, parent: QWidget | None = None, *, least_px: int = 72) -> None:
        super().__init__(0, len(columns), parent)
        self.setAccessibleName(name)
        for column, title in enumerate(columns):
            self.setHorizontalHeaderItem(column, _cell(title, column))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setShowGrid(False)
        self.setFont(fonts.table())
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(theme.px(22))
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(theme.px(least_px))
        header.setHighlightSections(False)

    def explain(self, tips: Sequence[str]) -> None:
        """Set the tooltips of the titles."""
        for column, tip in enumerate(tips):
            if (title := self.horizontalHeaderItem(column)) is not None:
                title.setToolTip(tip)

    def add(self, texts: Sequence[str], tip: str) -> None:
        """Add a row at the end and scroll to it; the last text takes the columns that are left."""
        row = self.rowCount()
        self.insertRow(row)
        for column, text in enumerate(texts):
            item = _cell(text, column)
            item.setToolTip(tip)
            self.setItem(row, column, item)
        if len(texts) < self.columnCount():
            self.setSpan(row, len(texts) - 1, 1, self.columnCount() - len(texts) + 1)
        self.scrollToBottom()

    def clear_rows(self) -> None:
        """Remove all rows."""
        self.clearSpans()
        self.setRowCount(0)


def _cell(text: str, column: int) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
    item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    return item
