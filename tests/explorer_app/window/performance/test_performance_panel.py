"""The performance panel and its table."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.rendering.frame_statistics import FrameStatistics, StepCost
from explorer_app.window.performance.performance_panel import PerformancePanel, milliseconds
from explorer_app.window.performance.step_table import StepTable
from tests.helpers.fake_controller import FakeController


def steps(scale: float = 1.0) -> list[StepCost]:
    shares = (0.1, 0.6, 0.3)
    return [
        StepCost(f"synthesis.b{8 << i}.conv0", "modulated_conv", 1000 * share * scale, share, 10_000_000, 1000)
        for i, share in enumerate(shares)
    ]


@pytest.fixture
def panel(qtbot: QtBot) -> PerformancePanel:
    panel = PerformancePanel()
    qtbot.addWidget(panel)
    panel.resize(420, 500)
    with qtbot.waitExposed(panel):
        panel.show()
    return panel


@pytest.fixture
def statistics(controller: FakeController) -> FrameStatistics:
    for total_ms in (10.0, 20.0, 30.0, 40.0):
        controller.frame_painted(controller.render(total_ms=total_ms))
    controller.render(measured=True)
    controller.statistics.dropped = 7
    return controller.statistics


def test_figures_plot_latency_and_steps_are_shown(
    panel: PerformancePanel, statistics: FrameStatistics, qtbot: QtBot
) -> None:
    panel.show_statistics(statistics)
    qtbot.waitUntil(lambda: panel.table.isVisible() and panel.p50.value != "–")
    assert panel.p50.value == milliseconds(statistics.p50_ms)
    assert panel.p99.value == milliseconds(statistics.p99_ms)
    assert milliseconds(statistics.p95_ms) in panel.p99.caption
    assert panel.dropped.value == "7"
    assert panel.latency.text() == f"gesture to screen {milliseconds(statistics.gesture_to_screen_ms)} ms"
    assert panel.plot.shown_ms.tolist() == statistics.frame_times_ms.tolist()
    assert panel.table.steps.steps == statistics.steps


def test_before_the_first_frame_there_are_dashes_and_a_sentence(panel: PerformancePanel, qtbot: QtBot) -> None:
    panel.show_statistics(FrameStatistics())
    qtbot.wait(20)
    assert {figure.value for figure in (panel.p50, panel.p99, panel.fps, panel.dropped)} == {"–"}
    assert panel.empty.isVisible()
    assert not panel.table.isVisible()


def test_a_flood_of_news_redraws_the_plot_at_most_ten_times_a_second(
    panel: PerformancePanel, statistics: FrameStatistics, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    drawn: list[int] = []
    show_times = panel.plot.show_times
    monkeypatch.setattr(panel.plot, "show_times", lambda times: (drawn.append(1), show_times(times)))
    for _ in range(300):
        panel.show_statistics(statistics)
        QApplication.processEvents()
    qtbot.waitUntil(lambda: bool(drawn))
    assert [timer.interval() for timer in panel._timers] == [200, 100, 500]
    assert len(drawn) <= 3


def test_nothing_is_drawn_while_it_is_hidden(
    panel: PerformancePanel, statistics: FrameStatistics, qtbot: QtBot
) -> None:
    panel.hide()
    for timer in panel._timers:
        timer.stop()
    panel.show_statistics(statistics)
    assert not any(timer.isActive() for timer in panel._timers)
    panel.show()
    qtbot.waitUntil(lambda: panel.p50.value != "–")


def test_the_accessible_name_of_a_figure_tells_it(
    panel: PerformancePanel, statistics: FrameStatistics, qtbot: QtBot
) -> None:
    panel.show_statistics(statistics)
    qtbot.waitUntil(lambda: panel.p50.value != "–")
    assert panel.p50.accessibleName() == f"frame p50: {panel.p50.value} ms"


@pytest.mark.parametrize(
    ("value", "text"), [(0.4213, "0.42"), (9.99, "9.99"), (22.44, "22.4"), (99.94, "99.9"), (421.4, "421")]
)
def test_times_have_three_figures_at_most(value: float, text: str) -> None:
    assert milliseconds(value) == text


# -- the table ------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(qtbot: QtBot) -> StepTable:
    table = StepTable()
    qtbot.addWidget(table)
    table.resize(420, 200)
    table.show_steps(steps())
    with qtbot.waitExposed(table):
        table.show()
    return table


def column(table: StepTable, number: int) -> list[str]:
    model = table.model()
    return [model.index(row, number).data() for row in range(model.rowCount())]


def click_header(table: StepTable, number: int, qtbot: QtBot) -> None:
    header = table.horizontalHeader()
    at = header.viewport().rect().center()
    at.setX(header.sectionViewportPosition(number) + header.sectionSize(number) // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=at)


def test_the_costliest_step_comes_first(table: StepTable) -> None:
    assert column(table, 0) == ["b16.conv0", "b32.conv0", "b8.conv0"]
    assert [text.strip() for text in column(table, 2)] == ["0.60", "0.30", "0.10"]
    assert column(table, 3) == ["60 %", "30 %", "10 %"]


def test_rows_stay_where_they_are_while_the_pointer_is_on_them(table: StepTable) -> None:
    other = [
        StepCost(s.layer, s.kernel, s.time_us, share, 0, 0) for s, share in zip(steps(), (0.8, 0.1, 0.1), strict=True)
    ]
    table.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, True)
    table.show_steps(other)
    assert column(table, 0) == ["b16.conv0", "b32.conv0", "b8.conv0"]
    assert column(table, 3) == ["10 %", "10 %", "80 %"]
    table.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
    table.show_steps(other)
    assert column(table, 0)[0] == "b8.conv0"


def test_a_click_on_a_header_sorts_by_number_not_by_text(table: StepTable, qtbot: QtBot) -> None:
    table.show_steps([*steps(), StepCost("synthesis.b64.conv0", "to_rgb", 12_000, 0.9, 0, 0)])
    click_header(table, 2, qtbot)
    times = [float(text) for text in column(table, 2)]
    assert all(a <= b for a, b in pairwise(times)) or all(a >= b for a, b in pairwise(times))
    assert 12.0 in times


def test_new_figures_keep_order_selection_and_scroll(table: StepTable, qtbot: QtBot) -> None:
    many = [StepCost(f"layer{i}", "conv", float(100 + i), 0.01, 0, 0) for i in range(60)]
    table.show_steps(many)
    table.selectRow(30)
    table.verticalScrollBar().setValue(400)
    resets: list[int] = []
    table.steps.modelReset.connect(lambda: resets.append(1))

    table.show_steps([StepCost(s.layer, s.kernel, s.time_us * 2, s.share, 0, 0) for s in many])

    assert resets == []
    assert table.selectionModel().selectedRows()[0].row() == 30
    assert table.verticalScrollBar().value() == 400
    assert column(table, 2)[0].strip() == "0.20"


def test_a_draft_with_fewer_steps_and_the_full_picture_after_it_keep_what_is_selected(table: StepTable) -> None:
    full = steps()
    row = column(table, 0).index("b16.conv0")
    table.selectRow(row)
    for shown in (full[:2], full[:1], full):
        table.show_steps(shown)
    chosen = table.selectionModel().selectedRows()
    assert [index.data() for index in chosen] == ["b16.conv0"]


def test_the_bar_is_as_long_as_the_share_compared_to_the_largest(table: StepTable) -> None:
    shot = table.viewport().grab().toImage()
    ratio = shot.devicePixelRatio()
    lengths = []
    for row in range(3):
        cell = table.visualRect(table.model().index(row, 3))
        y = round((cell.top() + 6) * ratio)
        plain = shot.pixelColor(round((cell.right() - 2) * ratio), y)
        lengths.append(
            sum(
                shot.pixelColor(x, y) != plain
                for x in range(round(cell.left() * ratio), round((cell.right() - 2) * ratio))
            )
        )
    assert lengths[0] > lengths[1] > lengths[2] > 0
    assert lengths[1] / lengths[0] == pytest.approx(0.5, abs=0.12)


def test_where_there_is_little_room_the_rate_gives_way(table: StepTable, qtbot: QtBot) -> None:
    assert not table.isColumnHidden(4)
    table.resize(300, 200)
    qtbot.waitUntil(lambda: table.isColumnHidden(4))
    assert not table.isColumnHidden(3)
