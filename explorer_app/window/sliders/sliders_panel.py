"""The sliders panel: the model's directions, and every dimension of w."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.edits import ZeroSliders, set_row_ranges
from explorer_app.session.parameters import SetParameter
from explorer_app.session.row_groups import range_text, same_rows
from explorer_app.session.session import Session
from explorer_app.window.controls.row_range_picker import RowRangePicker
from explorer_app.window.controls.slider_row import below, show_played
from explorer_app.window.look import icons, theme
from explorer_app.window.sliders.axis_list import AxisList, axis_name
from explorer_app.window.sliders.direction_list import DirectionList, DirectionRow
from gpu_backend import RowRange

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts


class SlidersPanel(QWidget):
    """The sliders panel. It has two pages and scrolls by itself.

    The rows of w selected in the header apply to all directions; on page "w" they apply to dimensions that are moved
    already or next.

    Signals
    -------
    edited(object, bool)
        `SetParameter`, `SetParameters` or `ZeroSliders`; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    find_requested()
        The button that finds more directions was pressed.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("sliders",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    find_requested = Signal()

    page_titles: Sequence[str] = ("Directions", "w")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Sliders")
        self._session = Session()
        self._resolutions: tuple[int, ...] = ()
        self._chosen_for: DirectionRow | None = None
        self.directions = DirectionList()
        self.axes = AxisList()
        self.picker = RowRangePicker(self)
        self.zero = self._header_button("Zero all", "Reset the amounts of all sliders to zero.")
        self.zero.setText("")
        self.zero.setIcon(icons.icon("reset", "dim"))
        self.rows = self._header_button("rows", "Choose the rows that all directions act on.")
        self.goto = QLineEdit()
        self.goto.setPlaceholderText("Go to dimension")
        self.goto.setAccessibleName("Go to dimension")
        self.goto.setToolTip("Enter the number of a dimension of w to scroll to it.")
        self.moved = QToolButton()
        self.moved.setText("Only moved")
        self.moved.setCheckable(True)
        self.moved.setToolTip("Show only dimensions that are not at zero.")
        self.empty = QLabel()
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        theme.set_role(self.empty, "dim")
        self._pages = QStackedWidget()
        self._page = 0
        self._build()
        self.zero.clicked.connect(lambda: self.edited.emit(ZeroSliders(), True))
        self.rows.clicked.connect(self._choose_for_all)
        self.picker.rows_chosen.connect(self._rows_chosen)
        self.directions.rows_requested.connect(self._choose_for)
        self.directions.more.clicked.connect(lambda _on: self.find_requested.emit())
        self.moved.toggled.connect(self.axes.axes.show_only_moved)
        self.goto.textEdited.connect(self._go_to)
        for part in (self.directions, self.axes):
            part.edited.connect(self.edited)
            part.gesture_cancelled.connect(self.gesture_cancelled)
        self.directions.chain_after(self.rows)
        self.show_model(None, None)

    @staticmethod
    def _header_button(words: str, tip: str) -> QToolButton:
        button = QToolButton()
        theme.set_role(button, "flat")
        button.setText(words)
        button.setIconSize(QSize(theme.px(14), theme.px(14)))
        button.setToolTip(tip)
        button.setAccessibleName(words)
        return button

    def _build(self) -> None:
        tools = QHBoxLayout()
        tools.setContentsMargins(theme.MARGIN, 8, theme.MARGIN, 4)
        tools.setSpacing(6)
        tools.addWidget(self.goto, 1)
        tools.addWidget(self.moved)
        axes = QWidget()
        layout = QVBoxLayout(axes)
        layout.setContentsMargins(0, 0, 0, 6)
        layout.setSpacing(0)
        layout.addLayout(tools)
        layout.addWidget(self.axes, 1)
        for page in (self.directions, axes, self.empty):
            self._pages.addWidget(page)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._pages)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the size of four rows; the rest scrolls."""
        return QSize(theme.px(250), theme.px(theme.ROW) * 4)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of eight rows."""
        return QSize(theme.px(320), theme.px(theme.ROW) * 8 + 16)

    def header_widgets(self) -> Sequence[QWidget]:
        """Return the widgets for the dock's header."""
        return (self.zero, self.rows)

    def show_page(self, index: int) -> None:
        """Show the directions (0) or the dimensions of w (1)."""
        self._page = index
        self._pages.setCurrentIndex(index if self._resolutions else 2)
        self._show_rows()

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Set a model's directions and dimensions; without a model, show a text."""
        self._resolutions = facts.row_resolutions if facts is not None else ()
        self.directions.show_directions(directions if facts is not None else None)
        self.axes.axes.show_dimensions(facts.w_dim if facts is not None else 0)
        self.axes.new_rows = RowRange()
        self.empty.setText("Open a model to find its directions")
        for widget in (self.zero, self.rows):
            widget.setEnabled(facts is not None)
        self.show_page(self._page)
        self.show_session(self._session)

    def show_session(self, session: Session) -> None:
        """Show a session without emitting."""
        self._session = session
        self.directions.show_session(session, self._resolutions)
        self.axes.show_session(session)
        self._show_rows()

    def show_played(self, values: Mapping[str, float]) -> None:
        """Show the values that sounds and controllers give parameters, path -> value."""
        show_played(self.directions, values)
        self.axes.show_played(values)

    # --- rows -------------------------------------------------------------------------------------------------------

    def _names(self) -> tuple[str, ...]:
        """Return the directions to which the header's rows apply."""
        if self._page == 0:
            return self.directions.names
        return tuple(axis_name(axis) for axis in sorted(self.axes.axes.amounts))

    def _common_rows(self) -> RowRange | None:
        """Return the common rows of the page's directions; None if they differ."""
        if self._page == 0:
            ranges = self.directions.row_ranges(self._session)
        else:
            ranges = [self._session.slider(name).rows or RowRange() for name in self._names()]
        if not ranges:
            return self.axes.new_rows if self._page == 1 else RowRange()
        first = ranges[0]
        return first if all(same_rows(first, item, len(self._resolutions)) for item in ranges) else None

    def _show_rows(self) -> None:
        if not self._resolutions:
            self.rows.setText("rows ▾")
            return
        common = self._common_rows()
        words = "mixed rows" if common is None else range_text(common, self._resolutions)
        self.rows.setText(f"{words} ▾")

    def _choose_for_all(self) -> None:
        self._chosen_for = None
        name = "All directions" if self._page == 0 else "Moved dimensions"
        rows = self._common_rows() or RowRange()
        self.picker.open_for(name, rows, self._resolutions, below(self.rows))

    def _choose_for(self, row: DirectionRow) -> None:
        self._chosen_for = row
        self.picker.open_for(row.name, row.acts_on, self._resolutions, below(row.rows))

    def _rows_chosen(self, rows: RowRange) -> None:
        if self._chosen_for is not None:
            chosen = self._written(rows, self._chosen_for.own_rows)
            self.edited.emit(SetParameter(f"rows/{self._chosen_for.shown.direction}", chosen), True)
            return
        names = self._names()
        if self._page == 1:
            self.axes.new_rows = rows
        own = RowRange() if self._page == 1 else None
        if names:
            ranges = {name: self._written(rows, own or self.directions.own_rows(name)) for name in names}
            self.edited.emit(set_row_ranges(ranges), True)
        self._show_rows()

    def _written(self, rows: RowRange, own: RowRange) -> RowRange | None:
        """Return rows as a session stores them: None for the direction's own."""
        return None if same_rows(rows, own, len(self._resolutions)) else rows

    def _go_to(self, text: str) -> None:
        digits = "".join(letter for letter in text if letter.isdigit())
        if digits and int(digits) < self.axes.axes.rowCount() and not self.moved.isChecked():
            index = self.axes.axes.index(int(digits))
            self.axes.setCurrentIndex(index)
            self.axes.scrollTo(index, AxisList.ScrollHint.PositionAtCenter)
