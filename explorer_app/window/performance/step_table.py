"""The table of steps: the cost of each step of the plan, in the columns that fit or were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QPoint, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTableView, QWidget

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.look import fonts, theme
from explorer_app.window.performance.column_choice import ColumnChoice
from explorer_app.window.performance.step_cell import StepCell
from explorer_app.window.performance.step_columns import COLUMNS, KEYS
from explorer_app.window.performance.step_model import StepModel

if TYPE_CHECKING:
    from gpu_backend import Roofline

_PADDING = 10
_ROW = 24


class StepTable(QTableView):
    """The table, most expensive step first. Updates keep its selection and scroll position.

    Signals
    -------
    step_chosen(int)
        Index in execution order of the newly selected step; -1 for none.
    columns_chosen(str)
        The columns were changed: comma-separated keys, empty for as many as fit.
    """

    step_chosen = Signal(int)
    columns_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("steps")
        self.setAccessibleName("Steps of the plan")
        self._chosen: tuple[str, str] | None = None
        self.steps = StepModel(self)
        self.setModel(self.steps)
        self.setItemDelegate(StepCell(self.steps, self))
        self._look()
        metrics = self.fontMetrics()
        self.choice = ColumnChoice(
            {column.key: metrics.horizontalAdvance(column.sample) + theme.px(_PADDING) for column in COLUMNS}
        )
        self.selectionModel().selectionChanged.connect(self._selected)
        self._fit()

    def _look(self) -> None:
        self.setFont(fonts.table())
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAlternatingRowColors(True)
        self.setSortingEnabled(True)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setMinimumSectionSize(theme.px(16))
        rows.setDefaultSectionSize(theme.px(_ROW))
        header = self.horizontalHeader()
        header.setFont(fonts.table())
        header.setHighlightSections(False)
        header.setMinimumSectionSize(theme.px(24))
        header.setSectionsMovable(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(KEYS.index("share"), Qt.SortOrder.DescendingOrder)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._pick_columns)

    # -- rows -------------------------------------------------------------------------------------------------------

    def show_steps(self, steps: Sequence[StepCost], roofline: Roofline | None = None) -> None:
        """Show new costs; the rows are sorted again unless the pointer is on them.

        A draft has fewer steps than the full picture; the selection stays as long as its step is among them.
        """
        scrolled = self.verticalScrollBar().value()
        known = self.steps.known
        self.steps.show_steps(steps, roofline, keeps_order=self.underMouse())
        if self.steps.known != known:
            self._fit()
        if not self.selectionModel().hasSelection():
            self._choose_again()
        self.executeDelayedItemsLayout()  # other rows reset the range of the scroll bar, which is known only then
        self.verticalScrollBar().setValue(scrolled)

    @property
    def chosen(self) -> int:
        """Index in execution order of the selected step; -1 for none."""
        rows = self.selectionModel().selectedRows()
        return self.steps.step_at(rows[0].row()) if rows else -1

    def choose(self, step: int) -> None:
        """Select a step by its index in execution order and scroll to it; -1 clears the selection."""
        if step == self.chosen:
            return
        if not 0 <= step < len(self.steps.steps):
            self._chosen = None
            self.clearSelection()
            return
        index = self.steps.index(self.steps.row_of(step), 0)
        flag = QItemSelectionModel.SelectionFlag
        self.selectionModel().setCurrentIndex(index, flag.ClearAndSelect | flag.Rows)
        self.scrollTo(index)

    def _choose_again(self) -> None:
        for number, step in enumerate(self.steps.steps):
            if (step.layer, step.kernel) == self._chosen:
                index = self.steps.index(self.steps.row_of(number), 0)
                flag = QItemSelectionModel.SelectionFlag
                self.selectionModel().select(index, flag.ClearAndSelect | flag.Rows)
                break

    def _selected(self, on: QItemSelection, off: QItemSelection) -> None:
        chosen = self.chosen
        if chosen >= 0:
            step = self.steps.steps[chosen]
            self._chosen = (step.layer, step.kernel)
        self.step_chosen.emit(chosen)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Select a row; a press outside the rows clears the selection."""
        super().mousePressEvent(event)
        if not self.selectionModel().hasSelection():
            self._chosen = None

    # -- columns ----------------------------------------------------------------------------------------------------

    def show_columns(self, keys: str) -> None:
        """Show the columns with these comma-separated keys; empty for as many as fit."""
        self.choice.take(keys)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the columns to the new width."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        bar = self.verticalScrollBar().sizeHint().width()
        room = self.width() - 2 * self.frameWidth() - bar  # always reserved, so columns stay
        widths = self.choice.widths(self.steps.known or frozenset(KEYS), room)
        for number, key in enumerate(KEYS):
            self.setColumnHidden(number, key not in widths)
            if key in widths and self.columnWidth(number) != widths[key]:
                self.setColumnWidth(number, widths[key])

    def column_menu(self) -> QMenu:
        """Return the column picker: a checkable entry for each column with values, and one for automatic columns."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        automatic = menu.addAction("As many as fit")
        automatic.setCheckable(True)
        automatic.setChecked(self.choice.is_automatic)
        automatic.setEnabled(not self.choice.is_automatic)
        automatic.triggered.connect(partial(self._choose_columns, ""))
        menu.addSeparator()
        known = self.steps.known
        shown = [key for number, key in enumerate(KEYS) if not self.isColumnHidden(number)]
        for column in self.steps.columns:
            if column.key not in known or column.key == KEYS[0]:
                continue
            action = menu.addAction(column.name)
            action.setCheckable(True)
            action.setChecked(column.key in shown)
            toggled = ",".join(key for key in KEYS if (key in shown) != (key == column.key))
            action.triggered.connect(partial(self._choose_columns, toggled))
        return menu

    def _pick_columns(self, at: QPoint) -> None:
        self.column_menu().popup(self.horizontalHeader().viewport().mapToGlobal(at))

    def _choose_columns(self, keys: str, checked: bool = False) -> None:
        self.show_columns(keys)
        self.columns_chosen.emit(keys)
