"""The performance panel, with a fake timer behind it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.controller import Compiling
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.window.performance.figure import Figure, milliseconds, short_count, short_milliseconds
from explorer_app.window.performance.frame_plot import mark_for
from explorer_app.window.performance.performance_panel import PerformancePanel
from explorer_app.window.performance.step_columns import KEYS
from gpu_backend import RenderOptions
from tests.helpers.fake_controller import FakeController
from tests.helpers.fonts import widened
from tests.helpers.kernel_costs import ROOFLINE, gpu_statistics, gpu_steps, timed_frame
from tests.helpers.panels import press


@pytest.fixture
def panel(qtbot: QtBot) -> PerformancePanel:
    panel = PerformancePanel()
    qtbot.addWidget(panel)
    panel.resize(widened(420), 600)
    with qtbot.waitExposed(panel):
        panel.show()
    return panel


@pytest.fixture
def statistics(controller: FakeController) -> FrameStatistics:
    for total_ms in (10.0, 20.0, 30.0, 40.0):
        controller.engine.preview.frame_painted(controller.render(total_ms=total_ms))
    controller.render(measured=True)
    controller.engine.preview.statistics.dropped = 7
    return controller.engine.preview.statistics


@pytest.fixture
def gpu_panel(panel: PerformancePanel, qtbot: QtBot) -> PerformancePanel:
    panel.show_device(has_graph=True, roofline=ROOFLINE)
    panel.show_statistics(gpu_statistics(fallback=2))
    qtbot.waitUntil(lambda: panel.table.isVisible() and panel.overview.p50.value != "–")
    return panel


@pytest.mark.usefixtures("each_font")
def test_without_a_gpu_figures_plot_latency_and_the_processors_steps_are_shown(
    panel: PerformancePanel, statistics: FrameStatistics, qtbot: QtBot
) -> None:
    panel.show_statistics(statistics)
    qtbot.waitUntil(lambda: panel.table.isVisible() and panel.overview.p50.value != "–")
    overview = panel.overview
    p50, p95, p99 = (milliseconds(value) for value in statistics.percentiles_ms(50, 95, 99))
    assert overview.p50.value == p50
    assert overview.p99.value == p99
    assert p95 in overview.p99.caption
    assert overview.third.caption == "fps"
    assert overview.dropped.value == "7"
    assert overview.latency.text() == f"gesture to screen {milliseconds(statistics.gesture_to_screen_ms)} ms"
    assert overview.plot.shown_ms == statistics.frame_times_ms
    assert panel.table.steps.steps == statistics.steps
    assert panel.table.isColumnHidden(KEYS.index("occupancy"))
    together = f"{short_milliseconds(sum(step.time_us for step in statistics.steps) / 1000)} ms"
    assert panel.kernels.state.text() == f"{len(statistics.steps)} steps on the processor, {together}"
    assert not panel.fast_path.graph.isEnabled()
    assert panel.fast_path.fused.isEnabled()


def test_on_a_gpu_the_graphs_time_and_its_gaps_are_reported(gpu_panel: PerformancePanel) -> None:
    overview = gpu_panel.overview
    assert (overview.third.value, overview.third.caption) == ("0.450", "graph · gaps 0.020")
    assert overview.third.accessibleName() == "graph · gaps 0.020: 0.450 ms"
    assert overview.latency.text() == "gesture to screen 4.00 ms"
    assert overview.host.text() == "host work 0.100 ms a frame"
    assert gpu_panel.fast_path.graph.isEnabled()
    assert not gpu_panel.table.isColumnHidden(KEYS.index("roofline"))


def test_before_the_first_frame_there_are_dashes_and_a_sentence(panel: PerformancePanel, qtbot: QtBot) -> None:
    panel.show_statistics(FrameStatistics())
    qtbot.wait(20)
    overview = panel.overview
    assert {figure.value for figure in (overview.p50, overview.p99, overview.third, overview.dropped)} == {"–"}
    assert panel.empty.isVisible()
    assert not panel.table.isVisible()
    assert panel.csv() == ""


def test_a_device_that_takes_over_turns_the_panel_round_and_back(gpu_panel: PerformancePanel) -> None:
    gpu_panel.show_device(has_graph=False, roofline=None)
    assert gpu_panel.overview.third.caption == "fps"
    assert gpu_panel.table.isColumnHidden(KEYS.index("roofline"))
    gpu_panel.show_device(has_graph=True, roofline=ROOFLINE)
    assert gpu_panel.overview.third.caption.startswith("graph")


def test_another_way_of_rendering_keeps_the_steps_until_the_new_ones_are_there(gpu_panel: PerformancePanel) -> None:
    empty = FrameStatistics()
    gpu_panel.show_options(RenderOptions(use_fused=False))
    gpu_panel._statistics = empty
    gpu_panel._show_steps()
    assert gpu_panel.table.isVisible()
    empty.frame_arrived(timed_frame(1.0, gpu_steps(3), device_ms=0.5), 0.0)
    gpu_panel._show_steps()
    assert len(gpu_panel.table.steps.steps) == 3
    gpu_panel._statistics = FrameStatistics()  # another model
    gpu_panel._show_steps()
    assert gpu_panel.empty.isVisible()


def test_a_flood_of_news_is_shown_twice_a_second(
    panel: PerformancePanel, statistics: FrameStatistics, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    drawn: list[int] = []
    show_times = panel.overview.plot.show_times

    def counted(times: Sequence[float]) -> None:
        drawn.append(1)
        show_times(times)

    monkeypatch.setattr(panel.overview.plot, "show_times", counted)
    began_s = time.monotonic()
    for _ in range(300):
        panel.show_statistics(statistics)
        QApplication.processEvents()
    qtbot.waitUntil(lambda: bool(drawn))
    assert panel._beat.interval() == 500
    assert len(drawn) <= 1 + (time.monotonic() - began_s) / 0.5


def test_nothing_is_drawn_while_it_is_hidden(
    panel: PerformancePanel, statistics: FrameStatistics, qtbot: QtBot
) -> None:
    panel.hide()
    panel._beat.stop()
    panel.show_statistics(statistics)
    assert not panel._beat.isActive()
    panel.show()
    qtbot.waitUntil(lambda: panel.overview.p50.value != "–")


def test_an_update_of_forty_five_kernels_takes_a_small_part_of_a_second(
    gpu_panel: PerformancePanel, qtbot: QtBot
) -> None:
    statistics = FrameStatistics()
    gpu_panel.show_statistics(statistics)
    took_s = []
    for number in range(12):
        frame = timed_frame(1.0, gpu_steps(45, 1 + number % 3 / 50), device_ms=0.5)
        statistics.frame_arrived(frame, number / 60)
        began_s = time.process_time()
        gpu_panel._show_steps()
        gpu_panel._show_times()
        QApplication.processEvents()
        took_s.append(time.process_time() - began_s)
    assert min(took_s) < 0.03  # twice a second; a few ms on a machine that has nothing else to do


# -- compact and full -----------------------------------------------------------------------------------------------


def test_the_full_panel_has_the_roofline_between_figures_and_table(gpu_panel: PerformancePanel) -> None:
    assert "roofline" not in gpu_panel.__dict__, "it is made when it is shown first"
    gpu_panel.set_compact(False)
    assert gpu_panel.roofline.isVisible()
    assert gpu_panel.overview.isVisible()
    assert gpu_panel.table.isVisible()
    assert gpu_panel.measure.isHidden()
    assert gpu_panel.roofline.points == [0, 1, 2, 3, 4, 5]
    gpu_panel.set_compact(True)
    assert gpu_panel.roofline.isHidden()


def test_the_compact_panel_leads_to_measure(gpu_panel: PerformancePanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(gpu_panel.measure_requested):
        gpu_panel.measure.click()


@pytest.mark.usefixtures("each_font")
@pytest.mark.parametrize("width", [300, 428])
def test_time_and_occupancy_are_among_the_columns_of_a_side_panel(gpu_panel: PerformancePanel, width: int) -> None:
    gpu_panel.resize(width, 600)
    QApplication.processEvents()
    shown = [key for number, key in enumerate(KEYS) if not gpu_panel.table.isColumnHidden(number)]
    assert {"layer", "time", "share", "occupancy", "roofline"} <= set(shown)
    if width == 428:
        assert len(shown) > 5, "more columns appear as there is room"
    table = gpu_panel.table
    for number, key in enumerate(KEYS):
        if key in shown and key != "layer":
            ends = table.columnViewportPosition(number) + table.columnWidth(number)
            assert ends <= table.viewport().width(), key


def test_a_click_on_a_point_selects_its_row_and_a_row_marks_its_point(
    gpu_panel: PerformancePanel, qtbot: QtBot
) -> None:
    gpu_panel.set_compact(False)
    QApplication.processEvents()
    press(gpu_panel.roofline, QPointF(*gpu_panel.roofline.place_of(1)))
    assert gpu_panel.table.chosen == 1
    row = gpu_panel.table.model().index(0, 0)
    place = gpu_panel.table.visualRect(row).center()
    qtbot.mouseClick(gpu_panel.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert gpu_panel.table.chosen == 5
    assert gpu_panel.roofline.words.text().startswith("b128.conv1")


# -- room -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_font")
@pytest.mark.parametrize("width", [326, 420, 1100])
def test_no_words_are_cut_in_a_dock_of_any_width(gpu_panel: PerformancePanel, width: int) -> None:
    gpu_panel.resize(width, 600)
    gpu_panel._show_times()
    QApplication.processEvents()
    labels: list[Any] = [gpu_panel.overview.latency, gpu_panel.overview.host, gpu_panel.kernels.state]
    for label in labels:
        assert label.text()
        assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width()


def test_where_it_is_low_the_plot_is_replaced_by_the_table(gpu_panel: PerformancePanel) -> None:
    gpu_panel.resize(420, 300)
    assert not gpu_panel.overview.plot.isVisible()
    assert gpu_panel.table.height() >= 70
    gpu_panel.resize(420, 600)
    assert gpu_panel.overview.plot.isVisible()


def test_compiling_moves_nothing(gpu_panel: PerformancePanel) -> None:
    QApplication.processEvents()
    before = gpu_panel.table.geometry()
    gpu_panel.show_compiling(Compiling(3, 14))
    QApplication.processEvents()
    assert gpu_panel.table.geometry() == before


@pytest.mark.parametrize(
    ("value", "text", "short"),
    [
        (0.0937, "0.094", "0.09"),
        (0.4213, "0.421", "0.42"),
        (0.9996, "1.00", "1.00"),
        (9.99, "9.99", "9.99"),
        (9.996, "10.0", "10.0"),
        (22.44, "22.4", "22.4"),
        (99.96, "100", "100"),
        (421.4, "421", "421"),
    ],
)
def test_times_have_three_figures_at_most(value: float, text: str, short: str) -> None:
    assert (milliseconds(value), short_milliseconds(value)) == (text, short)


def forms(panel: PerformancePanel, figure: Figure) -> list[tuple[str, str, str]]:
    """What a figure shows while the panel becomes narrower: value, unit and caption. The panel's timer writes none."""
    panel._beat.stop()
    found: list[tuple[str, str, str]] = []
    for width in range(700, 260, -8):
        panel.resize(width, 600)
        QApplication.processEvents()
        if figure.fitting() not in found:
            found.append(figure.fitting())
    return found


def test_times_of_a_slow_processor_keep_their_unit_in_a_narrow_panel(panel: PerformancePanel) -> None:
    overview = panel.overview
    overview.p50.show_value("1007")
    assert forms(panel, overview.p50)[0] == ("1007", "ms", "frame p50")
    overview.p99.show_value("2214", "p99 · p95 2118")
    assert {(value, unit) for value, unit, _ in forms(panel, overview.p99)} <= {("2214", "ms"), ("2214", "")}
    overview.p99.show_value("102214", "p99 · p95 101118")
    shown = forms(panel, overview.p99)
    assert shown[-1] == ("102214", "", "p99, ms")
    assert all(value == "102214" and "ms" in (unit, caption[-2:]) for value, unit, caption in shown)


def test_a_gesture_that_took_ten_seconds_is_reported_in_seconds(panel: PerformancePanel) -> None:
    panel.overview._show_line(24_070.0, None)
    assert panel.overview.latency.text() == "gesture to screen 24.1 s"


def test_figures_leave_out_a_digit_before_they_touch_each_other(gpu_panel: PerformancePanel) -> None:
    whole, shorter, least = ("0.450", "graph · gaps 0.020"), ("0.45", "graph · gaps 0.02"), ("0.45", "graph")
    shown = [(value, caption) for value, _, caption in forms(gpu_panel, gpu_panel.overview.third)]
    assert [form for form in shown if form in (whole, shorter, least)] == [whole, shorter, least]
    assert shown[0] == whole


@pytest.mark.parametrize(
    ("median_ms", "mark_ms"),
    [(0.06, 0.1), (0.17, 0.25), (0.3, 0.5), (1.05, 2.0), (5.0, 8.0), (21.0, 33.0), (200.0, 33.0)],
)
def test_the_dashed_line_is_the_budget_or_nearer_where_frames_are_quick(median_ms: float, mark_ms: float) -> None:
    assert mark_for(median_ms) == mark_ms


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (7759, "7.8k"), (9949, "9.9k"), (78_400, "78k"), (999_600, "1.0M")],
)
def test_a_short_count_keeps_its_width(value: int, text: str) -> None:
    assert short_count(value) == text
