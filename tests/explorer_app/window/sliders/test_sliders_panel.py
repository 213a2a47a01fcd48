from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QEnterEvent
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import ZeroSliders, set_row_ranges
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import SLIDER_COUNT, Session, Slider
from explorer_app.window.controls.value_slider import ValueSlider
from explorer_app.window.look import theme
from explorer_app.window.sliders.axis_list import AxisList, axis_parts, x_of
from explorer_app.window.sliders.direction_list import _FIRST_ROWS, _START_MS, DirectionList
from explorer_app.window.sliders.sliders_panel import SlidersPanel
from gpu_backend import RowRange
from tests.helpers.panels import (
    CTRL,
    SHIFT,
    Edits,
    double_click,
    drag,
    lay_out,
    model_directions,
    model_facts,
    move,
    press,
    release,
    text_of,
    wheel,
)


class WatchedPanel(SlidersPanel):
    """A panel, and its edits."""

    edits: Edits


@pytest.fixture
def count() -> int:
    """How many directions there are: a row takes milliseconds to make."""
    return 9


many = pytest.mark.parametrize("count", [30], ids=["30 directions"])


@pytest.fixture
def panel(qtbot: QtBot, count: int) -> WatchedPanel:
    panel = WatchedPanel()
    qtbot.addWidget(panel)
    header = panel.header_widgets()
    for widget in header:
        qtbot.addWidget(widget)
    panel.show_model(model_facts(), model_directions(count))
    panel.edits = Edits(panel)
    panel.resize(322, 260)
    assert len(panel.directions.rows) == min(count, SLIDER_COUNT)  # all are made, and laid out with the panel
    panel.show()
    return panel


def handle(slider: ValueSlider, amount: float) -> QPointF:
    return QPointF(slider._x_of(amount), slider.height() / 2)


def shown_order(panel: WatchedPanel) -> list[str]:
    return [row.name for row in sorted(panel.directions.rows, key=lambda row: row.y())]


def test_rows_below_the_edge_are_made_while_nothing_else_is_to_do(qtbot: QtBot) -> None:
    rows = DirectionList()
    qtbot.addWidget(rows)
    rows.show_directions(model_directions())
    rows.show_session(replace(Session(), sliders=(Slider("sefa/23", amount=2.0),)), (4,))
    assert len(rows._rows) == _FIRST_ROWS
    assert len(rows.names) == 24
    assert rows._row_timer.interval() == _START_MS
    rows._make_more()
    qtbot.waitUntil(lambda: len(rows._rows) == 24)
    assert rows._rows[23].shown.amount == 2.0
    assert not rows._row_timer.isActive()


def test_rows_keep_their_height_while_more_are_made(qtbot: QtBot) -> None:
    panel = SlidersPanel()
    qtbot.addWidget(panel)
    panel.resize(320, 250)
    panel.show()
    panel.show_model(model_facts(), model_directions())
    panel.directions._row_timer.stop()
    QApplication.processEvents()
    heights = []
    while len(panel.directions._rows) < 24:
        panel.directions._make_more()
        panel.directions._layout.activate()
        heights.append({row.height() for row in panel.directions._rows})
    assert heights == [{theme.px(theme.ROW)}] * len(heights)


@pytest.mark.parametrize("way", ["pointer", "scrolling"])
def test_rows_below_the_edge_are_made_at_once_when_they_are_about_to_be_seen(
    panel: WatchedPanel, qtbot: QtBot, way: str
) -> None:
    panel.show_model(model_facts(), None)
    panel.show_model(model_facts(), model_directions())
    rows = panel.directions
    assert len(rows._rows) == _FIRST_ROWS
    if way == "pointer":
        QApplication.sendEvent(rows, QEnterEvent(QPointF(1, 1), QPointF(1, 1), QPointF(1, 1)))
    else:
        rows.verticalScrollBar().valueChanged.emit(3)
    assert rows._row_timer.interval() < _START_MS
    qtbot.waitUntil(lambda: len(rows._rows) == 24)


def test_a_starred_direction_below_the_edge_has_its_row_at_once(qtbot: QtBot) -> None:
    rows = DirectionList()
    qtbot.addWidget(rows)
    rows.show_directions(model_directions())
    rows.show_session(replace(Session(), sliders=(Slider("sefa/23", starred=True),)), (4,))
    assert rows._order[0] == 23


@many
def test_the_first_24_directions_have_a_row(panel: WatchedPanel) -> None:
    assert SLIDER_COUNT == 24
    assert [row.shown.direction for row in panel.directions.rows] == [f"sefa/{index}" for index in range(24)]
    assert panel.directions.rows[7].name == "Direction 8"


def test_a_drag_sets_the_amount_in_one_gesture(panel: WatchedPanel) -> None:
    slider = panel.directions.rows[2].slider
    drag(slider, handle(slider, 0.0), handle(slider, 4.0))
    assert len(panel.edits.steps) == 1
    assert panel.edits.session.slider("sefa/2").amount == pytest.approx(4.0, abs=0.15)
    assert panel.directions.rows[2].field.text().startswith(("+4", "+3.9"))


def test_escape_in_a_drag_brings_back_slider_and_number(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(sliders=(Slider("sefa/2", 1.5),)))
    row = panel.directions.rows[2]
    press(row.slider, handle(row.slider, 1.5))
    move(row.slider, handle(row.slider, 6.0))
    qtbot.keyClick(row.slider, Qt.Key.Key_Escape)
    assert panel.edits.cancelled == 1
    assert panel.edits.session.slider("sefa/2").amount == 1.5
    assert row.field.text() == "+1.50"


def test_a_double_click_brings_an_amount_back_to_zero(panel: WatchedPanel) -> None:
    panel.edits.show(Session(sliders=(Slider("sefa/0", 3.0),)))
    slider = panel.directions.rows[0].slider
    double_click(slider, handle(slider, 7.0))
    assert panel.edits.session.sliders == ()
    assert len(panel.edits.steps) == 1


def test_more_than_the_slider_reaches_can_be_typed(panel: WatchedPanel, qtbot: QtBot) -> None:
    field = panel.directions.rows[0].field
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "-42.5")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert panel.edits.session.slider("sefa/0").amount == -42.5
    assert field.text() == "−42.50"


def test_the_wheel_over_a_slider_without_focus_is_left_to_the_list(panel: WatchedPanel) -> None:
    slider = panel.directions.rows[1].slider
    panel.header_widgets()[0].setFocus()
    assert not wheel(slider, handle(slider, 0.0), -2)
    assert panel.edits.all == []


def test_a_star_brings_a_direction_to_the_front(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.directions.rows[4].star, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.directions.rows[2].star, Qt.MouseButton.LeftButton)
    QApplication.sendEvent(panel.directions, QEvent(QEvent.Type.Leave))
    lay_out(panel.directions.widget())
    assert shown_order(panel)[:4] == ["Direction 3", "Direction 5", "Direction 1", "Direction 2"]
    qtbot.mouseClick(panel.directions.rows[4].star, Qt.MouseButton.LeftButton)
    assert panel.edits.session.sliders == (Slider("sefa/2", starred=True),)


def test_a_starred_row_stays_under_the_pointer_until_it_leaves(panel: WatchedPanel, qtbot: QtBot) -> None:
    rows = panel.directions
    before = shown_order(panel)
    QApplication.sendEvent(rows, QEnterEvent(QPointF(5, 5), QPointF(5, 5), QPointF(5, 5)))
    qtbot.mouseClick(rows.rows[4].star, Qt.MouseButton.LeftButton)
    lay_out(rows.widget())
    assert shown_order(panel) == before
    qtbot.mouseClick(rows.rows[4].star, Qt.MouseButton.LeftButton)
    assert panel.edits.session.sliders == (), "the second click met the same star"
    qtbot.mouseClick(rows.rows[4].star, Qt.MouseButton.LeftButton)
    QApplication.sendEvent(rows, QEvent(QEvent.Type.Leave))
    lay_out(rows.widget())
    assert shown_order(panel)[:2] == ["Direction 5", "Direction 1"]


def test_another_model_starts_with_its_starred_rows_in_front(panel: WatchedPanel) -> None:
    QApplication.sendEvent(panel.directions, QEnterEvent(QPointF(5, 5), QPointF(5, 5), QPointF(5, 5)))
    panel.edits.session = Session(sliders=(Slider("sefa/3", starred=True),))
    panel._session = panel.edits.session
    panel.show_model(model_facts(), model_directions(12))
    QApplication.processEvents()
    assert shown_order(panel)[0] == "Direction 4"


def test_a_double_click_on_the_name_renames(panel: WatchedPanel, qtbot: QtBot) -> None:
    label = panel.directions.rows[0].label
    double_click(label, QPoint(5, 5))
    assert label.editor is not None
    label.editor.selectAll()
    qtbot.keyClicks(label.editor, "Sun height")
    qtbot.keyClick(label.editor, Qt.Key.Key_Return)
    assert panel.edits.session.slider("sefa/0").label == "Sun height"
    assert panel.directions.rows[0].slider.accessibleName() == "Sun height"


def test_f2_renames_and_escape_forgets_the_new_name(panel: WatchedPanel, qtbot: QtBot) -> None:
    label = panel.directions.rows[0].label
    panel.directions.rows[0].slider.setFocus()
    qtbot.keyClick(panel.directions.rows[0].slider, Qt.Key.Key_F2)
    qtbot.keyClicks(label.editor, "Mist")
    qtbot.keyClick(label.editor, Qt.Key.Key_Escape)
    assert label.editor is None
    assert panel.edits.all == []


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Escape])
def test_after_a_rename_the_focus_is_where_it_was(panel: WatchedPanel, qtbot: QtBot, key: Qt.Key) -> None:
    row = panel.directions.rows[0]
    row.slider.setFocus()
    qtbot.keyClick(row.slider, Qt.Key.Key_F2)
    qtbot.keyClicks(row.label.editor, "Mist")
    qtbot.keyClick(row.label.editor, key)
    assert row.slider.hasFocus()


def test_an_empty_name_gives_the_default_name_back(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(sliders=(Slider("sefa/0", label="Mist"),)))
    label = panel.directions.rows[0].label
    label.rename()
    assert label.editor is not None
    label.editor.clear()
    qtbot.keyClick(label.editor, Qt.Key.Key_Return)
    assert panel.directions.rows[0].name == "Direction 1"


def test_a_long_name_is_cut_and_shown_whole(panel: WatchedPanel) -> None:
    name = "A very long name that nobody would think of, and yet somebody did"
    panel.edits.show(Session(sliders=(Slider("sefa/0", label=name),)))
    row = panel.directions.rows[0]
    assert row.label.text().endswith("…")
    assert name in row.label.toolTip()
    assert row.slider.width() > 80


def test_a_direction_gets_its_own_rows(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.directions.rows[3].rows, Qt.MouseButton.LeftButton)
    assert panel.picker.isVisible()
    qtbot.mouseClick(panel.picker.named.segments["middle"], Qt.MouseButton.LeftButton)
    assert panel.edits.steps == [SetParameter("rows/sefa/3", RowRange(5, 8))]
    assert (panel.picker.first.value(), panel.picker.last.value()) == (5, 8)
    panel.picker.hide()


def test_rows_from_and_to_are_typed_and_never_cross(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.directions.rows[0].rows, Qt.MouseButton.LeftButton)
    for field, text in ((panel.picker.last, "6"), (panel.picker.first, "9")):
        field.setFocus()
        field.selectAll()
        qtbot.keyClicks(field, text)
        qtbot.keyClick(field, Qt.Key.Key_Return)
    assert [edit.value for edit in panel.edits.steps] == [RowRange(0, 6), RowRange(9, 9)]
    panel.picker.hide()


def test_the_last_row_is_written_as_an_open_end(panel: WatchedPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.directions.rows[0].rows, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.picker.named.segments["fine"], Qt.MouseButton.LeftButton)
    assert panel.edits.steps == [SetParameter("rows/sefa/0", RowRange(9, None))]
    panel.picker.hide()


def test_the_rows_in_the_header_are_those_of_all_directions(panel: WatchedPanel, qtbot: QtBot) -> None:
    button = panel.header_widgets()[1]
    assert text_of(button) == "rows 0–13 ▾"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.picker.named.segments["coarse"], Qt.MouseButton.LeftButton)
    panel.picker.hide()
    assert panel.edits.steps == [set_row_ranges(dict.fromkeys(panel.directions.names, RowRange(0, 4)))]
    assert text_of(button) == "rows 0–4 ▾"
    panel.edits.show(SetParameter("rows/sefa/5", RowRange(2, 3)).apply(panel.edits.session))
    assert text_of(button) == "mixed rows ▾"


def test_zero_all_is_one_step(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(sliders=(Slider("sefa/0", 3.0, label="Sun"), Slider("axis/4", 1.0))))
    qtbot.mouseClick(panel.header_widgets()[0], Qt.MouseButton.LeftButton)
    assert panel.edits.steps == [ZeroSliders()]
    assert panel.edits.session.sliders == (Slider("sefa/0", label="Sun"),)
    assert panel.directions.rows[0].field.text() == "0.00"


def test_without_a_model_the_panel_says_what_to_do(panel: WatchedPanel) -> None:
    panel.show_model(None, None)
    assert panel.empty.isVisible()
    assert not any(widget.isEnabled() for widget in panel.header_widgets())
    panel.show_model(model_facts(), model_directions())
    assert not panel.empty.isVisible()


@pytest.mark.usefixtures("each_font")
def test_the_panel_fits_a_narrow_and_low_dock(panel: WatchedPanel) -> None:
    assert panel.minimumSizeHint().width() <= 280
    assert panel.minimumSizeHint().height() <= 120


@pytest.fixture
def axes(panel: WatchedPanel) -> AxisList:
    panel.show_page(1)
    return panel.axes


def spot(axes: AxisList, row: int, amount: float) -> QPointF:
    slider = axis_parts(axes.visualRect(axes.axes.index(row)))[1]
    return QPointF(x_of(slider, amount), slider.center().y())


def test_every_dimension_of_w_is_in_the_list_and_none_is_a_widget(panel: WatchedPanel, axes: AxisList) -> None:
    assert axes.axes.rowCount() == 512
    assert len(axes.viewport().children()) == 0


def test_a_right_click_on_a_dimension_offers_a_key_and_a_controller(axes: AxisList) -> None:
    place = spot(axes, 3, 0.0).toPoint()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, axes.viewport().mapToGlobal(place))
    QApplication.sendEvent(axes.viewport(), event)
    menu = next(menu for menu in axes.findChildren(QMenu) if menu.isVisible())
    assert [action.text() for action in menu.actions() if action.text()][:2] == [
        "Animate: key here",
        "Learn controller",
    ]
    menu.close()


def test_dragging_a_row_sets_its_dimension_in_one_gesture(panel: WatchedPanel, axes: AxisList) -> None:
    drag(axes.viewport(), spot(axes, 3, 0.0), spot(axes, 3, 2.0))
    assert panel.edits.session.slider("axis/3").amount == pytest.approx(2.0, abs=0.1)
    assert [edit.label for edit in panel.edits.steps] == ["w 3"]


def test_shift_is_fine_and_ctrl_snaps_in_the_list_too(panel: WatchedPanel, axes: AxisList) -> None:
    drag(axes.viewport(), spot(axes, 1, 0.0), spot(axes, 1, 4.0), SHIFT)
    assert panel.edits.session.slider("axis/1").amount == pytest.approx(0.4, abs=0.05)
    drag(axes.viewport(), spot(axes, 2, 0.0), spot(axes, 2, 2.2), CTRL)
    assert panel.edits.session.slider("axis/2").amount == 2.0


def test_escape_in_a_drag_of_a_row_brings_back_what_was(panel: WatchedPanel, axes: AxisList, qtbot: QtBot) -> None:
    panel.edits.show(Session(sliders=(Slider("axis/2", 1.0),)))
    press(axes.viewport(), spot(axes, 2, 1.0))
    move(axes.viewport(), spot(axes, 2, 4.0))
    qtbot.keyClick(axes, Qt.Key.Key_Escape)
    assert panel.edits.cancelled == 1
    assert panel.edits.session.slider("axis/2").amount == 1.0
    assert axes.axes.amounts == {2: 1.0}


def test_undo_in_a_drag_of_a_row_cancels_it_and_after_a_press_alone_only_ends_it(
    panel: WatchedPanel, axes: AxisList
) -> None:
    view = axes.viewport()
    assert not axes.undo_drag()
    press(view, spot(axes, 2, 0.0))
    assert not axes.undo_drag(), "undo reverts the last step"
    move(view, spot(axes, 2, 4.0))
    release(view, spot(axes, 2, 4.0))
    assert panel.edits.all == []
    press(view, spot(axes, 2, 0.0))
    move(view, spot(axes, 2, 4.0))
    assert axes.undo_drag()
    move(view, spot(axes, 2, 5.0))
    release(view, spot(axes, 2, 5.0))
    assert panel.edits.session.sliders == ()
    assert axes.axes.amounts == {}
    assert panel.edits.steps == []


def test_a_drag_of_a_row_that_ends_where_it_began_ends_its_gesture(panel: WatchedPanel, axes: AxisList) -> None:
    view = axes.viewport()
    press(view, spot(axes, 2, 0.0))
    move(view, spot(axes, 2, 4.0))
    move(view, spot(axes, 2, 0.0))
    release(view, spot(axes, 2, 0.0))
    assert panel.edits.session.slider("axis/2").amount == 0.0
    assert [final for _, final in panel.edits.all].count(True) == 1
    assert panel.edits.all[-1][1]


def test_a_double_click_on_a_row_resets_it(panel: WatchedPanel, axes: AxisList) -> None:
    panel.edits.show(Session(sliders=(Slider("axis/2", 1.0),)))
    double_click(axes.viewport(), spot(axes, 2, 1.0))
    assert panel.edits.session.sliders == ()


def test_rows_are_stepped_and_typed_by_keyboard(panel: WatchedPanel, axes: AxisList, qtbot: QtBot) -> None:
    axes.setFocus()
    axes.setCurrentIndex(axes.axes.index(0))
    qtbot.keyClick(axes, Qt.Key.Key_Down)
    qtbot.keyClick(axes, Qt.Key.Key_Right)
    qtbot.keyClick(axes, Qt.Key.Key_Left, SHIFT)
    assert panel.edits.session.slider("axis/1").amount == pytest.approx(0.49)
    assert len(panel.edits.steps) == 2
    qtbot.keyClick(axes, Qt.Key.Key_Return)
    field = axes.indexWidget(axes.currentIndex()) or axes.viewport().focusWidget()
    qtbot.keyClicks(field, "7.25")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: panel.edits.session.slider("axis/1").amount == 7.25)
    assert len(panel.edits.steps) == 3


def test_only_moved_dimensions_can_be_shown_and_stay_while_they_pass_zero(
    panel: WatchedPanel, axes: AxisList, qtbot: QtBot
) -> None:
    panel.edits.show(Session(sliders=(Slider("axis/300", 1.0), Slider("axis/7", -2.0))))
    qtbot.mouseClick(panel.moved, Qt.MouseButton.LeftButton)
    assert [axes.axes.axis_at(row) for row in range(axes.axes.rowCount())] == [7, 300]
    drag(axes.viewport(), spot(axes, 0, -2.0), spot(axes, 0, 0.0), CTRL)
    assert panel.edits.session.slider("axis/7").amount == 0.0
    assert axes.axes.rowCount() == 2
    qtbot.mouseClick(panel.moved, Qt.MouseButton.LeftButton)
    assert axes.axes.rowCount() == 512


def test_a_dimension_is_found_by_its_number(panel: WatchedPanel, axes: AxisList, qtbot: QtBot) -> None:
    qtbot.keyClicks(panel.goto, "400")
    assert axes.currentIndex().row() == 400
    assert axes.viewport().rect().intersects(axes.visualRect(axes.axes.index(400)))


def test_the_rows_chosen_on_page_w_go_to_dimensions_moved_next(
    panel: WatchedPanel, axes: AxisList, qtbot: QtBot
) -> None:
    qtbot.mouseClick(panel.header_widgets()[1], Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.picker.named.segments["coarse"], Qt.MouseButton.LeftButton)
    panel.picker.hide()
    assert panel.edits.all == []
    assert text_of(panel.header_widgets()[1]) == "rows 0–4 ▾"
    drag(axes.viewport(), spot(axes, 0, 0.0), spot(axes, 0, 2.0))
    assert panel.edits.session.slider("axis/0").rows == RowRange(0, 4)


def test_the_wheel_over_the_list_scrolls_it_and_changes_nothing(panel: WatchedPanel, axes: AxisList) -> None:
    axes.setFocus()
    wheel(axes.viewport(), spot(axes, 1, 0.0), -3)
    assert axes.verticalScrollBar().value() > 0
    assert panel.edits.all == []


def test_values_of_controllers_are_dots_on_directions_and_dimensions(panel: WatchedPanel) -> None:
    row = panel.directions.rows[2]
    panel.show_page(1)
    bare = panel.axes.grab().toImage()
    panel.show_played({row.path: 3.0, "slider/axis/1": 2.0, "truncation.psi": 0.5})
    assert row.slider._played == 3.0
    assert panel.directions.rows[1].slider._played is None
    assert panel.axes.axes.played == {1: 2.0}
    assert panel.axes.grab().toImage() != bare
    panel.show_played({})
    assert row.slider._played is None
    assert panel.axes.grab().toImage() == bare
    assert panel.edits.all == []
