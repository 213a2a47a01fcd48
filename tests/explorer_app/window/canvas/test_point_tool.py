"""Dragging points in the window, under real mouse and key events; an optimiser that follows its targets answers."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from itertools import combinations, count

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor, QCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLayout, QLayoutItem, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.controller.drag_points import LOST
from explorer_app.messages import MessageLog
from explorer_app.session.edits import AddBlend, GoToSeed, RemoveBlend
from explorer_app.window.canvas.drag_bar import DragBar
from explorer_app.window.canvas.mask_brush import Mode
from explorer_app.window.canvas.point_tool import PointTool
from explorer_app.window.look import theme
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Latent, RowRange
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.mouse import LEFT, SHIFT, drag, move, press, release, wheel
from tests.helpers.near import near
from tests.helpers.tools_host import ToolsHost
from tests.helpers.windows import calls

BOTH_THEMES = pytest.mark.parametrize("tokens", [theme.DARK, theme.LIGHT], ids=["dark", "light"])
"""Colours to paint with: the style of all widgets, which takes a window most of a second, stays."""


@dataclass
class Hand:
    """What a test does with the tool, and what came of it."""

    window: ToolsHost | MainWindow
    controller: FakeController

    @property
    def tool(self) -> PointTool:
        return self.window.tools.points

    @property
    def bar(self) -> DragBar:
        return self.window.tools.bar

    @property
    def scale(self) -> float:
        """Px of the canvas a pixel of the picture."""
        return self.window.canvas.picture_rect().width() / 256

    @property
    def points(self) -> list[tuple[float, float]]:
        return [point.place for point in self.controller.point_drag.points]

    @property
    def text(self) -> str:
        return self.window.canvas.caption.text()

    def at(self, x: float, y: float) -> QPoint:
        """The place on the canvas of a point of the picture."""
        return QPointF(*self.tool.place_of((x, y))).toPoint()

    def stroke(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag from one point of the picture to another one, and let it settle."""
        drag(self.tool, [self.at(*start), self.at(*end)])
        self.controller.drag_renders.run_to_rest()

    def key(self, key: Qt.Key, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.window.canvas, key, keys)

    @property
    def steps(self) -> list[str]:
        return [call[1].label for call in calls(self.controller, "edit") if call[2]]  # type: ignore[attr-defined]


@pytest.fixture
def hand(qtbot: QtBot, controller: FakeController, messages: MessageLog) -> Hand:
    """The tool over a canvas without the rest of the window."""
    host = ToolsHost(controller, messages)
    qtbot.addWidget(host)
    QApplication.processEvents()
    return Hand(host, controller)


def test_a_key_a_button_and_the_bar_switch_the_tool_and_no_panel_gets_narrower(
    window: MainWindow, controller: FakeController
) -> None:
    def widths() -> list[int]:
        QApplication.processEvents()
        return [dock.width() for dock in window.docks.values() if dock.isVisible()]

    hand = Hand(window, controller)
    before = widths()
    hand.key(Qt.Key.Key_D)
    assert widths() == before
    assert hand.bar.close_button.y() > hand.bar.modes.y() + hand.bar.modes.height() / 2, "it takes two lines"
    assert hand.tool.isVisible()
    assert hand.bar.isVisible()
    assert hand.tool.button.isChecked()
    preparing = hand.controller.point_drag._preparation._thread
    assert preparing is not None
    preparing.join()
    assert hand.controller.drag_maker.prepared == 1, "the network is opened before the first stroke"
    QTest.mouseClick(hand.tool.button, LEFT)
    assert not hand.tool.isVisible()
    assert not hand.bar.isVisible()
    hand.key(Qt.Key.Key_D)
    QTest.mouseClick(hand.bar.close_button, LEFT)
    assert not hand.tool.isVisible()
    assert not hand.window.actions_by_key["drag-points"].isChecked()
    hand.controller.show_model(facts(has_transform=True))
    hand.key(Qt.Key.Key_D)
    hand.key(Qt.Key.Key_M)
    assert hand.window.canvas.transform.is_on
    assert not hand.tool.is_on, "one tool at a time"
    hand.key(Qt.Key.Key_D)
    assert not hand.window.canvas.transform.is_on


def test_a_second_click_on_the_x_of_a_message_does_not_start_the_tool(
    window: MainWindow, messages: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    button, strip = window.tools.points.button, window.message_strip
    messages.warning("Look out.")
    QApplication.processEvents()
    (line,) = strip.lines
    x = line.close_button.mapToGlobal(line.close_button.rect().center())
    monkeypatch.setattr(QCursor, "pos", lambda: x)
    QTest.mouseClick(line.close_button, LEFT)
    QApplication.processEvents()
    here = button.mapFromGlobal(x)
    assert button.isVisible()
    assert button.rect().contains(here), "it is where the x was"
    QTest.mouseClick(button, LEFT, pos=here)
    QTest.mouseDClick(button, LEFT, pos=here)
    assert not window.tools.points.is_on
    QApplication.sendEvent(button, QEvent(QEvent.Type.Leave))
    QTest.mouseClick(button, LEFT, pos=here)
    assert window.tools.points.is_on


def test_the_sliders_of_the_brush_are_below_each_other_in_a_very_narrow_bar(hand: Hand, qtbot: QtBot) -> None:
    hand.window.resize(240, 600)
    hand.window.tools.brush.set_mode("freeze")
    rows = (hand.bar.brush_size, hand.bar.softness)

    def is_legible() -> None:
        assert hand.bar.width() <= 240
        assert rows[0].geometry().bottom() < rows[1].y()
        for row in rows:
            assert row.slider.geometry().right() < row.field.x()
            assert row.field.geometry().right() <= row.width()

    qtbot.waitUntil(is_legible, timeout=3000)


@pytest.mark.parametrize("mode", ["points", "freeze"])
@pytest.mark.parametrize("width", [390, 480, 660, 900])
def test_the_bar_shows_every_control_in_full_beside_a_narrow_canvas(
    hand: Hand, qtbot: QtBot, mode: Mode, width: int
) -> None:
    hand.window.resize(width, 600)
    hand.window.tools.brush.set_mode(mode)
    bar = hand.bar
    controls: list[QWidget] = [bar.modes, bar.close_button]
    controls += [bar.rows, bar.block, bar.reconstruct, bar.keys] if mode == "points" else [bar.brush_size, bar.softness]

    def shows_all() -> None:
        assert bar.width() <= width
        for control in controls:
            assert control.isVisible()
            assert control.width() >= (control.minimumWidth() or control.minimumSizeHint().width())
            assert bar.rect().contains(control.geometry())
        assert not any(a.geometry().intersects(b.geometry()) for a, b in combinations(controls, 2))

    qtbot.waitUntil(shows_all)


def test_the_bar_has_one_line_beside_a_low_canvas_so_that_the_picture_keeps_its_room(hand: Hand, qtbot: QtBot) -> None:
    hand.window.canvas.setMinimumHeight(60)  # as panels squeeze it
    for height, is_one_line in ((600, False), (240, True), (600, False)):
        hand.window.resize(480, height)

        def has_lines(is_one_line: bool = is_one_line) -> None:
            assert hand.bar.isVisible()
            assert (hand.bar.height() < 2 * hand.bar.close_button.height()) is is_one_line
            assert hand.bar.rect().contains(hand.bar.close_button.mapTo(hand.bar, QPoint(1, 1)))

        qtbot.waitUntil(has_lines, timeout=3000)


def test_the_bar_keeps_no_items_of_its_lines_which_qt_deletes(hand: Hand) -> None:
    def kept() -> list[object]:
        return [item for item in gc.get_objects() if isinstance(item, QLayoutItem) and not isinstance(item, QLayout)]

    before = len(kept())
    hand.window.canvas.setMinimumHeight(60)
    for width, height in ((480, 600), (480, 240), (900, 600), (300, 240)):
        hand.window.resize(width, height)
        QApplication.processEvents()
    assert len(kept()) == before, "Qt's next objects at their addresses would be taken for them"


@pytest.mark.parametrize(("width", "has_label"), [(340, False), (660, True)])
def test_the_modes_keep_their_space_in_a_bar_that_is_too_narrow_for_a_label(
    hand: Hand, qtbot: QtBot, width: int, has_label: bool
) -> None:
    hand.window.resize(width, 600)
    hand.window.tools.brush.set_mode("points")

    def has_space() -> None:
        assert hand.bar.rows_label.isVisible() == has_label
        assert all(part.width() >= part.sizeHint().width() for part in hand.bar.modes.segments.values())

    qtbot.waitUntil(has_space)


def test_the_button_is_away_where_the_picture_has_its_place(window: MainWindow, controller: FakeController) -> None:
    button = window.tools.points.button
    assert button.isVisible()
    window.actions_by_key["picture-alone"].trigger()
    window.canvas.resize(400, 400)  # a square, which the picture fills
    window.tools.points.place()
    assert window.canvas.picture_rect().intersects(button.geometry())
    assert not button.isVisible()
    window.canvas.resize(900, 400)
    window.tools.points.place()
    assert not window.canvas.picture_rect().intersects(button.geometry())
    assert not button.isVisible(), "a screen with the picture alone has no buttons beside it"
    window.actions_by_key["picture-alone"].trigger()
    QApplication.processEvents()
    assert button.isVisible()


def test_a_press_and_a_drag_move_the_point_under_the_pointer(hand: Hand) -> None:
    start = hand.at(60, 80)
    press(hand.tool, start)
    move(hand.tool, start + QPoint(round(20 * hand.scale), 0))
    assert hand.text.startswith("Drag a point · 1 handle · preparing")
    hand.controller.drag_renders.advance()
    assert "12 px left" in hand.text
    assert hand.text.endswith("Esc cancels the stroke")
    release(hand.tool, start + QPoint(round(20 * hand.scale), 0))
    assert "settling" in hand.text
    hand.controller.drag_renders.run_to_rest()
    ((x, y),) = hand.points
    assert (x, y) == (near(80, abs=1), near(80, abs=1))
    assert hand.steps == ["Drag a point"]
    assert "Esc leaves the tool" in hand.text


def test_escape_brings_the_picture_back_and_a_second_one_leaves(hand: Hand) -> None:
    before = hand.controller.editing.session
    press(hand.tool, hand.at(60, 80))
    move(hand.tool, hand.at(90, 80))
    hand.controller.drag_renders.advance(2)
    assert hand.controller.editing.session != before
    hand.key(Qt.Key.Key_Escape)
    move(hand.tool, hand.at(110, 80))
    release(hand.tool, hand.at(110, 80))
    assert hand.controller.editing.session == before
    assert hand.points == []
    assert hand.steps == []
    hand.key(Qt.Key.Key_Escape)
    assert not hand.tool.is_on


def test_a_click_sets_a_pin_and_with_shift_a_handle(hand: Hand) -> None:
    QTest.mouseClick(hand.tool, LEFT, pos=hand.at(30, 30))
    QTest.mouseClick(hand.tool, LEFT, SHIFT, hand.at(60, 60))
    assert [point.is_pin for point in hand.controller.point_drag.points] == [True, False]
    assert "1 handle, 1 pin" in hand.text
    assert calls(hand.controller, "edit") == []


def test_shift_moves_all_handles_together(hand: Hand) -> None:
    QTest.mouseClick(hand.tool, LEFT, SHIFT, hand.at(60, 60))
    QTest.mousePress(hand.tool, LEFT, SHIFT, hand.at(120, 60))
    move(hand.tool, hand.at(136, 60), keys=SHIFT)
    release(hand.tool, hand.at(136, 60))
    hand.controller.drag_renders.run_to_rest()
    assert hand.points == [(near(76, abs=1), near(60, abs=1)), (near(136, abs=1), near(60, abs=1))]


def test_a_handle_is_taken_hold_of_again(hand: Hand) -> None:
    hand.stroke((60, 80), (80, 80))
    hand.stroke((80, 80), (80, 100))
    assert len(hand.points) == 1
    assert hand.points[0] == (near(80, abs=1), near(100, abs=1))


@pytest.mark.parametrize("drags", [True, False])
def test_a_handle_that_goes_away_under_the_pointer_is_not_dragged(hand: Hand, drags: bool) -> None:
    QTest.mouseClick(hand.tool, LEFT, SHIFT, hand.at(60, 60))
    QTest.mouseClick(hand.tool, LEFT, SHIFT, hand.at(120, 60))
    press(hand.tool, hand.at(120, 60))
    hand.controller.editing.edit(GoToSeed(9))  # as the timeline does that begins to play
    assert hand.points == []
    if drags:
        move(hand.tool, hand.at(136, 60))
    release(hand.tool, hand.at(136 if drags else 120, 60))
    hand.controller.drag_renders.run_to_rest()
    assert hand.points == ([(near(136, abs=1), near(60, abs=1))] if drags else [])
    hand.key(Qt.Key.Key_Right)


def test_a_pin_that_is_dragged_becomes_a_handle(hand: Hand) -> None:
    QTest.mouseClick(hand.tool, LEFT, pos=hand.at(120, 40))
    QTest.mouseClick(hand.tool, LEFT, pos=hand.at(60, 80))
    hand.stroke((60, 80), (80, 80))
    assert [point.is_pin for point in hand.controller.point_drag.points] == [True, False]
    assert hand.points[1] == (near(80, abs=1), near(80, abs=1))
    (made,) = hand.controller.drag_maker.made
    assert len(made.settings.pins) == 1, "a pin below the handle would hold it back"


def test_an_arrow_does_not_take_a_handle_out_of_the_hand_that_drags_it(hand: Hand) -> None:
    press(hand.tool, hand.at(100, 100))
    move(hand.tool, hand.at(120, 100))
    (before,) = hand.controller.point_drag.points
    hand.key(Qt.Key.Key_Right)
    assert hand.controller.point_drag.phase != "settling"
    assert hand.controller.point_drag.points == (before,)
    move(hand.tool, hand.at(140, 100))
    release(hand.tool, hand.at(140, 100))
    (point,) = hand.controller.point_drag.points
    assert abs(point.target[0] - 140.0) < 0.5, "the pointer still moves it"


def test_arrows_nudge_and_delete_removes_the_selected_point(hand: Hand) -> None:
    QTest.mouseClick(hand.tool, LEFT, SHIFT, hand.at(60, 60))
    hand.key(Qt.Key.Key_Right)
    hand.key(Qt.Key.Key_Down, SHIFT)
    hand.controller.drag_renders.run_to_rest()
    assert hand.points == [(near(61, abs=0.6), near(60.25, abs=0.6))]
    hand.key(Qt.Key.Key_Delete)
    assert hand.points == []
    hand.key(Qt.Key.Key_Right)
    assert hand.steps[-1] == "Walk", "without a handle arrows walk, as ever"


def test_a_press_beside_the_picture_does_nothing_and_the_wheel_zooms(hand: Hand) -> None:
    drag(hand.tool, [QPoint(4, 4), QPoint(40, 40)])
    assert calls(hand.controller, "edit") == []
    before = hand.scale
    wheel(hand.tool, hand.at(60, 60), 2)
    assert hand.scale > before
    hand.stroke((60, 60), (70, 60))
    assert hand.points == [(near(70, abs=1), near(60, abs=1))], "points are pixels of the picture at any scale"


def test_a_lost_handle_is_drawn_and_reported(hand: Hand) -> None:
    press(hand.tool, hand.at(60, 80))
    move(hand.tool, hand.at(160, 80))
    hand.controller.drag_renders.advance()
    hand.controller.drag_renders.drag.lost = {0}
    hand.controller.drag_renders.advance()
    assert hand.text.startswith(LOST)
    caption, metrics = hand.window.canvas.caption, hand.window.fontMetrics()
    room = metrics.horizontalAdvance(hand.text)
    assert caption.text_within(metrics, room) == hand.text
    cut = caption.text_within(metrics, round(0.8 * room))
    assert cut.startswith("This model")
    assert cut.endswith("… · Esc cancels the stroke"), "a narrow canvas still shows what Escape does"
    assert metrics.horizontalAdvance(cut) < room
    assert metrics.horizontalAdvance(caption.text_within(metrics, room // 10)) <= room // 10
    release(hand.tool, hand.at(160, 80))


@BOTH_THEMES
def test_points_stand_out_in_both_themes(hand: Hand, tokens: theme.Tokens) -> None:
    theme.use(tokens)
    QTest.mouseClick(hand.tool, LEFT, SHIFT, hand.at(60, 60))
    hand.controller.point_drag.select(None)
    picture = hand.window.canvas.grab().toImage()
    ratio = picture.devicePixelRatio()
    colour = picture.pixelColor((QPointF(hand.at(60, 60)) * ratio).toPoint())
    assert colour == QColor(theme.current().accent)


def test_the_bar_sets_rows_and_features_and_fades_the_edit(hand: Hand) -> None:
    drag_state = hand.controller.point_drag
    assert hand.bar.rows.rows == RowRange(0, 7)
    assert not hand.bar.reconstruct.isEnabled()
    assert not hand.bar.keys.isEnabled()
    hand.bar.picker.rows_chosen.emit(RowRange(2, 5))
    hand.bar.block.setCurrentIndex(hand.bar.block.findData(32))
    hand.bar.block.activated.emit(hand.bar.block.currentIndex())
    hand.stroke((60, 80), (80, 80))
    (made,) = hand.controller.drag_maker.made
    assert (made.settings.rows, made.settings.block) == (RowRange(2, 5), 32)
    assert hand.bar.reconstruct.isEnabled()
    hand.bar.reconstruct.slider.setFocus()
    QTest.keyClick(hand.bar.reconstruct.slider, Qt.Key.Key_Right)
    assert drag_state.share == pytest.approx(0.9)
    assert hand.steps[-1] == "Fade edit"


def test_a_stroke_becomes_keys_by_a_button(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    tenths = count()
    monkeypatch.setattr(hand.controller.point_drag, "_clock", lambda: next(tenths) / 10)  # a key needs a frame
    hand.stroke((60, 80), (100, 80))
    QTest.mouseClick(hand.bar.keys, LEFT)
    track = hand.controller.editing.session.timeline.track("pinned_blend")
    assert track is not None
    assert len(track.keys) > 2
    QTest.mouseClick(hand.bar.clear, LEFT)
    assert hand.points == []


def test_a_brush_freezes_and_thaws_and_each_stroke_is_one_step(hand: Hand) -> None:
    QTest.mouseClick(hand.bar.modes.segments["freeze"], LEFT)
    assert hand.bar.brush_size.isVisible()
    assert not hand.bar.rows.isVisible()
    assert hand.text.startswith("Paint what stays as it is")
    before = hand.bar.brush_size.slider.amount
    hand.key(Qt.Key.Key_BracketRight)
    wheel(hand.tool, hand.at(60, 60), 1)
    assert hand.bar.brush_size.slider.amount == pytest.approx(before * 1.15**2, abs=0.01)
    drag(hand.tool, [hand.at(40, 100), hand.at(120, 100), hand.at(200, 100)])
    mask = hand.controller.editing.session.mask
    assert mask is not None
    assert mask.shares[50, 20:100].min() > 0.9
    assert mask.shares[10].max() == 0.0
    assert hand.steps == ["Freeze"]
    assert hand.points == [], "no point was set"
    QTest.mouseClick(hand.bar.modes.segments["thaw"], LEFT)
    press(hand.tool, hand.at(120, 100))
    assert hand.controller.editing.session.mask != mask
    hand.key(Qt.Key.Key_Escape)
    release(hand.tool, hand.at(120, 100))
    assert hand.controller.editing.session.mask == mask, "Escape brings it back"
    QTest.mouseClick(hand.bar.invert, LEFT)
    inverse = hand.controller.editing.session.mask
    assert inverse is not None
    assert inverse.shares[10].min() == 1.0
    hand.controller.editing.undo()
    assert hand.controller.editing.session.mask == mask
    assert hand.window.tools.brush.mask == mask, "the overlay follows undo"
    QTest.mouseClick(hand.bar.clear_mask, LEFT)
    assert hand.controller.editing.session.mask is None
    hand.key(Qt.Key.Key_Escape)
    assert hand.window.tools.brush.mode == "points"
    assert hand.tool.is_on


def test_a_stroke_of_the_brush_may_begin_beside_the_picture(hand: Hand) -> None:
    QTest.mouseClick(hand.bar.modes.segments["freeze"], LEFT)
    drag(hand.tool, [hand.at(-40, 100), hand.at(60, 100)])
    mask = hand.controller.editing.session.mask
    assert mask is not None
    assert mask.shares[50, 0:30].min() > 0.9, "up to the edge"
    assert hand.steps == ["Freeze"]
    drag(hand.tool, [hand.at(-60, 100), hand.at(-60, 120)])
    assert hand.controller.editing.session.mask == mask, "nothing was touched"


def test_undo_under_the_pen_cancels_the_stroke_and_the_rest_of_it_paints_nothing(
    window: MainWindow, controller: FakeController
) -> None:
    hand = Hand(window, controller)
    hand.key(Qt.Key.Key_D)
    QTest.mouseClick(hand.bar.modes.segments["freeze"], LEFT)
    press(hand.tool, hand.at(40, 100))
    move(hand.tool, hand.at(120, 100))
    assert controller.editing.session.mask is not None
    shows: list[bool] = []
    window.tools.brush.changed.connect(lambda: shows.append(True))
    hand.key(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert controller.editing.session.mask is None, "undo is on though there is no step yet"
    assert shows, "the tool is painted again, without the stroke"
    move(hand.tool, hand.at(200, 100))
    assert hand.tool._pointer == QPointF(hand.at(200, 100)), "the brush follows the pointer"
    release(hand.tool, hand.at(200, 100))
    assert controller.editing.session.mask is None
    assert window.tools.brush.mask is None
    assert hand.steps == []
    assert not window.actions_by_key["undo"].isEnabled()
    drag(hand.tool, [hand.at(40, 100), hand.at(120, 100)])
    assert hand.steps == ["Freeze"], "the next stroke paints"


def test_another_step_under_the_pen_ends_the_stroke(hand: Hand) -> None:
    QTest.mouseClick(hand.bar.modes.segments["freeze"], LEFT)
    drag(hand.tool, [hand.at(40, 100), hand.at(120, 100)])
    press(hand.tool, hand.at(40, 200))
    hand.controller.editing.undo()  # from somewhere else than the menu, as by a controller
    move(hand.tool, hand.at(120, 200))
    release(hand.tool, hand.at(120, 200))
    assert hand.controller.editing.session.mask is None
    assert hand.steps == ["Freeze"]


def test_undo_while_a_point_is_dragged_cancels_the_drag(window: MainWindow, controller: FakeController) -> None:
    hand = Hand(window, controller)
    before = controller.editing.session
    hand.key(Qt.Key.Key_D)
    press(hand.tool, hand.at(60, 80))
    move(hand.tool, hand.at(90, 80))
    controller.drag_renders.advance(2)
    assert controller.editing.session != before
    hand.key(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    move(hand.tool, hand.at(110, 80))
    release(hand.tool, hand.at(110, 80))
    assert controller.editing.session == before
    assert hand.points == []


def test_the_bar_passes_the_keys_that_it_does_not_use_to_the_tool(hand: Hand) -> None:
    freeze = hand.bar.modes.segments["freeze"]
    QTest.mouseClick(freeze, LEFT)
    freeze.setFocus()
    before = hand.bar.brush_size.slider.amount
    QTest.keyClick(freeze, Qt.Key.Key_BracketRight)
    assert hand.bar.brush_size.slider.amount > before
    QTest.keyClick(freeze, Qt.Key.Key_Escape)
    assert hand.window.tools.brush.mode == "points"
    assert hand.window.focusWidget() is hand.window.canvas
    QTest.keyClick(hand.bar.block, Qt.Key.Key_Escape)
    assert not hand.tool.is_on


def test_a_double_click_brings_the_first_size_of_the_brush_back(hand: Hand) -> None:
    QTest.mouseClick(hand.bar.modes.segments["freeze"], LEFT)
    brush = hand.window.tools.brush
    first = brush.size, brush.softness
    brush.set_size(0.3)
    brush.set_softness(0.9)
    for row in (hand.bar.brush_size, hand.bar.softness):
        QTest.mouseDClick(row.slider, LEFT)
    assert (brush.size, brush.softness) == first


def test_what_is_painted_fades_as_widely_as_the_bar_says(hand: Hand) -> None:
    QTest.mouseClick(hand.bar.modes.segments["freeze"], LEFT)
    slider, faded = hand.bar.softness.slider, []
    for end in (-400, 400):
        middle = slider.rect().center()
        drag(slider, [middle, middle + QPoint(end, 0)])
        drag(hand.tool, [hand.at(100, 100), hand.at(110, 100)])
        mask = hand.controller.editing.session.mask
        assert mask is not None
        faded.append(int(((mask.shares > 0.05) & (mask.shares < 0.95)).sum()))
        QTest.mouseClick(hand.bar.clear_mask, LEFT)
    assert faded[1] > 4 * faded[0]


def test_the_brush_paints_the_mask_of_a_blend_and_returns_to_dragging(hand: Hand) -> None:
    editing, tools = hand.controller.editing, hand.window.tools
    editing.edit(AddBlend(Latent()))
    painted: list[int] = []
    tools.painting_changed.connect(painted.append)
    tools.paint_blend(1)
    assert hand.tool.is_on
    assert hand.bar.strokes.isVisible()
    assert not hand.bar.modes.isVisible()
    assert hand.text.startswith("Paint where the second picture shows")
    drag(hand.tool, [hand.at(40, 100), hand.at(120, 100), hand.at(200, 100)])
    mask = editing.session.blends[0].mask
    assert mask is not None
    assert mask.shares[50, 20:100].min() > 0.9
    assert editing.session.mask is None, "nothing is frozen"
    assert hand.steps[-1] == "Paint blend"
    QTest.mouseClick(hand.bar.strokes.segments["thaw"], LEFT)
    drag(hand.tool, [hand.at(40, 100), hand.at(60, 100)])
    less = editing.session.blends[0].mask
    assert less is not None
    assert less.shares[50, 25] == 0.0
    editing.undo()
    assert tools.brush.mask == mask, "the outline follows undo"
    hand.key(Qt.Key.Key_Escape)
    assert not hand.tool.is_on
    assert tools.brush.mask is None
    assert painted == [1, 0]
    tools.paint_blend(1)
    editing.edit(RemoveBlend(1))
    assert not hand.tool.is_on, "a blend that is gone is not painted"


def test_keys_leave_points_alone_that_are_hidden_while_a_blend_is_painted(hand: Hand) -> None:
    hand.controller.editing.edit(AddBlend(Latent()))
    QTest.mouseClick(hand.tool, LEFT, pos=hand.at(60, 60))
    pins = hand.points
    assert pins
    hand.window.tools.paint_blend(1)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Delete):
        hand.key(key)
    assert hand.points == pins


@BOTH_THEMES
def test_what_is_frozen_is_striped_in_two_inks(hand: Hand, tokens: theme.Tokens) -> None:
    theme.use(tokens)
    canvas = hand.window.canvas
    place = hand.at(128, 128)
    area = QRect(place - QPoint(20, 20), place + QPoint(20, 20))
    before = canvas.grab(area).toImage()
    hand.window.tools.brush.invert()
    after = canvas.grab(area).toImage()
    gains = [after.pixelColor(x, 20).lightness() - before.pixelColor(x, 20).lightness() for x in range(after.width())]
    assert max(gains) - min(gains) > 20
