"""The bar below the canvas while points are dragged: what may change, how much of the edit shows, what it becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMoveEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QPushButton, QWidget

from explorer_app.controller import Engine, PointDrag
from explorer_app.window.canvas.mask_brush import LEAST_SIZE, MOST_SIZE, MaskBrush, Mode
from explorer_app.window.controls.fitting_row import FittingRow
from explorer_app.window.controls.named_box import NamedBox
from explorer_app.window.controls.row_range_picker import RowRangeButton, RowRangePicker
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.slider_row import SliderRow, below
from explorer_app.window.look import theme
from gpu_backend import RowRange, default_drag_rows

_MODES = (
    ("points", "Points", "Drag points of the picture."),
    ("freeze", "Freeze", "Paint what stays as it is while points are dragged."),
    ("thaw", "Thaw", "Paint what may change again."),
)
_STROKES = (
    ("freeze", "Paint", "Paint where the second picture of the blend shows."),
    ("thaw", "Erase", "Erase where the second picture shows."),
)
_BLOCKS = (16, 32, 64, 128)
_ONE_LINE_PX = 860
_LOW_PX = 290
"""Below this height of canvas and bar together, several lines would leave no room for the picture."""
_FREEZE_TIPS = "Invert: freeze what is free, thaw what is frozen.", "Thaw everything."
_BLEND_TIPS = (
    "Invert the mask: the second picture shows where it did not.",
    "Clear the mask: the second picture shows nowhere.",
)
"""Of the buttons that invert and clear a mask."""
_WITH_BLOCKS = ("StyleGAN1", "StyleGAN2")
"""Families whose features have the resolutions of their rows."""


class DragBar(QWidget):
    """Settings of dragging; hidden while the tool is off.

    Signals
    -------
    left()
        The button that leaves the tool.

    Attributes
    ----------
    take_key
        Handles a key that no control of the bar uses, and returns whether it did; None for none. The line below the
        picture promises the tool's keys, and a press on the bar takes the focus from the canvas.
    """

    left = Signal()

    def __init__(self, drag: PointDrag, brush: MaskBrush, engine: Engine, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drag = drag
        self._brush = brush
        self._engine = engine
        self._resolutions: tuple[int, ...] = ()
        self.take_key: Callable[[QKeyEvent], bool] | None = None
        self.setAccessibleName("Dragging points")
        self.modes = SegmentedControl(_MODES, "Tool of the pointer")
        self.modes.chosen.connect(lambda mode: brush.set_mode(cast("Mode", mode)))
        self.strokes = SegmentedControl(_STROKES, "Mode of the brush")
        self.strokes.chosen.connect(lambda mode: brush.set_mode(cast("Mode", mode)))
        self.rows_label = QLabel("Rows")
        theme.set_role(self.rows_label, "dim")
        self.rows = RowRangeButton()
        self.rows.clicked.connect(self._pick_rows)
        self.picker = RowRangePicker(self)
        self.picker.rows_chosen.connect(drag.set_rows)
        self.block = NamedBox("Features that are compared")
        self.block.setToolTip(
            "Resolution of the features that are compared: a finer one follows more precisely, but each step takes "
            "longer. Automatic chooses the finest that is fast enough on this device."
        )
        self.block.activated.connect(lambda _: drag.set_block(self.block.currentData()))
        self.reconstruct = SliderRow(
            "Reconstruct",
            0.0,
            1.0,
            widest="0.00",
            label_px=78,
            tip="fades the edit: 1 is the picture before it.",
        )
        self.reconstruct.setAccessibleName("Reconstruct")
        self.reconstruct.setMinimumWidth(theme.px(180))
        self.reconstruct.setMaximumWidth(theme.px(340))
        self.reconstruct.moved.connect(lambda amount, final: drag.fade(1.0 - amount, final))
        self.reconstruct.cancelled.connect(drag.cancel_fade)
        self.brush_size = self._brush_row(
            "Size", LEAST_SIZE, MOST_SIZE, brush.size, "diameter of the brush in widths of the picture."
        )
        self.brush_size.moved.connect(lambda size, _: brush.set_size(size))
        self.softness = self._brush_row("Soft edge", 0.0, 1.0, brush.softness, "fraction of the brush that fades out.")
        self.softness.moved.connect(lambda softness, _: brush.set_softness(softness))
        self.invert = self._button("Invert", _FREEZE_TIPS[0])
        self.invert.clicked.connect(lambda _=False: brush.invert())
        self.clear_mask = self._button("Clear mask", _FREEZE_TIPS[1])
        self.clear_mask.clicked.connect(lambda _=False: brush.clear())
        self.keys = self._button(
            "Stroke to keys", "Record the last stroke as keys of the timeline, from the playhead on, at its own speed."
        )
        self.keys.clicked.connect(lambda _=False: drag.keep_as_keys())
        self.clear = self._button("Clear points", "Remove all handles and pins; the picture stays.")
        self.clear.clicked.connect(lambda _=False: drag.clear())
        self.close_button = self._button("Done", "Leave the tool (Escape).")
        self.close_button.clicked.connect(lambda _=False: self.left.emit())
        self._lines = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._lines.setContentsMargins(theme.MARGIN, theme.px(4), theme.px(4), theme.px(4))
        self._lines.setSpacing(theme.px(6))
        self._settings = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._choices, self._buttons = QHBoxLayout(), QHBoxLayout()
        self._amounts = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        for line in (self._settings, self._choices, self._amounts, self._buttons):
            line.setSpacing(theme.px(8))
        self._lines.addLayout(self._settings)
        self._lines.addLayout(self._buttons)
        self._settings.addLayout(self._choices)
        self._settings.addLayout(self._amounts, 1)
        modes, choices = (self.modes, self.strokes), (self.rows, self.block)
        amounts = (self.reconstruct, self.brush_size, self.softness)
        buttons = (self.keys, self.clear, self.invert, self.clear_mask)
        self._amount_parts: tuple[QWidget, ...] = amounts
        self._parts: tuple[tuple[QBoxLayout, tuple[QWidget, ...]], ...] = (
            (self._choices, (*modes, self.rows_label, *choices)),
            (self._amounts, amounts),
            (self._buttons, (*buttons, self.close_button)),
        )
        """The parts of each line."""
        self._one_line = FittingRow(
            (*modes, *choices, *amounts, None, *buttons, self.close_button),
            (*buttons, *amounts, *choices),
            self,
            edge_px=0,
        )
        """Has all parts where several lines would leave no room for the picture."""
        self._lines.addWidget(self._one_line)
        self._is_low = False
        self._fill_lines()
        self._point_parts: tuple[QWidget, ...] = (*choices, self.reconstruct, self.keys, self.clear)
        self._brush_parts: tuple[QWidget, ...] = (self.brush_size, self.softness, self.invert, self.clear_mask)
        drag.changed.connect(self._show)
        brush.changed.connect(self._show)
        engine.model_changed.connect(self._show_model)
        self._show_model()
        self.hide()

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a width that every canvas has: the bar must not make the panels beside it narrower."""
        return QSize(theme.px(200), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the lines to the width."""
        self._arrange()
        super().resizeEvent(event)

    def moveEvent(self, event: QMoveEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the lines to the height of the canvas, below which the bar is."""
        self._arrange()
        super().moveEvent(event)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the lines to the height of the canvas, which counts while the bar is to be seen."""
        self._arrange()
        super().showEvent(event)

    def _fill_lines(self) -> None:
        """Put the parts into their lines; the buttons are at the right."""
        self._one_line.hide()
        for line, parts in self._parts:
            while line.count():
                line.takeAt(0)
            if line is self._buttons:
                line.addStretch(1)
            for part in parts:
                line.addWidget(part, int(line is self._amounts))
            if line is not self._buttons:
                line.addStretch(1)

    def _arrange(self) -> None:
        """Use two lines if one is too narrow, three if the settings do not fit into one of these, and fewer labels.

        Where the sliders do not fit beside each other, they are below each other.

        Beside a low canvas and on a low screen there is one line, and a popup for what does not fit into it.
        """
        around = self.parentWidget() if self.isVisible() else None
        is_low = theme.is_on_low_screen(self) or (around is not None and around.height() < theme.px(_LOW_PX))
        if is_low != self._is_low and not self._one_line.is_open:
            self._is_low = is_low
            if is_low:
                self._one_line.take_controls()
                self._one_line.show()
            else:
                self._fill_lines()
        absent, ways = self._absent(), QBoxLayout.Direction
        if self._is_low:
            self._lines.setDirection(ways.TopToBottom)
            self.rows_label.hide()
            self._one_line.set_absent(absent)
            return
        for _, parts in self._parts:
            for part in parts:
                if part is not self.rows_label:
                    part.setVisible(part not in absent)
        is_narrow = self.width() < theme.px(_ONE_LINE_PX)
        self._lines.setDirection(ways.TopToBottom if is_narrow else ways.LeftToRight)
        margins = self._lines.contentsMargins()
        room = self.width() - margins.left() - margins.right() - self._settings.spacing()
        label = self.rows_label.sizeHint().width() + self._choices.spacing() if self.rows_label.isHidden() else 0
        has_room = self._choices.sizeHint().width() + label <= room
        self.rows_label.setVisible(has_room and self._brush.mode == "points")  # the button says what it is for
        # Not of the items of the layout: Python would keep those that Qt deletes when their parts change lines, and
        # would take Qt's next objects at their addresses for them.
        amounts = [part.minimumWidth() for part in self._amount_parts if part not in absent]
        beside = sum(amounts) + self._amounts.spacing() * len(amounts)
        self._amounts.setDirection(ways.TopToBottom if beside > room else ways.LeftToRight)
        needed = self._choices.minimumSize().width() + beside
        self._settings.setDirection(ways.TopToBottom if needed > room else ways.LeftToRight)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Offer a key that no control of the bar uses to the tool."""
        if self.take_key is None or not self.take_key(event):
            super().keyPressEvent(event)

    def _brush_row(self, name: str, low: float, high: float, reset: float, tip: str) -> SliderRow:
        row = SliderRow(name, low, high, neutral=low, reset=reset, widest="0.00", label_px=60, snap=0.05, tip=tip)
        row.setAccessibleName(name)
        row.setMinimumWidth(theme.px(150))
        row.setMaximumWidth(theme.px(260))
        return row

    def _button(self, text: str, tip: str) -> QPushButton:
        button = QPushButton(text)
        button.setAccessibleName(text)
        button.setToolTip(tip)
        return button

    @Slot()
    def _show_model(self) -> None:
        facts = self._engine.model.facts
        self._resolutions = () if facts is None else facts.row_resolutions
        self.block.clear()
        self.block.addItem("Automatic", None)
        if facts is not None and facts.family in _WITH_BLOCKS:
            for side in _BLOCKS:
                if side in self._resolutions:
                    self.block.addItem(f"{side} × {side}", side)
        self._show()

    @Slot()
    def _show(self) -> None:
        drag, brush = self._drag, self._brush
        for control in (self.modes, self.strokes):
            control.show_choice(brush.mode)
        self.setAccessibleName("Mask of a blend" if brush.is_for_blend else "Dragging points")
        invert, clear = _BLEND_TIPS if brush.is_for_blend else _FREEZE_TIPS
        self.invert.setToolTip(invert)
        self.clear_mask.setToolTip(clear)
        for row, amount in ((self.brush_size, brush.size), (self.softness, brush.softness)):
            if not row.slider.is_held:
                row.show_amount(round(amount, 3))
        self.clear_mask.setEnabled(brush.mask is not None)
        if self._resolutions:
            self.rows.show_rows(self._shown_rows(), self._resolutions, "Dragging")
        self.block.setCurrentIndex(max(0, self.block.findData(drag.block)))
        share = drag.share
        self.reconstruct.setEnabled(share is not None)
        if not self.reconstruct.slider.is_held:
            self.reconstruct.show_amount(0.0 if share is None else round(1.0 - share, 4))
        self.keys.setEnabled(drag.has_stroke)
        self.clear.setEnabled(bool(drag.points))
        self._arrange()

    def _absent(self) -> tuple[QWidget, ...]:
        """Return the parts that do not apply to the tool of the pointer."""
        brush = self._brush
        modes = self.modes if brush.is_for_blend else self.strokes
        return modes, *(self._brush_parts if brush.mode == "points" else self._point_parts)

    def _shown_rows(self) -> RowRange:
        return self._drag.rows or default_drag_rows(self._resolutions)

    def _pick_rows(self) -> None:
        if self._resolutions:
            self.picker.open_for("Dragging", self._shown_rows(), self._resolutions, below(self.rows))
