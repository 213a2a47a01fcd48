"""The dialog that trains the encoder of a model."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer_app.controller import LearningState
from explorer_app.window.dialogs.learn_pictures import LearnPictures
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import EncoderReport
from tests.helpers.fake_controller import FakeController
from tests.helpers.windows import calls, dialog_of


def test_a_training_is_started_watched_and_stopped(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    window.actions_by_key["learn-pictures"].trigger()
    dialog = dialog_of(window, LearnPictures)
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert calls(controller, "learn") == [("learn",)]
    show = controller.learning.show
    show(LearningState(is_running=True))
    assert dialog.progress.text() == "Preparing the training."
    show(LearningState(is_running=True, report=EncoderReport(0, 3000, 48, math.nan, 0.01)))
    assert dialog.progress.text() == "Rendering the first pictures: 48."
    show(LearningState(is_running=True, report=EncoderReport(300, 3000, 900, 0.624, 0.2), seconds_left=150.0))
    assert dialog.progress.text() == "Step 300 of 3,000, 900 pictures, error 0.62 (1 is a guess), 3 minutes left"
    assert dialog.bar.value() == 200
    learning_scales = EncoderReport(3000, 3000, 8192, 0.1, 0.93, probes=64, most_probes=300)
    show(LearningState(is_running=True, report=learning_scales))
    assert dialog.progress.text() == "Measuring scales of searches: 64 of 300 passes."
    qtbot.mouseClick(dialog.stop, Qt.MouseButton.LeftButton)
    assert calls(controller, "stop_learning") == [("stop_learning",)]
    show(LearningState(is_running=True, is_stopping=True))
    assert not dialog.stop.isEnabled()
    show(LearningState(kept=Path("/models/hills.encoder.safetensors")))
    assert dialog.progress.text() == "Kept as hills.encoder.safetensors."
    assert dialog.start.isVisibleTo(dialog)
