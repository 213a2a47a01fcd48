"""The dialog that searches for the fastest tiles on this GPU: time limit, progress and results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.share_bar import ShareBar
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme
from explorer_app.window.performance.result_table import ResultTable

if TYPE_CHECKING:
    from explorer_app.controller import TuningState
    from gpu_backend import TileFinding, TileProgress

_MINUTES = 5
_MOST_MINUTES = 60
_COLUMNS = ("Convolution", "Before", "After", "Gain")
_ABOUT = (
    "Times the ways to run each convolution of this network on {gpu}, checks the fastest against a plain kernel, and "
    "keeps it for every later start. Pictures come first: the search pauses while anything moves."
)


class TuneDialog(QDialog):
    """Starts a tuning and shows its progress. The search continues when the dialog is closed.

    Signals
    -------
    start_requested(float)
        Tune for about this many seconds.
    stop_requested()
        End the search and keep what was found.
    """

    start_requested = Signal(float)
    stop_requested = Signal()

    def __init__(self, gpu: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Tune for this GPU")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        about = WrappedLabel(_ABOUT.format(gpu=gpu), self)
        theme.set_role(about, "dim")
        self.minutes = NumberField(1, _MOST_MINUTES, decimals=0, step=1, widest="60")
        self.minutes.setAccessibleName("Minutes")
        self.minutes.setToolTip(f"Longest search, 1 to {_MOST_MINUTES} minutes; a longer one finds faster tiles.")
        self.minutes.show_number(_MINUTES)
        self.table = ResultTable(_COLUMNS, "Convolutions")
        self.table.setMinimumHeight(theme.px(220))
        self.progress = ElidedLabel("", self)
        theme.set_role(self.progress, "dim")
        self.prediction = ElidedLabel("", self)
        theme.set_role(self.prediction, "caption")
        self.bar = ShareBar("Tuning")
        self.start = QPushButton("Tune")
        theme.set_role(self.start, "main")
        self.start.setDefault(True)
        self.stop = QPushButton("Stop")
        self.stop.setToolTip("End the search and keep what was found.")
        self.close_button = QPushButton("Close")
        self.close_button.setToolTip("Close this dialog; the search continues in the background.")

        line = QHBoxLayout()
        line.setSpacing(theme.px(8))
        label = QLabel("Minutes")
        theme.set_role(label, "dim")
        line.addWidget(label)
        line.addWidget(self.minutes)
        line.addStretch(1)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        for button in (self.close_button, self.stop, self.start):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        edge = theme.px(16)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(10))
        layout.addWidget(about)
        layout.addLayout(line)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.prediction)
        layout.addWidget(self.progress)
        layout.addWidget(self.bar)
        layout.addLayout(buttons)
        self.setMinimumWidth(theme.px(480))
        self.start.clicked.connect(self._start)
        self.stop.clicked.connect(self.stop_requested)
        self.close_button.clicked.connect(self.accept)

    def show_state(self, state: TuningState, *, is_on_gpu: bool) -> None:
        """Show progress and findings; without a GPU no search can start."""
        is_running = state.share is not None
        self.bar.setVisible(is_running)
        self.bar.show_share(state.share or 0.0)
        self.minutes.setEnabled(not is_running)
        self.start.setVisible(not is_running)
        self.start.setEnabled(is_on_gpu)
        self.stop.setVisible(is_running)
        self.stop.setEnabled(not state.is_stopping)
        self.progress.setText(_status_text(state))
        quality = state.quality if state.quality is not None and state.quality.is_judged else None
        self.prediction.setText(f"Prediction of times: {quality.phrase}" if quality is not None else "")
        self.prediction.setVisible(quality is not None)
        self.prediction.setToolTip(quality.sentence if quality is not None else "")
        if len(state.findings) < self.table.rowCount():
            self.table.clear_rows()
        for finding in state.findings[self.table.rowCount() :]:
            self._add(finding)

    def _add(self, finding: TileFinding) -> None:
        before = f"{finding.before_us:.1f} us" if math.isfinite(finding.before_us) else "–"
        gain = f"{finding.before_us / finding.time_us:.2f} x" if math.isfinite(finding.before_us) else ""
        tip = f"{finding.tried} of {finding.candidates} tiles were timed; the fastest was number {finding.trials}."
        if finding.predicted_us is not None:
            tip += f" Predicted before the search: {finding.predicted_us:.1f} us."
        self.table.add((finding.shape.title, before, f"{finding.time_us:.1f} us", gain), tip)

    @Slot()
    def _start(self) -> None:
        self.minutes.interpretText()
        self.start_requested.emit(60.0 * self.minutes.value())


def _status_text(state: TuningState) -> str:
    """Return one line: the convolution that is timed, or the result."""
    if state.is_stopping:
        return "Stopping after this tile."
    if state.share is not None:
        return "Reading the network." if state.progress is None else _progress_text(state.progress)
    if not state.findings:
        return ""
    return f"{len(state.gains)} of {len(state.findings)} convolutions are faster than before."


def _progress_text(progress: TileProgress) -> str:
    best = f", best {progress.best_us:.1f} us" if math.isfinite(progress.best_us) else ""
    tried = f"{progress.tried} of {progress.candidates} tiles timed{best}" if progress.candidates else "listing tiles"
    return f"{progress.number} of {progress.shapes}: {progress.shape.title}: {tried}"
