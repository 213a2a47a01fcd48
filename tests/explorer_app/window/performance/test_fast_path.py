"""Graph on or off, fused or reference."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer_app.window.performance.fast_path import FastPath
from gpu_backend import Comparison, RenderOptions

GPU = Comparison(
    graph_ms=0.472,
    no_graph_ms=1.318,
    fused_ms=0.472,
    reference_ms=9.81,
    largest_difference=1,
    mean_difference=0.021,
)
CPU = Comparison(
    graph_ms=None, no_graph_ms=None, fused_ms=21.3, reference_ms=152.0, largest_difference=0, mean_difference=0.0
)


class Heard:
    def __init__(self, panel: FastPath) -> None:
        self.options: list[Any] = []
        self.compared = 0
        panel.options_changed.connect(self.options.append)
        panel.compare_requested.connect(self._compare)

    def _compare(self) -> None:
        self.compared += 1


@pytest.fixture
def panel(qtbot: QtBot) -> FastPath:
    panel = FastPath()
    qtbot.addWidget(panel)
    panel.resize(900, 60)
    with qtbot.waitExposed(panel):
        panel.show()
    return panel


def test_a_switch_asks_for_other_options_and_for_a_comparison(panel: FastPath, qtbot: QtBot) -> None:
    heard = Heard(panel)
    qtbot.mouseClick(panel.graph, Qt.MouseButton.LeftButton)
    assert heard.options == [RenderOptions(use_graph=False, use_fused=True)]
    QTest.keyClick(panel.fused, Qt.Key.Key_Space)
    assert heard.options[-1] == RenderOptions(use_graph=False, use_fused=False)
    assert heard.compared == 2


def test_options_from_elsewhere_are_shown_without_asking(panel: FastPath) -> None:
    heard = Heard(panel)
    panel.show_options(RenderOptions(use_graph=False, use_fused=False))
    assert (panel.graph.isChecked(), panel.fused.isChecked()) == (False, False)
    assert heard.options == []


def test_both_times_and_the_largest_difference_stand_beside_each_other(panel: FastPath) -> None:
    panel.show_comparison(GPU)
    assert panel.graph_times.text() == "on 0.472 · off 1.32 ms"
    assert panel.fused_times.text() == "fused 0.472 · reference 9.81 ms"
    assert panel.difference.text() == "largest difference 1 / 255"
    assert "0.021 on average" in panel.difference.toolTip()


def test_where_it_is_narrow_nothing_is_cut(panel: FastPath) -> None:
    panel.resize(326, 60)
    panel.show_comparison(GPU)
    for label, words in ((panel.graph_times, "0.47"), (panel.fused_times, "9.81"), (panel.difference, "1 / 255")):
        assert words in label.text()
        assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width()


def test_on_the_processor_the_graph_is_greyed_and_says_why_and_fused_works(panel: FastPath, qtbot: QtBot) -> None:
    heard = Heard(panel)
    panel.show_graph(False)
    assert not panel.graph.isEnabled()
    assert not panel.graph.isChecked()
    assert "CPU has no graph" in panel.graph.toolTip()
    qtbot.mouseClick(panel.fused, Qt.MouseButton.LeftButton)
    assert heard.options == [RenderOptions(use_graph=True, use_fused=False)]
    panel.show_comparison(CPU)
    assert panel.graph_times.text() == "no graph here"
    assert panel.fused_times.text() == "fused 21.3 · reference 152 ms"


def test_another_device_reports_what_was_compared_in_its_own_words(panel: FastPath) -> None:
    panel.show_comparison(CPU)
    panel.show_graph(False)
    assert panel.graph_times.text() == "no graph here"
    assert "152" in panel.fused_times.text()


def test_while_it_compares_it_shows_progress_and_cannot_be_started_again(panel: FastPath, qtbot: QtBot) -> None:
    heard = Heard(panel)
    panel.show_comparison(None, is_running=True)
    assert panel.difference.text() == "comparing…"
    qtbot.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
    assert heard.compared == 0
    panel.show_comparison(GPU)
    qtbot.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
    assert heard.compared == 1


def test_without_a_model_nothing_is_switched(panel: FastPath) -> None:
    panel.set_has_model(False)
    assert not panel.fused.isEnabled()
    panel.show_graph(True)
    assert not panel.graph.isEnabled()
    panel.set_has_model(True)
    assert panel.graph.isEnabled()
    assert panel.fused.isEnabled()
