"""Directions from the file beside a model, in the sliders panel."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session, Slider
from explorer_app.window.controls.value_slider import ValueSlider
from explorer_app.window.look import theme
from explorer_app.window.sliders.sliders_panel import SlidersPanel
from gpu_backend import RowRange
from tests.helpers.panels import Edits, double_click, drag, lay_out, model_directions, model_facts, text_of

NAMED = (
    ("world/sun height", 3.0, RowRange(0, 4), 0.0),
    ("world/haze", 2.0, RowRange(5, 9), 1.0),
)


class WatchedPanel(SlidersPanel):
    """A panel, and its edits."""

    edits: Edits


@pytest.fixture
def panel(qtbot: QtBot) -> WatchedPanel:
    panel = WatchedPanel()
    qtbot.addWidget(panel)
    for widget in panel.header_widgets():
        qtbot.addWidget(widget)
    panel.show_model(model_facts(), model_directions(named=NAMED))
    panel.edits = Edits(panel)
    panel.resize(322, 260)
    panel.show()
    return panel


def handle(slider: ValueSlider, amount: float) -> QPointF:
    return QPointF(slider._x_of(amount), slider.height() / 2)


def test_named_ones_come_first_under_their_names(panel: WatchedPanel) -> None:
    assert [row.name for row in panel.directions.rows[:3]] == ["Sun height", "Haze", "Direction 1"]
    assert len(panel.directions.rows) == 2 + 24


def test_each_has_its_own_range(panel: WatchedPanel) -> None:
    sun, haze = (row.slider for row in panel.directions.rows[:2])
    drag(sun, handle(sun, 0.0), QPointF(sun.width() + 50, 5))
    drag(haze, handle(haze, 0.0), QPointF(-50, 5))
    assert panel.edits.session.slider("world/sun height").amount == 3.0
    assert panel.edits.session.slider("world/haze").amount == -1.0


def test_moving_one_moves_the_rows_that_it_is_for(panel: WatchedPanel) -> None:
    slider = panel.directions.rows[0].slider
    drag(slider, handle(slider, 0.0), handle(slider, 2.0))
    assert panel.edits.session.sliders == (Slider("world/sun height", 2.0),)
    assert panel.directions.rows[0].rows.rows == RowRange(0, 4)


def test_one_back_where_it_began_is_not_kept(panel: WatchedPanel) -> None:
    panel.edits.show(Session(sliders=(Slider("world/haze", 1.0),)))
    slider = panel.directions.rows[1].slider
    double_click(slider, handle(slider, 2.0))
    assert panel.edits.session.sliders == ()
    assert panel.directions.rows[1].rows.rows == RowRange(5, 9)


def test_rows_that_a_person_chose_stay(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.directions.rows[0].rows, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.picker.named.segments["all"], Qt.MouseButton.LeftButton)
    panel.picker.hide()
    assert panel.edits.steps == [SetParameter("rows/world/sun height", RowRange())]
    assert panel.directions.rows[0].acts_on == RowRange()


def test_the_rows_that_a_direction_is_for_become_its_own_again(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(sliders=(Slider("world/sun height", rows=RowRange()),)))
    panel.directions.rows[0].rows.click()
    qtbot.mouseClick(panel.picker.named.segments["coarse"], Qt.MouseButton.LeftButton)
    panel.picker.hide()
    assert panel.edits.session.sliders == ()


def test_all_rows_for_all_directions_reach_named_ones_too(panel: WatchedPanel, qtbot: QtBot) -> None:
    button = panel.header_widgets()[1]
    assert text_of(button) == "mixed rows ▾"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.picker.named.segments["all"], Qt.MouseButton.LeftButton)
    panel.picker.hide()
    assert text_of(button) == "rows 0–13 ▾"
    assert all(row.acts_on == RowRange() for row in panel.directions.rows)


def test_renaming_keeps_rows_and_an_empty_name_brings_the_own_one_back(panel: WatchedPanel) -> None:
    row = panel.directions.rows[0]
    row.renamed.emit("Morning")
    assert panel.edits.session.sliders == (Slider("world/sun height", label="Morning"),)
    assert row.name == "Morning"
    row.renamed.emit("")
    assert row.name == "Sun height"
    assert panel.edits.session.sliders == ()


def test_a_name_of_two_words_fits_and_leaves_room_for_the_slider(panel: WatchedPanel) -> None:
    panel.show_model(model_facts(), model_directions(named=(("world/mountain height", 3.0, RowRange(0, 4), 0.0),)))
    lay_out(panel.directions.widget())
    row = panel.directions.rows[0]
    lay_out(row)
    needed = row.label.fontMetrics().horizontalAdvance("Mountain height")
    assert row.label.text() == "Mountain height" or needed > theme.px(104), "cut in a wide font"
    assert row.slider.width() > theme.px(72)


def test_all_sliders_have_their_zero_below_each_other(panel: WatchedPanel) -> None:
    everywhere = RowRange(0, 13)
    named = [("a/even", 3.0, everywhere, 0.0), ("a/more up", 3.0, everywhere, 2.0), ("a/up only", 3.0, everywhere, 3.0)]
    panel.show_model(model_facts(), model_directions(4, named=named))
    QApplication.processEvents()
    zeros = {row.slider.mapTo(panel, handle(row.slider, 0.0)).x() for row in panel.directions.rows}
    assert len(zeros) == 1
