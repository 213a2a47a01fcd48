"""The sounds below the timeline: waveforms, dragging, menus; by real events on one panel."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from explorer_app.audio.analysis import Analysis
from explorer_app.session.patch_table import SetPatches
from explorer_app.session.patches import FEATURES, Patch
from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import Sound, Timeline
from explorer_app.window.controls.drive_menu import add_drive_menu, is_driven, usual_patch
from explorer_app.window.timeline.sound_lanes import pixel_peaks
from explorer_app.window.timeline.timeline_panel import TimelinePanel
from tests.helpers.panels import LEFT, model_directions, model_facts, mouse, wheel

DRUMS = Sound("drums", "a" * 64, "drums.wav", 4.0, Fraction(1))
PATCH = Patch("audio/drums/onset", "truncation.psi", 0.0, 0.3, "add", release_s=0.1)
SESSION = Session(timeline=with_key(Timeline(sounds=(DRUMS,)), "truncation.psi", Fraction(0), 0.7), patches=(PATCH,))
MOVE, PRESS, RELEASE = QEvent.Type.MouseMove, QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease


def analysis() -> Analysis:
    peaks = np.zeros((401, 2), np.int8)
    peaks[100:200] = (-100, 100)
    values = {name: np.zeros(401, np.uint16) for name in FEATURES}
    return Analysis(4.0, values, peaks, Fraction(120), Fraction(0), np.zeros(0, np.float32))


@pytest.fixture
def panel(qtbot: QtBot) -> TimelinePanel:
    made = TimelinePanel()
    qtbot.addWidget(made)
    made.resize(900, 320)
    made.show_model(model_facts(), model_directions())
    made.lanes.serve({DRUMS.digest: analysis()}.get, lambda digest: False)
    made.show_session(SESSION)
    made.show()
    return made


def centre(panel: TimelinePanel) -> QPointF:
    lane = panel.lanes.lane_of("drums")
    assert lane is not None
    return lane.center()


def entries(menu: QMenu) -> dict[str, Any]:
    return {action.text(): action for action in menu.actions() if not action.isSeparator()}


def test_a_sound_has_a_lane_where_it_stands_and_none_is_shown_without_sounds(panel: TimelinePanel) -> None:
    lane = panel.lanes.lane_of("drums")
    assert lane is not None
    axis = panel.view.axis
    assert (lane.left(), lane.right()) == pytest.approx((axis.x(1.0), axis.x(5.0)))
    image = panel.lanes.grab().toImage()
    loud, silent = (image.pixelColor(int(axis.x(t)), int(lane.center().y()) - 8) for t in (2.5, 4.0))
    assert loud != silent
    panel.show_session(Session())
    assert not panel.lanes.isVisible()


def test_the_wheel_reaches_sounds_that_have_no_room_and_tracks_keep_theirs(panel: TimelinePanel) -> None:
    stems = tuple(replace(DRUMS, name=f"stem {n}") for n in range(6))
    panel.show_session(replace(SESSION, timeline=replace(SESSION.timeline, sounds=stems)))
    panel.resize(900, 190)
    names = [stem.name for stem in stems if panel.lanes.lane_of(stem.name) is not None]
    count = len(names)
    assert 2 <= count <= 4
    assert names == [stem.name for stem in stems[:count]]
    assert panel.lanes.sizeHint().height() <= panel.view.height()
    for _ in range(9):
        wheel(panel.lanes, QPointF(300, 20), -1)
    names = [stem.name for stem in stems if panel.lanes.lane_of(stem.name) is not None]
    assert names == [stem.name for stem in stems[-count:]]
    panel.lanes.grab()
    wheel(panel.lanes, QPointF(300, 20), 1)
    assert panel.lanes.lane_of(stems[-count - 1].name) is not None
    panel.resize(900, 500)
    assert panel.lanes.lane_of("stem 2") is not None


def test_lanes_are_low_where_two_lines_each_would_leave_the_tracks_little(panel: TimelinePanel) -> None:
    high = panel.lanes.sizeHint().height()
    stems = tuple(replace(DRUMS, name=f"stem {n}") for n in range(3))
    panel.show_session(replace(SESSION, timeline=replace(SESSION.timeline, sounds=stems)))
    panel.resize(900, 210)
    assert panel.lanes.sizeHint().height() < 2 * high
    lanes = [panel.lanes.lane_of(stem.name) for stem in stems]
    assert [lane is not None and panel.lanes.rect().contains(lane.center().toPoint()) for lane in lanes] == 3 * [True]
    last = lanes[-1]
    assert last is not None
    moved: list[str] = []
    panel.sound_changed.connect(lambda sound, label, final: moved.append(sound.name))
    mouse(panel.lanes, PRESS, last.center(), LEFT)
    mouse(panel.lanes, MOVE, last.center() + QPointF(30, 0), LEFT)
    assert moved == ["stem 2"]
    panel.lanes.grab()
    panel.resize(900, 500)
    assert panel.lanes.sizeHint().height() == 3 * high


def test_dragging_a_lane_moves_the_sound_in_time(panel: TimelinePanel) -> None:
    moved: list[tuple[Sound, str, bool]] = []
    panel.sound_changed.connect(lambda *change: moved.append(change))
    start = centre(panel)
    end = start + QPointF(panel.view.axis.scale * 0.5, 0)
    mouse(panel.lanes, PRESS, start, LEFT)
    mouse(panel.lanes, MOVE, end, LEFT)
    mouse(panel.lanes, RELEASE, end, LEFT)
    assert [final for _, _, final in moved] == [False, True]
    assert float(moved[-1][0].start) == pytest.approx(1.5, abs=0.02)
    mouse(panel.lanes, PRESS, start, LEFT)
    mouse(panel.lanes, MOVE, end, LEFT)
    mouse(panel.lanes, RELEASE, start, LEFT)
    assert (float(moved[-1][0].start), moved[-1][2]) == (1.0, True)
    mouse(panel.lanes, PRESS, start, LEFT)
    mouse(panel.lanes, MOVE, end, LEFT)
    cancelled: list[bool] = []
    panel.gesture_cancelled.connect(lambda: cancelled.append(True))
    QTest.keyClick(panel.lanes, Qt.Key.Key_Escape)
    assert cancelled


def test_a_click_that_trembles_leaves_a_sound_where_it_is(panel: TimelinePanel) -> None:
    moved: list[object] = []
    panel.sound_changed.connect(lambda *change: moved.append(change))
    start = centre(panel)
    mouse(panel.lanes, PRESS, start, LEFT)
    mouse(panel.lanes, MOVE, start + QPointF(2, 0), LEFT)
    mouse(panel.lanes, RELEASE, start + QPointF(1, 0), LEFT)
    assert moved == []


def test_a_right_click_during_a_drag_opens_no_menu_and_the_drag_goes_on(panel: TimelinePanel) -> None:
    said: list[object] = []
    panel.lanes.menu_requested.disconnect()
    panel.lanes.menu_requested.connect(lambda name, place: said.append(name))
    panel.sound_changed.connect(lambda sound, label, final: said.append((float(sound.start), final)))
    right, start = Qt.MouseButton.RightButton, centre(panel)
    end = start + QPointF(round(panel.view.axis.scale), 0)
    mouse(panel.lanes, PRESS, start, LEFT)
    mouse(panel.lanes, PRESS, start, right, held=LEFT | right)
    menu = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, start.toPoint(), panel.lanes.mapToGlobal(start.toPoint()))
    QApplication.sendEvent(panel.lanes, menu)
    mouse(panel.lanes, RELEASE, start, right, held=LEFT)
    mouse(panel.lanes, RELEASE, end, LEFT)
    assert said == [(pytest.approx(2.0, abs=0.02), True)]


def test_undo_puts_a_sound_back_and_after_a_press_alone_only_lets_it_go(panel: TimelinePanel) -> None:
    moved: list[Sound] = []
    panel.sound_changed.connect(lambda sound, label, final: moved.append(sound))
    cancelled: list[bool] = []
    panel.gesture_cancelled.connect(lambda: cancelled.append(True))
    start = centre(panel)
    end = start + QPointF(panel.view.axis.scale * 0.5, 0)
    assert not panel.lanes.undo_drag()
    mouse(panel.lanes, PRESS, start, LEFT)
    assert not panel.lanes.undo_drag(), "undo reverts the last step"
    mouse(panel.lanes, RELEASE, end, LEFT)
    assert moved == []
    mouse(panel.lanes, PRESS, start, LEFT)
    mouse(panel.lanes, MOVE, end, LEFT)
    cancelled.clear()
    assert panel.lanes.undo_drag()
    assert cancelled
    mouse(panel.lanes, RELEASE, end, LEFT)
    assert len(moved) == 1


def test_the_menu_of_a_sound_mutes_it_takes_its_tempo_and_lets_it_move_parameters(panel: TimelinePanel) -> None:
    said: list[tuple[object, ...]] = []
    panel.sound_changed.connect(lambda sound, label, final: said.append((sound.is_muted, sound.gain_db, label)))
    panel.tempo_wanted.connect(lambda name: said.append(("tempo", name)))
    panel.sound_removed.connect(lambda name: said.append(("remove", name)))
    panel.locate_requested.connect(lambda name: said.append(("locate", name)))
    panel.drive_requested.connect(lambda patch: said.append(("drive", patch)))
    menu = panel.sound_menu("drums")
    assert menu is not None
    found = entries(menu)
    found["Mute"].trigger()
    entries(found["Volume"].menu())["−6 dB"].trigger()
    for text in ("Use this tempo", "Locate file…", "Remove sound"):
        found[text].trigger()
    moves = entries(found["Move a parameter"].menu())
    entries(moves["Truncation"].menu())["Beat"].trigger()
    assert "Noise kind" not in moves
    assert said == [
        (True, 0.0, "Mute sound"),
        (False, -6.0, "Volume of sound"),
        ("tempo", "drums"),
        ("locate", "drums"),
        ("remove", "drums"),
        ("drive", usual_patch("audio/drums/beat", "truncation.psi")),
    ]


def test_a_patch_is_changed_in_the_menu_of_its_sound(panel: TimelinePanel) -> None:
    edits: list[Any] = []
    panel.edited.connect(lambda edit, final: edits.append(edit))
    menu = panel.sound_menu("drums")
    assert menu is not None
    found = entries(entries(menu)["Onsets → Truncation"].menu())
    assert found["Medium"].isChecked()
    for text in ("On", "Strong", "Inverted", "Long (1 s)", "Remove"):
        found[text].trigger()
    made = [edit.patches for edit in edits if isinstance(edit, SetPatches)]
    assert made == [
        (replace(PATCH, is_on=False),),
        (replace(PATCH, high=0.6),),
        (replace(PATCH, high=-0.3),),
        (replace(PATCH, release_s=1.0),),
        (),
    ]


def test_a_track_of_a_number_can_be_driven_by_sound(panel: TimelinePanel) -> None:
    driven: list[Patch] = []
    menu = QMenu(panel)
    add_drive_menu(menu, "truncation.psi", ["drums"], driven.append)
    entries(entries(menu)["Drive by sound"].menu())["Band 2 · 66–144 Hz"].trigger()
    assert driven == [usual_patch("audio/drums/band/1", "truncation.psi")]
    other = QMenu(panel)
    add_drive_menu(other, "noise.mode", ["drums"], driven.append)
    assert not entries(other)["Drive by sound"].isEnabled()
    assert not is_driven("state")


def test_a_microphone_that_is_on_can_drive_a_parameter_and_has_no_beat(panel: TimelinePanel) -> None:
    driven: list[Patch] = []
    menu = QMenu(panel)
    add_drive_menu(menu, "slider/sefa/1", ["drums"], driven.append, hears=True)
    found = entries(entries(entries(menu)["Drive by sound"].menu())["Microphone"].menu())
    found["Loudness"].trigger()
    assert "Beat" not in found
    assert driven == [Patch("input/rms", "slider/sefa/1", 0.0, 1.5, "add", release_s=0.3)]


def test_a_right_click_names_the_sound(panel: TimelinePanel) -> None:
    calls: list[str] = []
    panel.lanes.menu_requested.disconnect()
    panel.lanes.menu_requested.connect(lambda name, place: calls.append(name))
    place = centre(panel).toPoint()
    QApplication.sendEvent(panel.lanes, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, QPoint(0, 0)))
    assert calls == ["drums"]


def test_each_pixel_has_the_least_and_greatest_sample_of_its_time() -> None:
    peaks = np.array([[-1, 1], [-5, 2], [-2, 9], [0, 0]], np.int8)
    low, high = pixel_peaks(peaks, np.array([-2.0, -1.0, 0.0, 2.0, 3.0, 3.5, 9.0, 12.0]))
    assert low.tolist()[2:4] == [-5, -2]
    assert high.tolist()[2:4] == [2, 9]
    assert (low[0], high[0], low[-1], high[-1]) == (0, 0, 0, 0)


def test_the_closed_menu_of_a_sound_is_deleted(panel: TimelinePanel, qtbot: QtBot) -> None:
    menu = panel.sound_menu("drums")
    assert menu is not None
    menu.popup(QPoint(0, 0))
    with qtbot.waitSignal(menu.destroyed):
        menu.close()


def stems_of(panel: TimelinePanel, count: int) -> tuple[Sound, ...]:
    stems = tuple(replace(DRUMS, name=f"stem {n}", digest=f"{n}" * 64) for n in range(count))
    panel.show_session(replace(SESSION, timeline=replace(SESSION.timeline, sounds=stems)))
    return stems


def test_tab_goes_on_from_the_tracks_to_the_sounds(panel: TimelinePanel) -> None:
    panel.view.setFocus()
    QTest.keyClick(panel.view, Qt.Key.Key_Tab)
    assert panel.lanes.hasFocus()
    QTest.keyClick(panel.lanes, Qt.Key.Key_Backtab)
    assert panel.view.hasFocus()


def test_arrow_keys_choose_a_sound_and_move_it_by_frames(panel: TimelinePanel) -> None:
    stems_of(panel, 6)
    moved: list[tuple[Sound, str, bool]] = []
    panel.sound_changed.connect(lambda *change: moved.append(change))
    for _ in range(5):
        QTest.keyClick(panel.lanes, Qt.Key.Key_Down)
    assert panel.lanes.lane_of("stem 5") is not None, "scrolled to"
    QTest.keyClick(panel.lanes, Qt.Key.Key_Up)
    QTest.keyClick(panel.lanes, Qt.Key.Key_Right)
    QTest.keyClick(panel.lanes, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert [(sound.name, sound.start, final) for sound, _, final in moved] == [
        ("stem 4", 1 + Fraction(1, 30), True),
        ("stem 4", 1 - Fraction(10, 30), True),
    ]


def test_enter_and_the_menu_key_open_the_menu_of_the_chosen_sound(panel: TimelinePanel) -> None:
    stems_of(panel, 3)
    panel.lanes.menu_requested.disconnect()
    asked: list[str] = []
    panel.lanes.menu_requested.connect(lambda name, place: asked.append(name))
    lane = panel.lanes.lane_of("stem 2")
    assert lane is not None
    for kind in (PRESS, RELEASE):
        mouse(panel.lanes, kind, QPointF(20, lane.center().y()), LEFT)
    QTest.keyClick(panel.lanes, Qt.Key.Key_Return)
    QTest.keyClick(panel.lanes, Qt.Key.Key_Up)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(20, 2), QPoint())
    QApplication.sendEvent(panel.lanes, event)
    assert asked == ["stem 2", "stem 1"]


def test_screen_readers_hear_which_sound_keys_act_on(panel: TimelinePanel) -> None:
    stems = stems_of(panel, 2)
    panel.lanes.setFocus()
    assert panel.lanes.accessibleDescription() == "stem 0, sound 1 of 2, being read…, starts at 1.00 s"
    QTest.keyClick(panel.lanes, Qt.Key.Key_Down)
    assert panel.lanes.accessibleDescription().startswith("stem 1, sound 2 of 2")
    panel.show_session(replace(SESSION, timeline=replace(SESSION.timeline, sounds=stems[:1])))
    QTest.keyClick(panel.lanes, Qt.Key.Key_Up)
    assert panel.lanes.accessibleDescription().startswith("stem 0, sound 1 of 1")


def test_the_sound_that_keys_act_on_is_marked_while_the_lanes_have_the_focus(panel: TimelinePanel) -> None:
    stems_of(panel, 2)
    panel.lanes.setFocus()
    place = QPoint(1, panel.lanes.height() // 4)
    marked = panel.lanes.grab().toImage().pixelColor(place)
    panel.play_button.setFocus()
    assert panel.lanes.grab().toImage().pixelColor(place) != marked
