"""The performance panel in the window: what the controller knows is shown, what a person wants is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from explorer_app.controller.device_state import Compiling
from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.performance.performance_link import COLUMNS_CHOICE
from explorer_app.window.performance.step_columns import KEYS
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Comparison, MemoryFacts, RenderOptions
from tests.helpers.fake_controller import FakeController, FakeDevice
from tests.helpers.kernel_costs import ROOFLINE, gpu_steps, timed_frame
from tests.helpers.windows import Make, calls, dialog_of, lay_out, without_model

GPU = FakeDevice("cuda:0", "Loom 9000", "fp16", "Loom 9000: it is the first GPU.", 150 << 30, roofline=ROOFLINE)
MEMORY = MemoryFacts(weights=100_000_000, plans=200_000_000, pinned=10_000_000)


def on_gpu(controller: FakeController) -> None:
    controller.show_devices(replace(controller.engine.devices.state, device=GPU, memory=MEMORY))
    controller.engine.preview.statistics.clear()
    controller.engine.preview.statistics.frame_arrived(timed_frame(1.0, device_ms=0.45), 0.0)
    controller.engine.preview.statistics.frame_arrived(timed_frame(1.4, gpu_steps(), device_ms=0.44), 0.1)
    controller.engine.preview.statistics_changed.emit()


def test_a_gpu_that_takes_over_brings_its_columns_its_roofline_and_its_memory(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    panel = window.performance
    assert not panel.fast_path.graph.isEnabled()
    on_gpu(controller)
    qtbot.waitUntil(lambda: "roofline" in panel.table.steps.known)
    assert panel.fast_path.graph.isEnabled()
    assert "310" in panel.kernels.memory.toolTip()
    controller.show_devices(replace(controller.engine.devices.state, device=FakeDevice(), memory=None))
    assert not panel.fast_path.graph.isEnabled()
    assert panel.kernels.memory.text() == ""


def test_while_kernels_compile_the_panel_shows_how_many_are_done(
    window: MainWindow, controller: FakeController
) -> None:
    controller.show_devices(replace(controller.engine.devices.state, compiling=Compiling(9, 14)))
    assert "9 of 14" in window.performance.kernels.state.text()
    controller.show_devices(replace(controller.engine.devices.state, compiling=None))
    assert "of 14" not in window.performance.kernels.state.text()
    on_gpu(controller)
    controller.show_devices(replace(controller.engine.devices.state, compiling=Compiling(0, 14)))
    device = controller.engine.devices.state.device
    assert device is not None
    assert f"{device.name} ({device.precision})" in window.performance.kernels.state.toolTip(), "it goes on meanwhile"


def test_counters_of_a_gpu_are_measured_in_measure_and_the_button_waits_for_the_end(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    panel = window.performance
    assert panel.counters.isHidden(), "the CPU has none"
    on_gpu(controller)
    assert panel.counters.isHidden(), "the compact panel has no room for their columns"
    panel.set_compact(False)
    assert not panel.counters.isHidden()
    qtbot.mouseClick(panel.counters, Qt.MouseButton.LeftButton)
    assert len(calls(controller, "measure_counters")) == 1
    assert (panel.counters.isEnabled(), panel.counters.text()) == (False, "Measuring counters…")
    controller.engine.show_counting(False)
    assert (panel.counters.isEnabled(), panel.counters.text()) == (True, "Measure counters")
    panel.tabs.segments["ladder"].click()
    assert panel.counters.isHidden()


def test_switches_ask_the_controller_and_show_what_comparing_brought(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    on_gpu(controller)
    panel = window.performance.fast_path
    qtbot.mouseClick(panel.fused, Qt.MouseButton.LeftButton)
    assert calls(controller, "set_render_options") == [("set_render_options", RenderOptions(True, False))]
    assert len(calls(controller, "compare")) == 1
    assert not panel.compare.isEnabled()
    controller.engine.show_comparison(Comparison(0.45, 1.32, 0.45, 9.8, 1, 0.02))
    assert panel.compare.isEnabled()
    assert "1 / 255" in panel.difference.text()
    assert not panel.fused.isChecked()
    controller.show_devices(replace(controller.engine.devices.state, memory=replace(MEMORY, plans=1)))
    assert "1 / 255" in panel.difference.text()


@without_model
def test_nothing_is_compared_before_a_model_is_open(window: MainWindow) -> None:
    assert not window.performance.fast_path.compare.isEnabled()


def test_the_compact_panel_leads_to_measure_which_shows_the_roofline(
    window: MainWindow, controller: FakeController
) -> None:
    lay_out(window, 1600, 980)
    on_gpu(controller)
    window.performance.measure.click()
    for _ in range(3):
        QApplication.processEvents()
    assert window.workspace.name == "measure"
    assert window.performance.roofline.isVisible()
    assert window.performance.measure.isHidden()


@pytest.mark.usefixtures("each_font")
@pytest.mark.parametrize(("width", "height"), [(1600, 980), (1280, 720)])
def test_time_and_occupancy_of_each_kernel_are_seen_in_the_default_layout(
    window: MainWindow, controller: FakeController, width: int, height: int
) -> None:
    lay_out(window, width, height)
    on_gpu(controller)
    for _ in range(3):
        QApplication.processEvents()
    window.performance._show_all()
    table = window.performance.table
    assert table.isVisible()
    for key in ("time", "share", "occupancy", "roofline"):
        column = KEYS.index(key)
        assert not table.isColumnHidden(column), key
        assert table.columnViewportPosition(column) + table.columnWidth(column) <= table.viewport().width(), key
    assert table.rowHeight(0) * 3 <= table.viewport().height()


def test_chosen_columns_are_there_again_the_next_time(
    make: Make, controller: FakeController, settings: Settings
) -> None:
    first = make(controller)
    first.performance.table.show_steps(first.performance.table.steps.steps)
    on_gpu(controller)
    first.performance._show_steps()
    first.performance.table.horizontalHeader().customContextMenuRequested.emit(QPoint(4, 4))
    menu = first.performance.table.column_menu()
    next(action for action in menu.actions() if action.text() == "Spills").trigger()
    menu.close()
    popup = QApplication.activePopupWidget()
    assert popup is not None
    popup.close()
    assert "spills" in settings.values.choices[COLUMNS_CHOICE]
    first.close()
    second = make(FakeController())
    assert not second.performance.table.choice.is_automatic


# -- actions --------------------------------------------------------------------------------------------------------


def test_the_table_is_copied_as_csv_with_every_column(
    window: MainWindow, controller: FakeController, messages: MessageLog, qtbot: QtBot
) -> None:
    on_gpu(controller)
    window.performance._show_steps()
    QTest.keySequence(window.canvas, "Ctrl+Alt+C")
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 7
    assert lines[0].startswith(
        "layer,kernel,state,time_us,share,occupancy,achieved_occupancy,occupancy_limit,registers"
    )
    assert messages.messages[-1].sentence == "6 steps are on the clipboard, with all their columns."


def test_with_nothing_measured_copying_says_what_to_do(window: MainWindow, messages: MessageLog) -> None:
    window.actions_by_key["copy-steps"].trigger()
    assert "move the picture" in messages.messages[-1].sentence


def test_a_trace_is_saved_where_the_person_wants_it(
    window: MainWindow, controller: FakeController, tmp_path: Path
) -> None:
    window.actions_by_key["save-trace"].trigger()
    dialog = dialog_of(window, QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "drag.json"))
    dialog.close()
    assert calls(controller, "save_trace") == [("save_trace", tmp_path / "drag.json")]


@pytest.mark.parametrize("key", ["copy-steps", "save-trace"])
def test_both_actions_are_buttons_of_the_header_too(window: MainWindow, key: str) -> None:
    dock = next(dock for dock in window.workspace.docks if dock.objectName() == "performance-dock")
    assert window.actions_by_key[key] in [getattr(extra, "_action", None) for extra in dock.header._extras]


def test_input_events_of_the_window_tell_when_the_hand_moved(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    handle = window.windowHandle()
    QTest.mouseMove(handle, QPoint(300, 300))
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(300, 300))
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(300, 300))
    assert controller.engine.preview.input_ages
    assert all(0.0 <= age_s < 5.0 for age_s in controller.engine.preview.input_ages)
