"""The menus of the timeline's panel: of keys, of a track, of the ruler, of tracks to add."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from explorer_app.session.session import Session
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.timeline.seam import seam
from explorer_app.session.tracks import NOISE_LOOP, STATE, WALK
from explorer_app.window.timeline.timeline_menus import add_track_menu, key_menu, ruler_menu, track_menu
from explorer_app.window.timeline.timeline_view import TimelineView
from tests.helpers.panels import CTRL, Edits, model_directions, model_facts
from tests.helpers.timelines import GAIN, PSI, times


def entries(menu: QMenu) -> dict[str, Any]:
    found = {}
    for action in menu.actions():
        sub = action.menu()
        if isinstance(sub, QMenu):
            found.update({f"{action.text()}/{item.text()}": item for item in sub.actions()})
        found[action.text()] = action
    return found


def test_copied_keys_are_pasted_on_another_track_from_its_menu(edits: Edits, view: TimelineView) -> None:
    assert not entries(track_menu(view, GAIN, edits.session))["Paste keys here"].isEnabled()
    view.select(frozenset({(PSI, Fraction(0)), (PSI, Fraction(4))}))
    QTest.keyClick(view, Qt.Key.Key_C, CTRL)
    before = times(edits, GAIN)
    edits.panel.show_time(Fraction(9))
    entries(track_menu(view, GAIN, edits.session))["Paste keys here"].trigger()
    assert times(edits, GAIN) == [*before, 9, 13]
    assert view.selection == {(GAIN, Fraction(9)), (GAIN, Fraction(13))}


def test_a_right_click_in_the_ruler_says_where_the_first_beat_is(edits: Edits, view: TimelineView) -> None:
    asked: list[Fraction] = []
    view.ruler_menu_requested.disconnect()
    view.ruler_menu_requested.connect(lambda t, place: asked.append(t))
    place = QPoint(round(view.axis.x(3.0)), view.scene.ruler_px // 2)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, view.mapToGlobal(place))
    QApplication.sendEvent(view.viewport(), event)
    assert len(asked) == 1
    menu = entries(ruler_menu(view, asked[0]))
    assert not menu["First beat at the start"].isEnabled()
    menu["First beat here"].trigger()
    timeline = edits.session.timeline
    assert timeline.grid.offset == round(asked[0] * timeline.fps) / timeline.fps
    assert (float(timeline.grid.offset), timeline.snap) == (pytest.approx(3.0, abs=0.1), "beat")
    entries(ruler_menu(view, asked[0]))["First beat at the start"].trigger()
    assert edits.session.timeline.grid.offset == 0


def test_the_menu_of_the_ruler_shows_the_whole_timeline_again(edits: Edits, view: TimelineView) -> None:
    assert not entries(ruler_menu(view, Fraction(0)))["Show the whole timeline"].isEnabled()
    whole = view.axis
    view.scroll_to(whole.zoomed(8.0, whole.x(6.0)))
    entries(ruler_menu(view, Fraction(0)))["Show the whole timeline"].trigger()
    assert view.axis == whole
    assert view.is_fitted


def test_the_menu_of_keys_eases_them_and_counts_them_in_beats(edits: Edits, view: TimelineView) -> None:
    view.select(frozenset({(PSI, Fraction(0)), (PSI, Fraction(4))}))
    entries(key_menu(view))["Hold"].trigger()
    assert [key.easing.kind for key in edits.session.timeline.tracks[0].keys] == ["hold", "hold", "linear"]
    entries(key_menu(view))["Count in beats"].trigger()
    assert [key.is_beat for key in edits.session.timeline.tracks[0].keys] == [True, True, False]
    assert times(edits) == [0, 4, 8]


def test_the_menu_of_a_track_mutes_repeats_moves_and_removes_it(edits: Edits, view: TimelineView) -> None:
    def choose(path: str, name: str) -> None:
        entries(track_menu(view, path, edits.session))[name].trigger()

    choose(PSI, "Mute")
    choose(PSI, "Outside of the keys/Repeat")
    track = edits.session.timeline.track(PSI)
    assert track is not None
    assert (track.is_muted, track.outside) == (True, "loop")
    choose(PSI, "Move down")
    assert [item.path for item in edits.session.timeline.tracks] == [GAIN, PSI]
    choose(GAIN, "Remove track")
    assert [item.path for item in edits.session.timeline.tracks] == [PSI]


def test_a_walk_is_added_changed_and_baked(edits: Edits, view: TimelineView) -> None:
    edits.panel.add_track(WALK)
    for name in ("Period/4 s", "Radius/0.6", "Another walk"):
        entries(track_menu(view, WALK, edits.session))[name].trigger()
    walk = edits.session.timeline.track(WALK)
    assert walk is not None
    assert (walk.period, walk.radius, walk.seed) == (4, 0.6, 1)
    entries(track_menu(view, WALK, edits.session))["Bake to keys"].trigger()
    assert edits.session.timeline.track(WALK) is None
    assert len(times(edits, "pinned_blend")) == 61


def test_everything_that_has_no_track_can_get_one(edits: Edits) -> None:
    panel = edits.panel
    menu = entries(add_track_menu(panel, edits.session, model_facts(), model_directions(4), panel.add_track))
    assert not menu["Truncation"].isEnabled()
    panel.show_time(Fraction(3))
    menu["Sliders/Direction 2"].trigger()
    menu["Picture"].trigger()
    menu["Latent"].trigger()
    assert times(edits, "slider/sefa/1") == [3]
    assert times(edits, STATE) == [3]
    assert times(edits, "pinned_blend") == [3]


def test_a_noise_loop_is_added_and_closes(edits: Edits) -> None:
    edits.panel.add_track(NOISE_LOOP)
    session = edits.session
    last = float(session.timeline.end)
    assert [session_at(session, t).noise.phase for t in (0.0, last / 4, last, 1.5 * last)] == [0.0, 90.0, 0.0, 180.0]
    loop = session.timeline.track(NOISE_LOOP)
    assert loop is not None
    found = seam(Session(timeline=replace(session.timeline, tracks=(loop,))), 0.0, last)
    assert found.value_meets
    assert found.velocity_meets


def test_adding_a_noise_loop_moves_nothing_at_the_playhead(edits: Edits) -> None:
    edits.session = replace(edits.session, noise=replace(edits.session.noise, phase=40.0))
    edits.panel.show_session(edits.session)
    edits.panel.show_time(Fraction(3))
    edits.panel.add_track(NOISE_LOOP)
    assert session_at(edits.session, 3.0).noise.phase == pytest.approx(40.0)


def test_a_noise_loop_has_a_period_and_a_radius_in_its_menu(edits: Edits, view: TimelineView) -> None:
    edits.panel.add_track(NOISE_LOOP)
    choose_in(view, "Radius", "30°", edits.session)
    choose_in(view, "Period", "4 s", edits.session)
    session = edits.session
    phases = [session_at(session, t).noise.phase for t in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)]
    assert phases == pytest.approx([0.0, 30.0 * math.sin(math.pi / 4), 30.0, 0.0, -30.0, 0.0, 30.0], abs=0.4)
    loop = session.timeline.track(NOISE_LOOP)
    assert loop is not None
    found = seam(Session(timeline=replace(session.timeline, tracks=(loop,))), 0.0, 4.0)
    assert found.value_meets
    assert found.velocity_meets
    choose_in(view, "Radius", "Full circle", session)
    assert session_at(edits.session, 1.0).noise.phase == 90.0


def choose_in(view: TimelineView, title: str, text: str, session: Session) -> None:
    """Choose an entry of a submenu of the noise loop's track."""
    menu = track_menu(view, NOISE_LOOP, session)
    sub = next(item for action in menu.actions() if (item := action.menu()) is not None and action.text() == title)
    assert isinstance(sub, QMenu)
    chosen = next(action for action in sub.actions() if action.text() == text)
    assert not chosen.isChecked()
    chosen.trigger()
    menu.deleteLater()


def test_closed_menus_are_deleted(edits: Edits, view: TimelineView, qtbot: QtBot) -> None:
    for menu in (
        add_track_menu(edits.panel, edits.session, model_facts(), None, edits.panel.add_track),
        track_menu(view, GAIN, edits.session),
        ruler_menu(view, Fraction(1)),
        key_menu(view),
    ):
        menu.popup(QPoint(0, 0))
        with qtbot.waitSignal(menu.destroyed):
            menu.close()
