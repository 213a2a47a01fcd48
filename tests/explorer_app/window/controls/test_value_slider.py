from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.window.controls.value_slider import ValueSlider
from explorer_app.window.look import theme
from tests.helpers.panels import CTRL, SHIFT, double_click, drag, move, press, release, wheel


class WatchedSlider(ValueSlider):
    """A slider, and where it was moved."""

    seen: list[tuple[float, bool]]


@pytest.fixture
def slider(qtbot: QtBot) -> WatchedSlider:
    slider = WatchedSlider(-10.0, 10.0, snap=0.5)
    slider.seen = []
    slider.moved.connect(lambda value, final: slider.seen.append((value, final)))
    qtbot.addWidget(slider)
    slider.resize(220, 22)
    slider.show()
    slider.setFocus()
    return slider


def at(slider: ValueSlider, amount: float) -> QPointF:
    return QPointF(slider._x_of(amount), 11.0)


def finals(slider: WatchedSlider) -> list[float]:
    return [value for value, final in slider.seen if final]


def test_a_drag_is_one_gesture_that_ends_where_the_hand_lets_go(slider: WatchedSlider) -> None:
    drag(slider, at(slider, 0.0), at(slider, 4.0))
    assert len(slider.seen) > 2
    assert finals(slider) == [pytest.approx(4.0, abs=0.1)]
    assert slider.seen[-1][1]


def test_moves_between_two_refreshes_of_the_screen_are_one(slider: WatchedSlider) -> None:
    press(slider, at(slider, 0.0))
    slider._way._tick.setInterval(60_000)
    for tenth in range(1, 51):
        move(slider, at(slider, tenth / 10.0))
    assert len(slider.seen) == 1
    release(slider, at(slider, 5.0))
    (first, _), *rest = slider.seen
    assert first == pytest.approx(0.1, abs=0.1)
    assert [final for _, final in rest] == [False, True]
    assert rest[-1][0] == pytest.approx(5.0, abs=0.1)


def test_a_press_beside_the_handle_brings_it_there(slider: WatchedSlider) -> None:
    press(slider, at(slider, 6.0))
    assert slider.amount == pytest.approx(6.0, abs=0.1)
    release(slider, at(slider, 6.0))


def test_a_press_on_the_handle_changes_nothing(slider: WatchedSlider) -> None:
    press(slider, at(slider, 0.0) + QPointF(3, 0))
    release(slider, at(slider, 0.0) + QPointF(3, 0))
    assert slider.seen == []


def test_a_drag_that_ends_where_it_began_ends_its_gesture_too(slider: WatchedSlider) -> None:
    press(slider, at(slider, 0.0))
    move(slider, at(slider, 4.0))
    move(slider, at(slider, 0.0))
    release(slider, at(slider, 0.0))
    assert finals(slider) == [0.0]


def test_shift_goes_ten_times_finer(slider: WatchedSlider) -> None:
    drag(slider, at(slider, 0.0), at(slider, 5.0), SHIFT)
    assert slider.amount == pytest.approx(0.5, abs=0.05)


def test_ctrl_snaps(slider: WatchedSlider) -> None:
    drag(slider, at(slider, 0.0), at(slider, 3.3), CTRL)
    assert slider.amount == 3.5


def test_escape_in_a_drag_brings_back_what_was(slider: WatchedSlider, qtbot: QtBot) -> None:
    slider.show_amount(2.0)
    press(slider, at(slider, 2.0))
    move(slider, at(slider, 7.0))
    with qtbot.waitSignal(slider.cancelled):
        qtbot.keyClick(slider, Qt.Key.Key_Escape)
    assert slider.amount == 2.0
    move(slider, at(slider, 9.0))
    release(slider, at(slider, 9.0))
    assert slider.amount == 2.0
    assert finals(slider) == []


def test_undo_in_a_drag_cancels_it_and_after_a_press_alone_only_ends_it(slider: WatchedSlider) -> None:
    assert not slider.undo_drag()
    press(slider, at(slider, 0.0))
    assert not slider.undo_drag(), "undo reverts the last step"
    move(slider, at(slider, 7.0))
    release(slider, at(slider, 7.0))
    assert slider.seen == []
    press(slider, at(slider, 0.0))
    move(slider, at(slider, 7.0))
    assert slider.undo_drag()
    move(slider, at(slider, 9.0))
    release(slider, at(slider, 9.0))
    assert slider.amount == 0.0
    assert finals(slider) == []
    press(slider, at(slider, 6.0))
    assert slider.undo_drag(), "a press beside the handle has moved it"
    assert slider.amount == 0.0


def test_a_double_click_resets_in_one_gesture(slider: WatchedSlider) -> None:
    slider.show_amount(-3.0)
    double_click(slider, at(slider, 5.0))
    assert slider.amount == 0.0
    assert finals(slider) == [0.0]


def test_a_click_ends_its_gesture_by_itself(slider: WatchedSlider, qtbot: QtBot) -> None:
    press(slider, at(slider, 5.0))
    release(slider, at(slider, 5.0))
    qtbot.waitUntil(lambda: len(finals(slider)) == 1)


def test_the_wheel_is_left_to_the_list_without_focus(slider: WatchedSlider, qtbot: QtBot) -> None:
    slider.clearFocus()
    assert not wheel(slider, at(slider, 0.0), 1)
    assert slider.amount == 0.0


def test_the_wheel_steps_with_focus_and_ends_when_it_rests(slider: WatchedSlider, qtbot: QtBot) -> None:
    assert QApplication.focusWidget() is slider
    assert wheel(slider, at(slider, 0.0), 2)
    assert wheel(slider, at(slider, 0.0), 1, SHIFT)
    assert slider.amount == pytest.approx(1.01)
    assert finals(slider) == []
    qtbot.waitUntil(lambda: finals(slider) == [pytest.approx(1.01)])


def test_keys_step_jump_and_reset(slider: WatchedSlider, qtbot: QtBot) -> None:
    for key, keys, expected in (
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 0.5),
        (Qt.Key.Key_Left, SHIFT, 0.49),
        (Qt.Key.Key_PageUp, Qt.KeyboardModifier.NoModifier, 5.49),
        (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, 10.0),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, -10.0),
        (Qt.Key.Key_Backspace, Qt.KeyboardModifier.NoModifier, 0.0),
    ):
        qtbot.keyClick(slider, key, keys)
        assert slider.amount == pytest.approx(expected)
    assert len(finals(slider)) == 6


def test_a_held_key_is_one_gesture(slider: WatchedSlider, qtbot: QtBot) -> None:
    for _ in range(3):
        qtbot.keyPress(slider, Qt.Key.Key_Right)
    qtbot.keyRelease(slider, Qt.Key.Key_Right)
    assert finals(slider) == [1.5]


def test_showing_a_value_emits_nothing_and_never_tears_the_handle_from_the_hand(slider: WatchedSlider) -> None:
    slider.show_amount(3.0)
    press(slider, at(slider, 3.0))
    move(slider, at(slider, 5.0))
    slider.seen.clear()
    slider.show_amount(-9.0)
    assert slider.amount == pytest.approx(5.0, abs=0.1)
    assert slider.seen == []
    release(slider, at(slider, 5.0))


def test_a_typed_value_beyond_the_ends_is_kept_until_the_handle_is_taken(slider: WatchedSlider) -> None:
    slider.show_amount(25.0)
    assert slider.amount == 25.0
    assert slider.value() == slider.maximum()


def test_hiding_in_a_drag_ends_the_gesture(slider: WatchedSlider) -> None:
    press(slider, at(slider, 0.0))
    move(slider, at(slider, 2.0))
    slider.hide()
    assert len(finals(slider)) == 1


def test_ends_too_far_for_qts_whole_numbers_are_reached_nevertheless(qtbot: QtBot) -> None:
    slider = ValueSlider(-3e9, 5e12)
    qtbot.addWidget(slider)
    slider.setFocus()
    qtbot.keyClick(slider, Qt.Key.Key_End)
    assert slider.amount == 5e12
    assert slider.value() == slider.maximum() > 0


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (-1.0, 2.0), (-0.5, 6.0), (-10.0, 10.0)])
def test_zero_is_in_the_middle_whatever_the_ends_are(qtbot: QtBot, ends: tuple[float, float]) -> None:
    slider = ValueSlider(*ends)
    qtbot.addWidget(slider)
    slider.resize(141, 22)
    assert slider._x_of(0.0) == pytest.approx(slider.width() / 2)
    low, high = (slider._x_of(end) for end in ends)
    assert low + high == pytest.approx(slider.width())


def test_a_gesture_reaches_every_amount_on_both_sides_of_the_middle(qtbot: QtBot) -> None:
    slider = ValueSlider(-0.5, 6.0, step=0.01)
    qtbot.addWidget(slider)
    slider.resize(400, 22)
    said = []
    slider.moved.connect(lambda amount, final: said.append(amount))
    for amount in (-0.5, -0.25, 3.0, 6.0):
        drag(slider, at(slider, 0.0), at(slider, amount))
        assert said[-1] == pytest.approx(amount, abs=0.01)
        slider.show_amount(0.0)


def test_the_mark_of_the_neutral_value_shows_while_the_handle_stands_on_it(qtbot: QtBot) -> None:
    slider = ValueSlider(-1.0, 1.0)
    qtbot.addWidget(slider)
    slider.resize(141, 22)
    slider.show_amount(0.0)
    with_mark = slider.grab().toImage()
    above_the_handle = with_mark.pixelColor(70, 3)
    beside = with_mark.pixelColor(60, 3)
    assert above_the_handle != beside


def test_a_dot_shows_the_value_that_a_controller_gives(slider: WatchedSlider) -> None:
    place = at(slider, 6.0).toPoint()
    bare = slider.grab().toImage()
    slider.show_played(6.0)
    dotted = slider.grab().toImage()
    assert dotted.pixelColor(place) == theme.current().accent
    assert bare.pixelColor(place) != dotted.pixelColor(place)
    assert slider.amount == 0.0
    slider.show_played(99.0)
    assert slider.grab().toImage().pixelColor(at(slider, 10.0).toPoint()) == theme.current().accent, "at the end"
    slider.show_played(None)
    assert slider.grab().toImage() == bare
    assert slider.seen == []
