"""Keys, their selection and the ruler of the timeline, by real mouse and key events."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import Easing, Key
from explorer_app.window.timeline.timeline_menus import key_menu
from explorer_app.window.timeline.timeline_view import TimelineView
from tests.helpers.panels import CTRL, LEFT, SHIFT, Edits, model_directions, model_facts, mouse
from tests.helpers.timelines import GAIN, MOVE, PRESS, PSI, RELEASE, at, drag, shift, times

ALT = Qt.KeyboardModifier.AltModifier


def test_a_key_is_dragged_in_time_as_one_step_and_snaps_to_frames(edits: Edits, view: TimelineView) -> None:
    start = at(view, PSI, 4)
    drag(view, start, shift(view, start, 0.5), shift(view, start, 1.03))
    assert times(edits) == [0, 5, 8]
    assert len(edits.steps) == 1
    assert edits.steps[0].label == "Move keys"


@pytest.mark.parametrize("held", [ALT, CTRL], ids=["alt", "ctrl"])
@pytest.mark.parametrize("is_selected", [False, True])
def test_alt_or_ctrl_drags_a_copy(
    edits: Edits, view: TimelineView, held: Qt.KeyboardModifier, *, is_selected: bool
) -> None:
    view.select(frozenset({(PSI, Fraction(4))}) if is_selected else frozenset())
    start = at(view, PSI, 4)
    drag(view, start, shift(view, start, 1), shift(view, start, 2), keys=held)
    assert times(edits) == [0, 4, 6, 8]


@pytest.mark.parametrize("held", [SHIFT, CTRL], ids=["shift", "ctrl"])
def test_a_click_with_shift_or_ctrl_adds_a_key_to_the_selection_or_takes_it_out(
    edits: Edits, view: TimelineView, held: Qt.KeyboardModifier
) -> None:
    for t in (0, 4, 0):
        drag(view, at(view, PSI, t), keys=held)
    assert view.selection == {(PSI, 4)}
    assert edits.steps == []


def test_a_key_is_dragged_in_value_when_the_hand_goes_up_first(edits: Edits, view: TimelineView) -> None:
    start = at(view, PSI, 8)
    drag(view, start, start - QPoint(0, 6), start - QPoint(1, 10))
    track = edits.session.timeline.track(PSI)
    assert track is not None
    assert track.keys[2].value > 0.7
    assert times(edits) == [0, 4, 8]


def test_escape_brings_dragged_keys_back(edits: Edits, view: TimelineView) -> None:
    start = at(view, PSI, 4)
    drag(view, start, shift(view, start, 1), release=False)
    assert times(edits) == [0, 5, 8]
    QTest.keyClick(view, Qt.Key.Key_Escape)
    assert times(edits) == [0, 4, 8]
    assert edits.cancelled == 1
    assert edits.steps == []


def test_other_buttons_and_menus_leave_a_drag_of_keys_alone(edits: Edits, view: TimelineView) -> None:
    start, right, middle = at(view, PSI, 4), Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton
    later = shift(view, start, 1)
    menus: list[QPoint] = []
    view.key_menu_requested.connect(menus.append)
    drag(view, start, later, release=False)
    for button in (right, middle):
        mouse(view.viewport(), PRESS, later, button, held=LEFT | button)
        menu = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, later, view.viewport().mapToGlobal(later))
        QApplication.sendEvent(view.viewport(), menu)
        mouse(view.viewport(), RELEASE, later, button, held=LEFT)
    assert (edits.steps, menus) == ([], [])
    mouse(view.viewport(), MOVE, shift(view, start, 2), LEFT)
    mouse(view.viewport(), RELEASE, shift(view, start, 2), LEFT)
    assert (len(edits.steps), times(edits)) == (1, [0, 6, 8])


def test_a_drag_of_keys_whose_release_was_lost_ends_with_the_next_move(edits: Edits, view: TimelineView) -> None:
    start, nothing = at(view, PSI, 4), Qt.MouseButton.NoButton
    drag(view, start, shift(view, start, 1), release=False)
    mouse(view.viewport(), MOVE, shift(view, start, 1), held=nothing)
    mouse(view.viewport(), MOVE, shift(view, start, 3), held=nothing)
    assert (len(edits.steps), times(edits)) == (1, [0, 5, 8])


def test_undo_brings_dragged_keys_back_and_after_a_press_alone_only_ends_the_drag(
    edits: Edits, view: TimelineView
) -> None:
    start = at(view, PSI, 4)
    later = shift(view, start, 1)
    assert not view.undo_drag()
    drag(view, start, release=False)
    assert not view.undo_drag(), "undo reverts the last step"
    mouse(view.viewport(), MOVE, later, LEFT)
    mouse(view.viewport(), RELEASE, later, LEFT)
    drag(view, start, later, release=False)
    assert times(edits) == [0, 5, 8]
    assert view.undo_drag()
    mouse(view.viewport(), MOVE, start, LEFT)
    mouse(view.viewport(), MOVE, later, LEFT)
    mouse(view.viewport(), RELEASE, later, LEFT)
    assert times(edits) == [0, 4, 8]
    assert edits.steps == []


def test_undo_leaves_a_drag_of_the_playhead_alone(view: TimelineView) -> None:
    sought: list[Fraction] = []
    view.sought.connect(lambda t, final: sought.append(t))
    place = QPoint(round(view.axis.x(2.0)), view.scene.ruler_px - 3)
    drag(view, place, release=False)
    assert not view.undo_drag()
    mouse(view.viewport(), RELEASE, shift(view, place, 1), LEFT)
    assert sought == [2, 3]


def test_a_press_selects_and_a_box_selects_several_which_move_together(edits: Edits, view: TimelineView) -> None:
    drag(view, at(view, PSI, 4))
    assert view.selection == {(PSI, 4)}
    top = QPoint(round(view.axis.x(1.0)), view.scene.ruler_px + 1)
    drag(view, top, QPoint(round(view.axis.x(9.0)), view.viewport().height() - 2))
    assert view.selection == {(PSI, 4), (PSI, 8), (GAIN, 2)}
    start = at(view, PSI, 4)
    drag(view, start, shift(view, start, 1))
    assert (times(edits), times(edits, GAIN)) == ([0, 5, 9], [3])
    assert view.selection == {(PSI, 5), (PSI, 9), (GAIN, 3)}


def test_shift_adds_to_the_selection(edits: Edits, view: TimelineView) -> None:
    drag(view, at(view, PSI, 4))
    drag(view, at(view, GAIN, 2), keys=SHIFT)
    assert view.selection == {(PSI, 4), (GAIN, 2)}


def test_the_end_of_the_selection_stretches_it(edits: Edits, view: TimelineView) -> None:
    view.select(frozenset({(PSI, Fraction(0)), (PSI, Fraction(4)), (PSI, Fraction(8))}))
    end = QPoint(round(view.axis.x(8.0)), view.scene.ruler_px - 3)
    drag(view, end, shift(view, end, -2), shift(view, end, -4))
    assert times(edits) == [0, 2, 4]
    assert edits.steps[-1].label == "Stretch keys"


def test_a_stretch_that_would_turn_the_keys_round_ends_at_its_last_one(edits: Edits, view: TimelineView) -> None:
    view.select(frozenset({(PSI, Fraction(4)), (PSI, Fraction(8))}))
    end = QPoint(round(view.axis.x(8.0)), view.scene.ruler_px - 3)
    drag(view, end, shift(view, end, -2), shift(view, end, -6))
    assert times(edits) == [0, 4, 6]
    assert [edit.label for edit in edits.steps] == ["Stretch keys"]


def test_a_box_selects_no_key_that_is_scrolled_away(edits: Edits, view: TimelineView) -> None:
    timeline = edits.session.timeline
    for path in ("transform.x", "transform.y", "noise.seed", "layer.gain", "truncation.cutoff", "position.x"):
        timeline = with_key(timeline, path, Fraction(4), 1)
    edits.panel.resize(1000, 150)
    edits.show(Session(timeline=timeline))
    assert view.verticalScrollBar().maximum() > 0
    start = shift(view, at(view, PSI, 4), -1)
    drag(view, start, shift(view, start + QPoint(0, 600), 2))
    seen = [row.track.path for row in view.rows if view.scene.y(row) < view.viewport().height()]
    assert 0 < len(seen) < len(view.rows)
    assert {path for path, _ in view.selection} <= set(seen)


def test_a_click_on_the_end_of_the_selection_moves_no_key(edits: Edits, view: TimelineView) -> None:
    view.select(frozenset({(PSI, Fraction(4)), (PSI, Fraction(8))}))
    end = QPoint(round(view.axis.x(8.0)) + 5, view.scene.ruler_px - 3)
    drag(view, end, QPoint(end.x() - 1, end.y()))
    assert edits.all == []
    drag(view, end, shift(view, end, -1), shift(view, end, -2))
    assert times(edits) == [0, 4, 6], "the end moves as far as the pointer"


def test_the_playhead_is_grabbed_where_all_selected_keys_have_one_time(edits: Edits, view: TimelineView) -> None:
    sought: list[Fraction] = []
    edits.panel.sought.connect(lambda t, final: sought.append(t))
    edits.show(Session(timeline=with_key(edits.session.timeline, GAIN, Fraction(4), 0.5)))
    view.select(frozenset({(PSI, Fraction(4)), (GAIN, Fraction(4))}))
    place = QPoint(round(view.axis.x(4.0)), view.scene.ruler_px - 3)
    drag(view, place, shift(view, place, 2))
    assert sought[-1] == 6
    assert edits.all == []


def test_keys_that_are_held_are_neither_deleted_nor_nudged(edits: Edits, view: TimelineView) -> None:
    start = at(view, PSI, 4)
    drag(view, start, shift(view, start, 1), release=False)
    for key in (Qt.Key.Key_Delete, Qt.Key.Key_Left, Qt.Key.Key_Up):
        QTest.keyClick(view, key)
    mouse(view.viewport(), RELEASE, shift(view, start, 2))
    assert times(edits) == [0, 6, 8]
    assert [edit.label for edit in edits.steps] == ["Move keys"]


def test_only_a_double_click_of_the_left_button_makes_a_key(edits: Edits, view: TimelineView) -> None:
    place = shift(view, at(view, PSI, 4), 2)
    mouse(view.viewport(), QEvent.Type.MouseButtonDblClick, place, Qt.MouseButton.MiddleButton)
    assert edits.steps == []


def test_the_ruler_moves_the_playhead_by_frames(edits: Edits, view: TimelineView, qtbot: QtBot) -> None:
    sought: list[tuple[Fraction, bool]] = []
    edits.panel.sought.connect(lambda t, final: sought.append((t, final)))
    y = view.scene.ruler_px // 2
    drag(view, *(QPoint(round(view.axis.x(t)), y) for t in (1.0, 2.04, 3.0)))
    assert sought == [(Fraction(1), False), (Fraction(2), False), (Fraction(3), False), (Fraction(3), True)]
    assert edits.all == []


def test_shift_in_the_ruler_draws_the_range_that_plays_and_a_double_click_takes_it_away(
    edits: Edits, view: TimelineView
) -> None:
    y = view.scene.ruler_px // 2
    drag(view, *(QPoint(round(view.axis.x(t)), y) for t in (2.0, 4.0, 6.0)), keys=SHIFT)
    assert edits.session.timeline.loop == (2, 6)
    drag(view, *(QPoint(round(view.axis.x(t)), y) for t in (3.0, 4.0, 3.0)), keys=SHIFT)
    assert edits.session.timeline.loop == (3, 4)
    assert len(edits.steps) == 2
    mouse(view.viewport(), QEvent.Type.MouseButtonDblClick, QPoint(round(view.axis.x(4.0)), 2))
    assert edits.session.timeline.loop is None


def test_a_click_on_an_end_of_the_range_changes_nothing_and_home_and_end_go_to_its_ends(
    edits: Edits, view: TimelineView
) -> None:
    sought: list[Fraction] = []
    edits.panel.sought.connect(lambda t, final: sought.append(t))
    edits.show(replace(edits.session, timeline=replace(edits.session.timeline, loop=(Fraction(2), Fraction(6)))))
    drag(view, QPoint(round(view.axis.x(6.0)) + 3, 2))
    assert edits.all == []
    QTest.keyClick(view, Qt.Key.Key_Home)
    QTest.keyClick(view, Qt.Key.Key_End)
    assert sought == [2, 6]


def test_keys_delete_nudge_copy_and_paste(edits: Edits, view: TimelineView) -> None:
    drag(view, at(view, PSI, 4))
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert times(edits) == [0, Fraction(41, 10), 8]
    QTest.keyClick(view, Qt.Key.Key_Left, SHIFT)
    assert times(edits) == [0, Fraction(31, 10), 8]
    assert edits.steps[-1].is_nudge(edits.session)
    QTest.keyClick(view, Qt.Key.Key_C, CTRL)
    edits.panel.show_time(Fraction(6))
    QTest.keyClick(view, Qt.Key.Key_V, CTRL)
    assert times(edits) == [0, Fraction(31, 10), 6, 8]
    QTest.keyClick(view, Qt.Key.Key_Delete)
    assert times(edits) == [0, Fraction(31, 10), 8]
    QTest.keyClick(view, Qt.Key.Key_A, CTRL)
    QTest.keyClick(view, Qt.Key.Key_X, CTRL)
    assert (times(edits), times(edits, GAIN)) == ([], [])


def test_keys_from_a_project_of_another_model_are_pasted_as_far_as_this_one_has_them(
    edits: Edits, view: TimelineView
) -> None:
    said: list[str] = []
    edits.panel.refused.connect(said.append)
    edits.panel.show_model(model_facts(), model_directions(4))
    view.keys.clip = (("slider/world/zebras", Key(Fraction(0), 1.0)), (PSI, Key(Fraction(1), 0.5)))
    edits.panel.show_time(Fraction(9))
    QTest.keyClick(view, Qt.Key.Key_V, CTRL)
    assert times(edits)[-1] == 10
    assert edits.session.timeline.track("slider/world/zebras") is None
    assert said == ["Keys of parameters that this model does not have were not pasted."]


def test_up_raises_the_selected_value(edits: Edits, view: TimelineView) -> None:
    drag(view, at(view, PSI, 8))
    QTest.keyClick(view, Qt.Key.Key_Up, SHIFT)
    assert edits.session.timeline.tracks[0].keys[2].value == pytest.approx(0.6)


def test_a_double_click_makes_a_key_that_moves_nothing(edits: Edits, view: TimelineView) -> None:
    place = QPoint(round(view.axis.x(2.0)), at(view, PSI, 4).y() + 20)
    mouse(view.viewport(), QEvent.Type.MouseButtonDblClick, place)
    assert times(edits) == [0, 2, 4, 8]
    assert edits.session.timeline.tracks[0].keys[1].value == pytest.approx(0.5)


def test_handles_of_a_bezier_curve_are_dragged(edits: Edits, view: TimelineView) -> None:
    drag(view, at(view, PSI, 4))
    menu = key_menu(view)
    next(action for action in menu.actions() if action.text() == "Bézier").trigger()
    key = edits.session.timeline.tracks[0].keys[1]
    assert key.easing == Easing("bezier", (1 / 3, 1 / 3, 2 / 3, 2 / 3)), "it begins with the shape that was there"
    handle = next(place for _, which, _, place in view.scene.handle_places(view.rows[0], 1) if which == 0)
    drag(view, handle.toPoint(), handle.toPoint() + QPoint(20, -8), handle.toPoint() + QPoint(40, -12))
    moved = edits.session.timeline.tracks[0].keys[1].easing.handles
    assert moved[0] > 0.4
    assert moved[1] != 1 / 3
    assert edits.steps[-1].label == "Shape curve"
