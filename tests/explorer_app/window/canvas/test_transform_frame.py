"""The handles around the picture, under real mouse and key events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer_app.controller.editor import Editor
from explorer_app.session.edits import PLACE, SetParameters, set_transform
from explorer_app.session.parameters import SetParameter
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.transform_frame import TransformFrame
from explorer_app.window.dialogs.shortcuts_dialog import ShortcutsDialog
from explorer_app.window.look import ink, theme
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Frame, FrameTimings, ModelFacts, RenderRequest, Transform
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.mouse import CTRL, LEFT, MIDDLE, SHIFT, drag, move, press, release, wheel
from tests.helpers.near import near
from tests.helpers.panels import mouse
from tests.helpers.windows import calls, dialog_of

ALIAS_FREE = facts(family="StyleGAN3", name="Alias-free", has_transform=True, noise_layers=())


@dataclass
class Hand:
    """What a test does with the frame of a window, and what came of it."""

    window: MainWindow
    controller: FakeController

    @property
    def canvas(self) -> Canvas:
        return self.window.canvas

    @property
    def frame(self) -> TransformFrame:
        return self.canvas.transform

    @property
    def transform(self) -> Transform:
        return self.controller.editing.session.transform

    @property
    def steps(self) -> list[SetParameters]:
        return [call[1] for call in calls(self.controller, "edit") if call[2] and isinstance(call[1], SetParameters)]

    def place(self, name: str) -> QPoint:
        handles = self.frame.handles()
        named = {"knob": handles.knob, "middle": handles.middle, "corner": handles.corners[2]}
        return QPointF(*named[name]).toPoint()

    def inside(self) -> QPoint:
        return self.place("middle") + QPoint(60, 60)


@pytest.fixture
def first_model() -> ModelFacts:
    return ALIAS_FREE


@pytest.fixture
def hand(window: MainWindow, controller: FakeController) -> Hand:
    window.actions_by_key["transform"].trigger()
    QApplication.processEvents()
    return Hand(window, controller)


def test_a_key_and_a_button_below_the_picture_switch_the_mode(hand: Hand) -> None:
    assert hand.frame.isVisible()
    button = hand.frame.button
    assert button is not None
    assert button.isChecked()
    QTest.mouseClick(button, LEFT)
    assert not hand.frame.isVisible()
    QTest.keyClick(hand.canvas, Qt.Key.Key_M)
    assert hand.frame.isVisible()
    assert button.isChecked()
    assert "knob turns" in hand.canvas.caption.text()
    assert hand.canvas.caption_rect().toAlignedRect().contains(button.geometry())


def test_the_button_is_away_while_the_screen_shows_the_picture_alone(hand: Hand) -> None:
    button, action = hand.frame.button, hand.window.actions_by_key["picture-alone"]
    assert button is not None
    for shown in (False, True):
        action.trigger()
        QApplication.processEvents()
        assert button.isVisible() is shown


def test_the_knob_has_room_above_a_fitted_picture(hand: Hand) -> None:
    handles = hand.frame.handles()
    assert handles.knob[1] == pytest.approx(handles.stem[1] - 26, abs=1)
    QTest.keyClick(hand.canvas, Qt.Key.Key_Escape)
    assert hand.canvas.picture_area().top() < handles.stem[1] - 26


def test_dragging_inside_moves_and_is_one_undo_step(hand: Hand) -> None:
    side = hand.canvas.picture_rect().width()
    start = hand.inside()
    before = len(hand.controller.editing.history.entries)
    drag(hand.frame, [start, start + QPoint(10, 5), start + QPoint(40, -20)])
    assert hand.transform == Transform(x=near(40 / side, abs=1e-4), y=near(-20 / side, abs=1e-4))
    assert len(hand.steps) == 1
    assert len(hand.controller.editing.history.entries) == before + 1
    hand.window.actions_by_key["undo"].trigger()
    assert hand.transform == Transform()


def test_two_drags_at_once_after_each_other_are_two_steps_of_the_real_history() -> None:
    editor = Editor()
    for x in (0.1, 0.2):
        editor.edit(set_transform(Transform(x=x / 2)), False, 0.0)
        editor.edit(set_transform(Transform(x=x)), True, 0.1)
    editor.undo()
    assert editor.session.transform == Transform(x=0.1)
    editor.undo()
    assert editor.session.transform == Transform()


def test_a_corner_scales_and_the_knob_turns(hand: Hand) -> None:
    middle = hand.place("middle")
    corner = hand.place("corner")
    drag(hand.frame, [corner, corner + QPoint(-9, -9), middle + (corner - middle) / 2])
    assert hand.transform.scale == pytest.approx(0.5, abs=0.01)
    knob = hand.place("knob")
    drag(hand.frame, [knob, knob + QPoint(-20, 10), QPoint(middle.x() - 80, middle.y())])
    assert hand.transform.degrees == pytest.approx(90.0, abs=1.0)
    assert hand.transform.scale == pytest.approx(0.5, abs=0.01)
    assert len(hand.steps) == 2


def test_ctrl_snaps_the_angle_and_keeps_a_move_to_an_axis(hand: Hand) -> None:
    knob = hand.place("knob")
    drag(hand.frame, [knob, knob + QPoint(-60, 3)], keys=CTRL)
    assert hand.transform.degrees == 15.0
    start = hand.inside()
    drag(hand.frame, [start, start + QPoint(40, 11)], keys=CTRL)
    assert hand.transform.y == 0.0
    assert hand.transform.x > 0.0


def test_shift_goes_ten_times_finer_without_a_jump(hand: Hand) -> None:
    side = hand.canvas.picture_rect().width()
    start = hand.inside()
    press(hand.frame, start)
    move(hand.frame, start + QPoint(50, 0))
    move(hand.frame, start + QPoint(90, 30), keys=SHIFT)
    hand.frame._way.flush()  # as the tick does
    assert hand.transform.x == pytest.approx(54 / side, abs=1e-4)
    assert hand.transform.y == pytest.approx(3 / side, abs=1e-4)
    move(hand.frame, start + QPoint(100, 30))
    release(hand.frame, start + QPoint(100, 30))
    assert hand.transform == Transform(x=near(64 / side, abs=1e-4), y=near(3 / side, abs=1e-4))


def test_a_thousand_moves_between_two_ticks_are_two_edits(hand: Hand) -> None:
    start = hand.inside()
    press(hand.frame, start)
    hand.frame._way._tick.setInterval(60_000)
    for x in range(1, 1001):
        move(hand.frame, start + QPoint(x // 20, 0))
    hand.frame._way.flush()
    assert len(calls(hand.controller, "edit")) == 2
    release(hand.frame, start + QPoint(50, 0))


def double_click(widget: TransformFrame, at: QPoint) -> None:
    press(widget, at)
    release(widget, at)
    mouse(widget, QEvent.Type.MouseButtonDblClick, at)
    release(widget, at)


def test_a_double_click_on_a_handle_resets_its_part(hand: Hand) -> None:
    hand.controller.editing.edit(set_transform(Transform(0.1, 0.05, 20.0, 0.5)))
    double_click(hand.frame, hand.place("knob"))
    assert hand.transform == Transform(0.1, 0.05, 0.0, 0.5)
    double_click(hand.frame, hand.place("corner"))
    assert hand.transform == Transform(0.1, 0.05, 0.0, 1.0)
    double_click(hand.frame, hand.place("middle"))
    assert hand.transform == Transform()
    double_click(hand.frame, hand.place("middle"))
    assert len(hand.steps) == 4, "nothing is left to reset"


def test_escape_cancels_a_drag_and_then_leaves_the_mode(hand: Hand) -> None:
    start = hand.inside()
    press(hand.frame, start)
    move(hand.frame, start + QPoint(30, 0))
    assert hand.transform != Transform()
    QTest.keyClick(hand.canvas, Qt.Key.Key_Escape)
    assert hand.transform == Transform()
    release(hand.frame, start)
    assert hand.steps == []
    assert hand.frame.isVisible()
    press(hand.frame, start)
    move(hand.frame, start + QPoint(30, 0))
    assert hand.transform != Transform()
    assert hand.canvas.cancel_stroke(), "undo cancels as well"
    assert hand.transform == Transform()
    release(hand.frame, start)
    assert hand.steps == []
    QTest.keyClick(hand.canvas, Qt.Key.Key_Escape)
    assert not hand.frame.isVisible()
    assert not hand.window.actions_by_key["transform"].isChecked()


def test_a_press_without_a_move_is_no_step(hand: Hand) -> None:
    drag(hand.frame, [hand.inside()])
    assert calls(hand.controller, "edit") == []


def test_wheel_and_pan_still_reach_the_canvas_and_nothing_walks(hand: Hand) -> None:
    wheel(hand.frame, hand.inside(), 2)
    assert hand.canvas.view.zoom is not None
    zoomed = hand.canvas.view
    drag(hand.frame, [hand.inside(), hand.inside() + QPoint(20, 10)], button=MIDDLE)
    assert hand.canvas.view.dx != zoomed.dx
    assert not [
        call for call in calls(hand.controller, "edit") if isinstance(call[1], SetParameter) and call[1].path == PLACE
    ]
    assert hand.transform == Transform()


def test_the_frame_follows_the_session(hand: Hand) -> None:
    hand.controller.editing.edit(set_transform(Transform(scale=0.5)))
    width = hand.canvas.picture_rect().width()
    corners = hand.frame.handles().corners
    assert corners[1][0] - corners[0][0] == pytest.approx(width / 2)


def test_handles_of_a_picture_that_is_scaled_up_stay_visible(hand: Hand) -> None:
    hand.controller.editing.edit(set_transform(Transform(0.4, -0.3, 20.0, 3.0)))
    handles = hand.frame.handles()
    for place in (*handles.corners, handles.knob, handles.middle):
        assert hand.frame.rect().contains(QPointF(*place).toPoint())


def test_frame_and_handles_are_seen_on_any_picture(hand: Hand) -> None:
    for tokens in (theme.DARK, theme.LIGHT):
        theme.use(tokens)  # what is painted; the style of all widgets takes a window most of a second
        for shade in (0, 255):
            assert_frame_is_seen_on(hand, shade)


def assert_frame_is_seen_on(hand: Hand, shade: int) -> None:
    pixels = np.full((256, 256, 4), shade, np.uint8)
    hand.canvas.show_frame(Frame(RenderRequest("m"), pixels, FrameTimings(1, 0, 1)))
    hand.frame.show_session(set_transform(Transform(scale=0.6)).apply(hand.controller.editing.session))
    picture = hand.canvas.grab().toImage()
    corner = QPointF(*hand.frame.handles().corners[0]).toPoint()
    assert picture.pixelColor(corner) == ink.light()
    tones = {picture.pixelColor(corner.x() + 40, corner.y() + dy).lightness() for dy in range(-4, 5)}
    assert max(tones) - min(tones) > 60, "the line differs from the picture under it"
    ring = {picture.pixelColor(corner.x() + dx, corner.y()).lightness() for dx in range(-10, 0)}
    assert min(ring) < 60 < 180 < max([*ring, QColor(ink.light()).lightness()])


@pytest.mark.parametrize("first_model", [facts()], ids=["StyleGAN2"])
def test_without_a_transform_nothing_of_it_is_seen(window: MainWindow) -> None:
    canvas = window.canvas
    assert not window.actions_by_key["transform"].isVisible()
    QTest.keyClick(canvas, Qt.Key.Key_M)
    assert not canvas.transform.isVisible()
    assert canvas.transform.button is not None
    assert not canvas.transform.button.isVisible()
    assert canvas.transform.room_beside == 0
    window.commands.help.show_shortcuts()
    dialog = dialog_of(window, ShortcutsDialog)
    assert "Transform" not in dialog.shown
    dialog.close()


def test_the_list_of_shortcuts_has_it_for_a_model_that_takes_it(hand: Hand) -> None:
    hand.window.commands.help.show_shortcuts()
    dialog = dialog_of(hand.window, ShortcutsDialog)
    assert "Transform" in dialog.shown
    dialog.close()


def test_another_model_ends_the_mode(hand: Hand) -> None:
    hand.controller.show_model(facts())
    assert not hand.frame.isVisible()
    assert not hand.frame.is_on
    assert not hand.window.actions_by_key["transform"].isChecked()
    hand.controller.show_model(ALIAS_FREE)
    assert not hand.frame.isVisible()
    assert hand.frame.button is not None
    assert hand.frame.button.isVisible()
