"""The tab Ladder of the performance panel: rows, progress, buttons."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from explorer_app.controller import LadderState
from explorer_app.window.performance.ladder_view import LadderView
from explorer_app.window.performance.performance_panel import PerformancePanel
from gpu_backend import LadderShare, Rung
from tests.helpers.fake_renderer import climbed


@pytest.fixture
def view(qtbot: QtBot) -> LadderView:
    view = LadderView()
    qtbot.addWidget(view)
    return view


def texts(view: LadderView, row: int) -> list[str]:
    items = [view.table.item(row, column) for column in range(view.table.columnCount())]
    return ["" if item is None else item.text() for item in items]


def test_rows_have_times_gains_and_differences_and_energy_where_it_is_known(view: LadderView) -> None:
    found = (climbed(1), replace(climbed(2), psnr_db=48.13))
    view.show_state(LadderState(found=found, device="CPU", model="bundled"), can_start=True)
    assert texts(view, 0) == ["rung 1", "4.00", "", "", "0", "", ""]
    assert texts(view, 1) == ["+ rung 2", "2.00", "2.00 x", "2.00 x", "1", "48.1", ""]
    assert view.table.isColumnHidden(6)
    view.show_state(LadderState(found=(*found, climbed(3, image_j=0.1234))), can_start=True)
    assert texts(view, 2) == ["+ rung 3", "1.00", "2.00 x", "4.00 x", "2", "", "0.123"]
    assert not view.table.isColumnHidden(6)
    view.show_state(LadderState(found=(climbed(2),)), can_start=True)
    assert view.table.rowCount() == 1, "another ladder"


def test_a_rung_that_was_not_measured_says_why_across_the_row(view: LadderView) -> None:
    view.show_state(LadderState(found=(climbed(1), climbed(2, "out of memory"))), can_start=True)
    assert texts(view, 1)[:2] == ["+ rung 2", "out of memory"]
    assert view.table.columnSpan(1, 1) == 6


def test_buttons_follow_the_run(view: LadderView) -> None:
    pressed: list[str] = []
    view.start_requested.connect(lambda: pressed.append("start"))
    view.stop_requested.connect(lambda: pressed.append("stop"))
    view.show_state(LadderState(), can_start=False)
    assert not view.start.isEnabled()
    view.show_state(LadderState(), can_start=True)
    view.start.click()
    progress = LadderShare(0.5, Rung("half precision", "fp16"), is_compiling=True)
    view.show_state(LadderState(is_running=True, progress=progress), can_start=True)
    assert view.start.isHidden()
    assert (view.bar.value(), view.progress.text()) == (500, "Compiling: half precision")
    view.stop.click()
    view.show_state(LadderState(is_running=True, is_stopping=True), can_start=True)
    assert not view.stop.isEnabled()
    assert pressed == ["start", "stop"]


def test_the_tab_takes_the_place_of_the_kernels_in_measure_alone(qtbot: QtBot) -> None:
    panel = PerformancePanel()
    qtbot.addWidget(panel)
    assert panel.tabs.isHidden()
    panel.show_ladder(LadderState(found=(climbed(1),)))
    panel.set_has_model(True)
    panel.set_compact(False)
    assert not panel.tabs.isHidden()
    panel.tabs.segments["ladder"].click()
    assert not panel.ladder.isHidden()
    assert panel.ladder.table.rowCount() == 1
    assert panel.ladder.start.isEnabled()
    assert panel.fast_path.isHidden()
    assert panel.empty.isHidden()
    panel.set_compact(True)
    assert panel.ladder.isHidden()
    assert not panel.fast_path.isHidden()
