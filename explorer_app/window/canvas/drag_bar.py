"""The bar below the canvas while points are dragged: what may change, how much of the edit shows, what it becomes."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QWidget

from explorer_app.controller import Engine, PointDrag
from explorer_app.window.controls.slider_row import SliderRow, below
from explorer_app.window.look import theme
from explorer_app.window.sliders.row_range_picker import RowRangeButton, RowRangePicker
from gpu_backend import RowRange, default_drag_rows

_BLOCKS = (16, 32, 64, 128)
_WITH_BLOCKS = ("StyleGAN1", "StyleGAN2")
"""Families whose features have the resolutions of their rows."""


class DragBar(QWidget):
    """Settings of dragging; hidden while the tool is off.

    Signals
    -------
    left()
        The button that leaves the tool.
    """

    left = Signal()

    def __init__(self, drag: PointDrag, engine: Engine, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drag = drag
        self._engine = engine
        self._resolutions: tuple[int, ...] = ()
        self.setAccessibleName("Dragging points")
        self.rows_label = QLabel("Rows")
        theme.set_role(self.rows_label, "dim")
        self.rows = RowRangeButton()
        self.rows.clicked.connect(self._pick_rows)
        self.picker = RowRangePicker(self)
        self.picker.rows_chosen.connect(drag.set_rows)
        self.block = QComboBox()
        self.block.setAccessibleName("Features that are compared")
        self.block.setToolTip(
            "Resolution of the features that are compared: a finer one follows more exactly, and takes longer a step. "
            "Automatic takes the finest that is fast enough here."
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
        self.reconstruct.setMinimumWidth(theme.px(200))
        self.reconstruct.setMaximumWidth(theme.px(340))
        self.reconstruct.moved.connect(lambda amount, final: drag.fade(1.0 - amount, final))
        self.reconstruct.cancelled.connect(drag.cancel_fade)
        self.keys = self._button(
            "Keep stroke as keys", "Put the last stroke on the timeline, from the playhead on and as quick as it was."
        )
        self.keys.clicked.connect(lambda _=False: drag.keep_as_keys())
        self.clear = self._button("Clear points", "Remove all handles and pins; the picture stays.")
        self.clear.clicked.connect(lambda _=False: drag.clear())
        self.close_button = self._button("Done", "Leave the tool (Escape).")
        self.close_button.clicked.connect(lambda _=False: self.left.emit())
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(4), theme.px(4), theme.px(4))
        layout.setSpacing(theme.px(8))
        for part in (self.rows_label, self.rows, self.block):
            layout.addWidget(part)
        layout.addWidget(self.reconstruct, 1)
        layout.addStretch(1)
        for button in (self.keys, self.clear, self.close_button):
            layout.addWidget(button)
        drag.changed.connect(self._show)
        engine.model_changed.connect(self._show_model)
        self._show_model()
        self.hide()

    def _button(self, text: str, tip: str) -> QPushButton:
        button = QPushButton(text)
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
        drag = self._drag
        if self._resolutions:
            self.rows.show_rows(self._shown_rows(), self._resolutions, "Dragging")
        self.block.setCurrentIndex(max(0, self.block.findData(drag.block)))
        share = drag.share
        self.reconstruct.setEnabled(share is not None)
        if not self.reconstruct.slider.is_held:
            self.reconstruct.show_amount(0.0 if share is None else round(1.0 - share, 4))
        self.keys.setEnabled(drag.has_stroke)
        self.clear.setEnabled(bool(drag.points))

    def _shown_rows(self) -> RowRange:
        return self._drag.rows or default_drag_rows(self._resolutions)

    def _pick_rows(self) -> None:
        if self._resolutions:
            self.picker.open_for("Dragging", self._shown_rows(), self._resolutions, below(self.rows))
