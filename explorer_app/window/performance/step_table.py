"""The table of steps: what each step of the plan cost, its share as a bar in the cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from PySide6.QtGui import QColor, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window import fonts, theme
from explorer_app.window.performance.bar_cell import FRACTION_ROLE, BarCell

_Index = QModelIndex | QPersistentModelIndex
_SORT_ROLE = Qt.ItemDataRole.UserRole + 1


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    tip: str
    sample: str
    """The widest text that it has to hold; empty for the column that takes the rest."""


_COLUMNS = (
    _Column("layer", "Where in the network the step is.", ""),
    _Column("kernel", "Which operation ran.", "modulated_up_conv"),
    _Column("ms", "How long it took, in milliseconds.", "100.00 "),
    _Column("share", "Its part of the time of all steps, in percent.", "100 %  "),
    _Column("GF/s", "Floating-point operations it got done, in thousand millions a second.", "1000.0"),
)
_ROOMY_PX = 350
_KERNEL, _MS, _SHARE, _RATE = 1, 2, 3, 4


class StepModel(QAbstractTableModel):
    """Steps as rows, in execution order."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._steps: tuple[StepCost, ...] = ()
        self._largest = 1.0
        """Share of the step that costs most: its bar is full."""

    @property
    def steps(self) -> tuple[StepCost, ...]:
        """What the rows show."""
        return self._steps

    def show_steps(self, steps: Sequence[StepCost]) -> None:
        """Show other costs. The same steps with new figures keep their rows, so that nothing jumps."""
        steps = tuple(steps)
        if steps == self._steps:
            return
        self._largest = max((step.share for step in steps), default=0.0) or 1.0
        same = [(step.layer, step.kernel) for step in steps] == [(step.layer, step.kernel) for step in self._steps]
        if same:
            self._steps = steps
            self.dataChanged.emit(self.index(0, _MS), self.index(len(steps) - 1, len(_COLUMNS) - 1))
        else:
            self.beginResetModel()
            self._steps = steps
            self.endResetModel()

    def rowCount(self, parent: _Index | None = None) -> int:  # noqa: N802 - Qt's name
        """Return the number of steps."""
        return 0 if parent is not None and parent.isValid() else len(self._steps)

    def columnCount(self, parent: _Index | None = None) -> int:  # noqa: N802 - Qt's name
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(_COLUMNS)

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title, tip or alignment."""
        if orientation == Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section].title
        if role == Qt.ItemDataRole.ToolTipRole:
            return _COLUMNS[section].tip
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_alignment(section))
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a cell shows, sorts by or fills its bar to."""
        step, column = self._steps[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(step, column)
        if role == _SORT_ROLE:
            return _sort_key(step, column)
        if role == FRACTION_ROLE:
            return step.share / self._largest if column == _SHARE else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_alignment(column))
        if role == Qt.ItemDataRole.ForegroundRole:
            return QColor(theme.current().dim) if column == _KERNEL else None
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{step.layer}: {step.kernel}, {step.time_us / 1000:.3f} ms, {step.nbytes / 1e6:.1f} MB moved."
        return None


class StepTable(QTableView):
    """The table, costliest step first. It keeps selection and scroll position when the figures change."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("steps")
        self.setAccessibleName("Steps of the plan")
        self._chosen: tuple[str, str] | None = None
        self.steps = StepModel(self)
        self._sorted = QSortFilterProxyModel(self)
        self._sorted.setSourceModel(self.steps)
        self._sorted.setSortRole(_SORT_ROLE)
        self._sorted.setDynamicSortFilter(False)  # rows move when nobody points at them
        self.setModel(self._sorted)
        self.setItemDelegateForColumn(_SHARE, BarCell(self))
        self.setFont(fonts.table())
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAlternatingRowColors(True)
        self.setSortingEnabled(True)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setMinimumSectionSize(theme.px(16))
        rows.setDefaultSectionSize(theme.px(24))
        header = self.horizontalHeader()
        header.setFont(fonts.table())
        header.setHighlightSections(False)
        header.setMinimumSectionSize(theme.px(36))
        header.setSectionsMovable(False)
        metrics = self.fontMetrics()
        for column, about in enumerate(_COLUMNS):
            if about.sample:
                header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
                self.setColumnWidth(column, metrics.horizontalAdvance(about.sample) + theme.px(14))
            else:
                header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(_SHARE, Qt.SortOrder.DescendingOrder)

    def show_steps(self, steps: Sequence[StepCost]) -> None:
        """Show other costs; rows find their new places unless the pointer is on them.

        A draft has fewer steps than the full picture: what is selected stays selected as long as it is among them.
        """
        scrolled = self.verticalScrollBar().value()
        selected = [self._sorted.mapToSource(index).row() for index in self.selectionModel().selectedRows()]
        if selected:
            step = self.steps.steps[selected[0]]
            self._chosen = (step.layer, step.kernel)
        self.steps.show_steps(steps)
        if not self.underMouse():
            header = self.horizontalHeader()
            self._sorted.sort(header.sortIndicatorSection(), header.sortIndicatorOrder())
        if not self.selectionModel().hasSelection():
            self._choose_again()
        self.verticalScrollBar().setValue(scrolled)

    def _choose_again(self) -> None:
        for row, step in enumerate(self.steps.steps):
            if (step.layer, step.kernel) == self._chosen:
                index = self._sorted.mapFromSource(self.steps.index(row, 0))
                rows = QItemSelectionModel.SelectionFlag.Rows
                self.selectionModel().select(index, QItemSelectionModel.SelectionFlag.ClearAndSelect | rows)
                break

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Choose a row; a press beside the rows chooses none."""
        super().mousePressEvent(event)
        if not self.selectionModel().hasSelection():
            self._chosen = None

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Where there is little room, rate and kernel give way to the layer's name."""
        super().resizeEvent(event)
        width = self.viewport().width()
        self.setColumnHidden(_RATE, width < theme.px(_ROOMY_PX))
        widest = self.fontMetrics().horizontalAdvance(_COLUMNS[_KERNEL].sample) + theme.px(14)
        self.setColumnWidth(_KERNEL, min(widest, width * 35 // 100))


def _alignment(column: int) -> Qt.AlignmentFlag:
    right = column in (_MS, _RATE)
    return Qt.AlignmentFlag.AlignVCenter | (Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft)


def _rate(step: StepCost) -> float:
    """Return thousand millions of operations a second."""
    return step.flops / step.time_us / 1000 if step.time_us > 0 else 0.0


def _text(step: StepCost, column: int) -> str:
    if column == _MS:
        return f"{step.time_us / 1000:.2f} "
    if column == _SHARE:
        return f"{100 * step.share:.0f} %"
    if column == _RATE:
        return f"{_rate(step):.1f}" if step.flops else "–"
    return step.kernel if column == _KERNEL else step.layer.removeprefix("synthesis.")


def _sort_key(step: StepCost, column: int) -> float | str:
    keys: tuple[float | str, ...] = (step.layer, step.kernel, step.time_us, step.share, _rate(step))
    return keys[column]
