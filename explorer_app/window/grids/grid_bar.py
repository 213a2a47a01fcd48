"""The bar above a grid: what varies and by how much, and what can be done with the whole grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from explorer_app.controller import GridKind, GridSettings
from explorer_app.session.direction_names import default_name, shown_directions
from explorer_app.session.session import Session
from explorer_app.session.variations import LEAST_SIDE, MOST_SIDE, GridAxis
from explorer_app.window.controls.fitting_row import FittingRow
from explorer_app.window.controls.named_box import NamedBox
from explorer_app.window.controls.row_range_picker import RowRangeButton, RowRangePicker
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.slider_row import SliderRow, below
from explorer_app.window.look import theme
from gpu_backend import ModelFacts, RowRange

if TYPE_CHECKING:
    from gpu_backend import Directions

_KINDS: tuple[tuple[GridKind, str, str], ...] = (
    ("random", "Around", "Neighbours of the picture: steps towards random seeds."),
    ("axes", "Directions", "Steps along two directions: one horizontal, one vertical."),
    ("children", "Children", "Children of the cells picked as parents."),
    ("mix", "Mix", "Style mixing: each cell takes some rows of w from its row and the others from its column."),
)


class GridBar(QWidget):
    """The bar. It has two lines, or one where the grid is low; what a line has no room for is behind a button.

    Signals
    -------
    changed(object)
        Settings by name, to change.
    roll_requested(), breed_requested(), save_requested(), close_requested()
        Buttons.
    """

    changed = Signal(object)
    roll_requested = Signal()
    breed_requested = Signal()
    save_requested = Signal()
    close_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = GridSettings()
        self._resolutions: tuple[int, ...] = ()
        self._axes: dict[str, GridAxis] = {}
        self.kinds = SegmentedControl(_KINDS, "Kind of grid")
        self.kinds.chosen.connect(lambda kind: self.changed.emit({"kind": kind}))
        self.side = NamedBox("Size of the grid")
        self.side.setToolTip(f"Rows and columns of the grid, {LEAST_SIDE} to {MOST_SIDE}.")
        for side in range(LEAST_SIDE, MOST_SIDE + 1):
            self.side.addItem(f"{side} × {side}", side)
        self.side.activated.connect(lambda _: self.changed.emit({"side": self.side.currentData()}))
        self.spread = SliderRow(
            "Spread",
            0.0,
            1.0,
            reset=GridSettings().spread,
            widest="0.00",
            label_px=64,
            tip="distance of the cells from the centre.",
        )
        self.spread.setAccessibleName("Spread")  # so that it is in the popup of a narrow bar
        self.spread.setMinimumWidth(theme.px(190))
        self.spread.setMaximumWidth(theme.px(300))
        self.spread.moved.connect(lambda spread, _: self.changed.emit({"spread": spread}))
        self.across, self.down = self._axis_box("across", "Across"), self._axis_box("down", "Up")
        self.rows_label = QLabel("Rows")
        theme.set_role(self.rows_label, "dim")
        self.rows = RowRangeButton()
        self.rows.clicked.connect(self._pick_rows)
        self.picker = RowRangePicker(self)
        self.picker.rows_chosen.connect(self._set_rows)
        self.roll = self._button("Roll again", "Draw new variations; locked cells stay (R).", self.roll_requested)
        self.breed = self._button("Breed", "", self.breed_requested)
        self.save = self._button("Save sheet…", "Save all cells as one picture.", self.save_requested)
        self.close_button = self._button("Done", "Show the picture again (Escape).", self.close_requested)
        self._varying = (self.spread, self.across, self.down, self.rows_label, self.rows)
        """What varies and by how much: the second line, where there is one."""
        self._absent: tuple[QWidget, ...] = ()
        rest = (self.rows_label, self.rows, self.down, self.across)
        self.first_line = FittingRow(
            (self.kinds, self.side, *self._varying, None, self.roll, self.breed, self.save, self.close_button),
            (self.save, self.side, *rest, self.breed, self.roll, self.spread),
            self,
            edge_px=0,
        )
        self.second_line = FittingRow((*self._varying, None), (*rest, self.spread), self, edge_px=0)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(theme.px(6))
        lines.addWidget(self.first_line)
        lines.addWidget(self.second_line)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.second_line.take_controls()
        self.show_settings(self._settings)
        self.show_picked(0)

    def _button(self, text: str, tip: str, signal: SignalInstance) -> QPushButton:
        button = QPushButton(text)
        button.setAccessibleName(text.rstrip("…"))
        button.setToolTip(tip)
        button.clicked.connect(lambda _=False: signal.emit())
        return button

    def _axis_box(self, name: str, label: str) -> QComboBox:
        box = NamedBox(f"Direction {label.lower()}")
        box.setToolTip(f"Direction in which the cells change {'to the right' if name == 'across' else 'upwards'}.")
        box.setMinimumContentsLength(10)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMaximumWidth(theme.px(180))
        box.activated.connect(lambda _: self.changed.emit({name: self._axes[box.currentData()]}))
        return box

    # -- content ----------------------------------------------------------------------------------------------------

    def show_model(self, facts: ModelFacts | None, directions: Directions | None, session: Session) -> None:
        """Take rows and directions from the model; directions have the names that the user gave them."""
        self._resolutions = () if facts is None else facts.row_resolutions
        self._axes = {}
        if directions is not None:
            self._axes = {
                directions.names[place]: GridAxis(directions.names[place], directions.reach[place])
                for place in shown_directions(directions.names)
            }
        for box in (self.across, self.down):
            box.clear()
            for name in self._axes:
                box.addItem(session.slider(name).label or default_name(name), name)
        self.show_settings(self._settings)

    def show_settings(self, settings: GridSettings) -> None:
        """Show settings without emitting."""
        self._settings = settings
        kind = settings.kind
        self.kinds.show_choice(kind)
        self.kinds.segments["children"].setVisible(kind == "children")
        self.side.setCurrentIndex(settings.side - LEAST_SIDE)
        self.spread.describe("Mutation" if kind == "children" else "Spread")
        if self.spread.slider.amount != settings.spread:
            self.spread.show_amount(settings.spread)
        for box, axis in ((self.across, settings.across), (self.down, settings.down)):
            box.setCurrentIndex(max(0, box.findData(axis.direction)))
        self.rows_label.setText("Rows from the left" if kind == "mix" else "Rows")
        self.rows.show_rows(settings.rows_of(self._resolutions), self._resolutions, "The grid")
        self.rows.setAccessibleName("Rows of the grid")
        self._absent = (
            *(() if kind in ("random", "children") else (self.roll,)),
            *((self.side, self.breed, self.spread) if kind == "mix" else ()),
            *(() if kind == "axes" else (self.across, self.down)),
            *(() if kind in ("random", "mix") else (self.rows_label, self.rows)),
        )
        self._fit()

    def set_is_low(self, is_low: bool) -> None:
        """Use one line, where the grid is too low for two."""
        if is_low != self.second_line.isHidden() and not (self.first_line.is_open or self.second_line.is_open):
            self.second_line.setVisible(not is_low)
            (self.first_line if is_low else self.second_line).take_controls()
            self._fit()

    def _fit(self) -> None:
        one, two = self._absent, (*self._absent, *self._varying)
        is_low = self.second_line.isHidden()
        self.first_line.set_absent(one if is_low else two)
        self.second_line.set_absent(two if is_low else one)

    def show_picked(self, count: int) -> None:
        """Show how many cells are picked as parents."""
        self.breed.setText(f"Breed {count}" if count else "Breed")
        self.breed.setEnabled(count >= 2)
        self.first_line.fit()
        tip = "Show children of the picked cells (B)."
        self.breed.setToolTip(tip if count >= 2 else f"{tip} Pick at least two with Ctrl and a click, or Space.")
        theme.set_role(self.breed, "main" if count >= 2 else "")

    def show_can_save(self, can: bool) -> None:
        """Enable the button that saves the sheet."""
        self.save.setEnabled(can)

    def _set_rows(self, rows: RowRange) -> None:
        self.changed.emit({"mix_rows" if self._settings.kind == "mix" else "rows": rows})

    def _pick_rows(self) -> None:
        rows = self._settings.rows_of(self._resolutions)
        self.picker.open_for("The grid", rows, self._resolutions, below(self.rows))
