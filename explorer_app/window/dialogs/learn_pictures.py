"""The dialog that trains the model's encoder and shows the progress."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from explorer_app.window.controls.share_bar import ShareBar
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme

if TYPE_CHECKING:
    from explorer_app.controller import LearningState

_ABOUT = (
    "Trains a small network, the encoder, on pictures of this model's random latents, and saves it beside the model, "
    "of the bundled one in your own folder. "
    "Searches for photos (File > From a picture) then start nearer to the photo. Another training continues from it. "
    "Pictures come first: the training pauses while anything moves."
)


class LearnPictures(QDialog):
    """Starts a training and shows its progress. The training continues when the dialog is closed.

    Signals
    -------
    start_requested(), stop_requested()
        Train; end the training and keep the best encoder so far.
    """

    start_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Learn to read pictures")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        about = WrappedLabel(_ABOUT, self)
        about.setMinimumHeight(6 * self.fontMetrics().lineSpacing())
        theme.set_role(about, "dim")
        self.progress = WrappedLabel("", self)
        self.progress.setMinimumHeight(2 * self.fontMetrics().lineSpacing())
        self.bar = ShareBar("Progress of the training")
        self.start = QPushButton("Train")
        theme.set_role(self.start, "main")
        self.start.setDefault(True)
        self.stop = QPushButton("Stop and keep")
        self.stop.setToolTip("End the training; the best encoder so far is kept.")
        self.close_button = QPushButton("Close")
        self.close_button.setToolTip("Close this dialog; the training continues in the background.")
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        for button in (self.close_button, self.stop, self.start):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        edge = theme.px(16)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(10))
        layout.addWidget(about)
        layout.addStretch(1)
        layout.addWidget(self.progress)
        layout.addWidget(self.bar)
        layout.addLayout(buttons)
        self.setMinimumWidth(theme.px(440))
        self.start.clicked.connect(lambda _=False: self.start_requested.emit())
        self.stop.clicked.connect(lambda _=False: self.stop_requested.emit())
        self.close_button.clicked.connect(self.accept)

    def show_state(self, state: LearningState) -> None:
        """Show the progress, or what was kept."""
        self.bar.setVisible(state.is_running)
        self.bar.show_share(0.0 if state.report is None else state.report.share)
        self.start.setVisible(not state.is_running)
        self.stop.setVisible(state.is_running)
        self.stop.setEnabled(not state.is_stopping)
        self.progress.setText(_status_text(state))


def _status_text(state: LearningState) -> str:
    """Return one line: steps, error and time left, or where the encoder is."""
    if state.is_stopping:
        return "Stopping after this step."
    report = state.report
    if state.is_running:
        if report is None:
            return "Preparing the training."
        if report.step == 0:
            return f"Rendering the first pictures: {report.pictures:,}."
        if report.probes:
            return f"Measuring scales of searches: {report.probes:,} of {report.most_probes:,} passes."
        text = f"Step {report.step:,} of {report.steps:,}, {report.pictures:,} pictures"
        if math.isfinite(report.error):
            text += f", error {report.error:.2f} (1 is a guess)"
        return text if state.seconds_left is None else f"{text}, {_duration(state.seconds_left)} left"
    return "" if state.kept is None else f"Kept as {state.kept.name}."


def _duration(seconds: float) -> str:
    """Return minutes, since the pace changes from step to step."""
    minutes = math.ceil(seconds / 60.0)
    return "a minute" if minutes <= 1 else f"{minutes} minutes"
