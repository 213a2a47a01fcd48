"""Table model of steps. It sorts its rows itself, and formats a cell's text when it is painted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QWidget

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.look.icons import icon
from explorer_app.window.performance.kernel_state import ICONS, state_of, state_text
from explorer_app.window.performance.step_columns import COLUMNS, KEYS, columns_for, known_keys, tooltip

if TYPE_CHECKING:
    from gpu_backend import Roofline

_Index = QModelIndex | QPersistentModelIndex
_KERNEL, _SHARE = (KEYS.index(key) for key in ("kernel", "share"))
_MIDDLE = Qt.AlignmentFlag.AlignVCenter
_LEFT = int(_MIDDLE | Qt.AlignmentFlag.AlignLeft)
_RIGHT = int(_MIDDLE | Qt.AlignmentFlag.AlignRight)
_ALIGNMENTS = tuple(_LEFT if column.is_left else _RIGHT for column in COLUMNS)


class StepModel(QAbstractTableModel):
    """Steps as rows, with the columns of `COLUMNS`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.columns = COLUMNS
        self._steps: tuple[StepCost, ...] = ()
        self._roofline: Roofline | None = None
        self._rows: list[int] = []
        """Row -> index in execution order."""
        self._sorted_by = (KEYS.index("share"), Qt.SortOrder.DescendingOrder)
        self._icons = {state: icon(name, "warn" if state == "fallback" else "dim") for state, name in ICONS.items()}
        self._largest = 1.0
        """Share of the most expensive step, whose bar is full."""

    # -- interface of the table -------------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[StepCost, ...]:
        """The shown steps, in execution order."""
        return self._steps

    @property
    def known(self) -> frozenset[str]:
        """Keys of the columns that have values."""
        return known_keys(self._steps, self._roofline)

    def show_steps(self, steps: Sequence[StepCost], roofline: Roofline | None, *, keeps_order: bool) -> None:
        """Show new costs. With `keeps_order`, unchanged steps keep their rows; otherwise the rows are sorted."""
        steps = tuple(steps)
        if (steps, roofline) == (self._steps, self._roofline):
            return
        is_same = [(step.layer, step.kernel) for step in steps] == [(step.layer, step.kernel) for step in self._steps]
        if not is_same:
            self.beginResetModel()
        self._steps, self._roofline = steps, roofline
        self.columns = columns_for(steps)
        self._largest = max((step.share for step in steps), default=0.0) or 1.0
        if not is_same:
            self._rows = self._sorted_rows(range(len(steps)))
            self.endResetModel()
        elif keeps_order or not self._take_rows(self._sorted_rows(self._rows, is_calm=True)):
            for first, last in _CHANGING:
                self.dataChanged.emit(self.index(0, first), self.index(len(steps) - 1, last))

    def step_at(self, row: int) -> int:
        """Return the index in execution order of a row's step."""
        return self._rows[row]

    def row_of(self, step: int) -> int:
        """Return the row of a step."""
        return self._rows.index(step)

    def text(self, row: int, column: int) -> str:
        """Return a cell's text."""
        about = self.columns[column]
        return about.text(about.value(self._steps[self._rows[row]], self._roofline))

    def sign(self, row: int) -> QIcon | None:
        """Return the icon before a kernel's name; None for fused kernels."""
        return self._icons.get(state_of(self._steps[self._rows[row]]))

    def fraction(self, row: int, column: int) -> float | None:
        """Return the length of a cell's bar in 0..1; None for no bar."""
        value = COLUMNS[column].value(self._steps[self._rows[row]], self._roofline)
        if not COLUMNS[column].has_bar or not isinstance(value, float):
            return None
        return value / self._largest if column == _SHARE else value

    # -- order ------------------------------------------------------------------------------------------------------

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 restores the execution order."""
        self._sorted_by = (column, order)
        self._take_rows(self._sorted_rows(range(len(self._steps))))

    def _take_rows(self, rows: list[int]) -> bool:
        """Apply a new order of rows; return whether any row moved."""
        if rows == self._rows:
            return False
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        places = {step: row for row, step in enumerate(rows)}
        after = [self.index(places[self._rows[index.row()]], index.column()) for index in before]
        self._rows = rows
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()
        return True

    def _sorted_rows(self, rows: Iterable[int], *, is_calm: bool = False) -> list[int]:
        """Return sorted rows; with `is_calm`, rows with the same displayed share keep their order and do not jitter."""
        column, order = self._sorted_by
        if not 0 <= column < len(COLUMNS):
            return sorted(rows)
        is_falling = order == Qt.SortOrder.DescendingOrder
        return sorted(rows, key=lambda step: self._sort_key(step, column, is_calm), reverse=is_falling)

    def _sort_key(self, step: int, column: int, is_calm: bool = False) -> tuple[float, str]:
        """Return the sort key of a cell as (number, text); a grid counts as its number of blocks."""
        value = COLUMNS[column].value(self._steps[step], self._roofline)
        if isinstance(value, tuple):
            return math.prod(value), ""
        if isinstance(value, str):
            return 0.0, value
        if is_calm and column == _SHARE and isinstance(value, float):
            return round(value, 2), ""
        return (-1.0 if value is None else value), ""

    # -- Qt's model interface ---------------------------------------------------------------------------------------

    def rowCount(self, parent: _Index | None = None) -> int:  # noqa: N802 - Qt's name
        """Return the number of steps."""
        return 0 if parent is not None and parent.isValid() else len(self._steps)

    def columnCount(self, parent: _Index | None = None) -> int:  # noqa: N802 - Qt's name
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title, tip or alignment."""
        if orientation == Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section].title
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{self.columns[section].tip} Right click: choose columns."
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _ALIGNMENTS[section]
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, alignment or tooltip; the delegate calls `text`, `sign` and `fraction` instead."""
        row, column = index.row(), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _ALIGNMENTS[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(self._steps[self._rows[row]], self.columns, self._roofline)
        if role == Qt.ItemDataRole.AccessibleTextRole and column == _KERNEL:
            step = self._steps[self._rows[row]]
            return step.kernel if step.facts is None else f"{step.kernel}, {state_text(step.facts)}"
        return None


_CHANGING = tuple(
    (KEYS.index(first), KEYS.index(last)) for first, last in (("time", "share"), ("bandwidth", "roofline"))
)
"""First and last of the columns that change from frame to frame; the other columns are constant per kernel."""
