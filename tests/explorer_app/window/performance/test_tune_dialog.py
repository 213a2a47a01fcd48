"""The dialog that tunes for this GPU."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer_app.controller import DeviceState, TuningState
from explorer_app.window.performance.tune_dialog import TuneDialog
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import PredictionQuality, TileProgress
from tests.helpers.fake_controller import FakeController, FakeDevice
from tests.helpers.fake_renderer import finding
from tests.helpers.windows import calls, dialog_of

GPU = FakeDevice("cuda:0", "NVIDIA H200", "fp16")


def on_gpu(controller: FakeController) -> None:
    controller.show_devices(replace(DeviceState(), devices=(GPU,), device=GPU))


def test_tuning_needs_a_gpu_that_renders(window: MainWindow, controller: FakeController) -> None:
    action = window.actions_by_key["tune"]
    assert not action.isEnabled()
    on_gpu(controller)
    assert action.isEnabled()
    action.trigger()
    dialog = dialog_of(window, TuneDialog)
    assert dialog.start.isEnabled()
    controller.show_devices(replace(DeviceState(), device=FakeDevice()))
    assert not dialog.start.isEnabled()


def test_a_search_is_started_for_the_minutes_chosen_and_stopped(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    on_gpu(controller)
    window.actions_by_key["tune"].trigger()
    dialog = dialog_of(window, TuneDialog)
    dialog.minutes.show_number(7)
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert calls(controller, "tune") == [("tune", 420.0)]
    controller.tuning.show(TuningState(share=0.0))
    assert dialog.bar.isVisible()
    assert not dialog.start.isVisible()
    qtbot.mouseClick(dialog.stop, Qt.MouseButton.LeftButton)
    assert calls(controller, "stop_tuning")
    controller.tuning.show(TuningState(share=0.0, is_stopping=True))
    assert not dialog.stop.isEnabled()


def test_progress_and_findings_are_shown_as_they_come(window: MainWindow, controller: FakeController) -> None:
    on_gpu(controller)
    window.actions_by_key["tune"].trigger()
    dialog = dialog_of(window, TuneDialog)
    found = (finding(1), finding(2, gain=1.0))
    progress = TileProgress(found[1].shape, 2, 17, 40, 900, 12.3)
    controller.tuning.show(TuningState(share=0.25, progress=progress, findings=found[:1]))
    assert dialog.progress.text() == "2 of 17: conv 64 x 64, 512 to 16: 40 of 900 tiles timed, best 12.3 us"
    assert dialog.bar.value() == 250
    controller.tuning.show(TuningState(share=0.25, progress=replace(progress, candidates=0), findings=found[:1]))
    assert dialog.progress.text() == "2 of 17: conv 64 x 64, 512 to 16: listing tiles"
    assert dialog.prediction.isHidden()
    quality = PredictionQuality(shapes=9, timings=1200, r2=0.874, mean_error=0.081, trials=0.2)
    controller.tuning.show(TuningState(findings=found, quality=quality))
    assert dialog.prediction.text() == "Prediction of times: R² 0.87, mean error 8% on shapes left out"
    assert "the fastest tile after 20% of the trials" in dialog.prediction.toolTip()
    assert dialog.progress.text() == "1 of 2 convolutions are faster than before."
    cells = [[dialog.table.item(row, column).text() for column in range(4)] for row in range(2)]  # type: ignore[union-attr]
    assert cells == [
        ["conv 64 x 64, 512 to 8", "10.0 us", "5.0 us", "2.00 x"],
        ["conv 64 x 64, 512 to 16", "10.0 us", "10.0 us", "1.00 x"],
    ]
    controller.tuning.show(TuningState(share=0.0))
    assert dialog.table.rowCount() == 0, "a new search begins with an empty table"


def test_a_closed_dialog_is_not_updated(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    on_gpu(controller)
    window.actions_by_key["tune"].trigger()
    qtbot.mouseClick(dialog_of(window, TuneDialog).close_button, Qt.MouseButton.LeftButton)
    controller.tuning.show(TuningState(share=0.5))
    controller.show_devices(DeviceState())
    assert not any(dialog.isVisible() for dialog in window.findChildren(TuneDialog))
