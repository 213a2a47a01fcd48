"""What each optimisation gains on this device: the tab Ladder of the performance panel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

import gpu_backend
from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.share_bar import ShareBar
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme
from explorer_app.window.performance.figure import milliseconds
from explorer_app.window.performance.result_table import ResultTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from explorer_app.controller import LadderState
    from gpu_backend import RungResult

_ABOUT = (
    "Renders this network as plain code first, then with one optimisation after the other. Pictures come first: the "
    "measurement pauses while anything moves."
)
_COLUMNS = ("Optimisation", "ms", "Gain", "In all", "Difference", "PSNR", "J")
_TIPS = (
    "Each row adds this to the row above.",
    "Median milliseconds per image, on the device.",
    "Speedup over the row above.",
    "Speedup over the first row.",
    "Largest difference of a pixel value (0 to 255) from the first row's picture.",
    "Peak signal-to-noise ratio to the first row's picture, in decibels; empty where they are equal.",
    "Joules per image: the energy of the whole GPU, idle power included.",
)
_ENERGY = 6


class LadderView(QWidget):
    """Starts the measurement and shows its rows.

    Signals
    -------
    start_requested()
        Measure.
    stop_requested()
        End the measurement and keep the rows so far.
    """

    start_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: Sequence[RungResult] = ()
        about = WrappedLabel(_ABOUT, self)
        theme.set_role(about, "dim")
        self.table = ResultTable(_COLUMNS, "Ladder", self, least_px=44)
        self.table.explain(_TIPS)
        self.table.setColumnHidden(_ENERGY, True)
        self.subject = ElidedLabel("", self)
        self.progress = ElidedLabel("", self)
        for label in (self.subject, self.progress):
            theme.set_role(label, "dim")
        self.bar = ShareBar("Ladder", self)
        self.start = QPushButton("Measure", self)
        self.start.setToolTip("Measure each row on the device that renders; takes about a minute.")
        self.stop = QPushButton("Stop", self)
        self.stop.setToolTip("End the measurement and keep the rows so far.")
        line = QHBoxLayout()
        line.setSpacing(theme.px(8))
        line.addWidget(self.progress, 1)
        line.addWidget(self.stop)
        line.addWidget(self.start)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(8))
        layout.addWidget(about)
        layout.addWidget(self.subject)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.bar)
        layout.addLayout(line)
        self.start.clicked.connect(self.start_requested)
        self.stop.clicked.connect(self.stop_requested)

    def show_state(self, state: LadderState, *, can_start: bool) -> None:
        """Show progress and rows; `can_start` says whether a model is open."""
        self.bar.setVisible(state.is_running)
        self.bar.show_share(0.0 if state.progress is None else state.progress.share)
        shown, hidden = (self.stop, self.start) if state.is_running else (self.start, self.stop)
        self.start.setEnabled(can_start)
        self.stop.setEnabled(not state.is_stopping)
        shown.show()  # first, since the focus goes there from the other one
        hidden.hide()
        self.progress.setText(_progress_text(state))
        self.subject.setText(f"{state.model}, {state.device}" if state.model else "")
        self.subject.setVisible(bool(state.model))
        if state.found[: len(self._shown)] != tuple(self._shown):
            self.table.clear_rows()
            self._shown = ()
        for place in range(len(self._shown), len(state.found)):
            self.table.add(*_row(state.found, place))
        self._shown = state.found
        self.table.setColumnHidden(_ENERGY, all(climbed.image_j is None for climbed in state.found))


def _row(found: Sequence[RungResult], place: int) -> tuple[list[str], str]:
    """Return the texts of a row, and its tooltip."""
    climbed, rung = found[place], found[place].rung
    name = rung.what if place == 0 else f"+ {rung.what}"
    what = f"{rung.what}: {rung.precision}, batch {rung.batch}"
    if climbed.problem:
        return [name, climbed.problem], f"{what}. Not measured: {climbed.problem}"
    gains = gpu_backend.gains_of(found, place)
    texts = [f"{gain:.2f} x" for gain in gains] if gains else ["", ""]
    energy = "" if climbed.image_j is None else f"{climbed.image_j:.3g}"
    ratio = "" if math.isinf(climbed.psnr_db) else f"{climbed.psnr_db:.1f}"
    figures = [milliseconds(climbed.image_ms), *texts, str(climbed.largest_difference), ratio, energy]
    return [name, *figures], f"{what}, median of {climbed.runs} runs"


def _progress_text(state: LadderState) -> str:
    if state.is_stopping:
        return "Stopping."
    if not state.is_running:
        return ""
    progress = state.progress
    if progress is None or progress.rung is None:
        return "Reading the network."
    return f"{'Compiling' if progress.is_compiling else 'Measuring'}: {progress.rung.what}"
