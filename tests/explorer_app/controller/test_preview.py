from __future__ import annotations

import json
from dataclasses import replace

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from explorer_app.controller.preview import MEASURE_MS, REST_MS
from explorer_app.messages import Level
from explorer_app.session.edits import GoToSeed, set_truncation
from explorer_app.session.evaluate import Modulation, Modulator
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Position, Session
from gpu_backend import DeviceError, RenderRequest, Tap, Transform, Truncation
from tests.helpers.desk import Desk


def test_while_the_hand_moves_drafts_come_and_at_the_end_the_full_picture(desk: Desk):
    desk.engine.full_ms = 50.0
    desk.start()
    desk.walk(0.5, release=False)
    desk.until(lambda: desk.frames[-1].is_draft)
    assert desk.frames[-1].request.resolution == 64
    desk.walk(0.6)
    desk.rest()
    assert not desk.frames[-1].is_draft


@pytest.mark.parametrize(("resolution", "first"), [(1024, 64), (256, None)])
def test_a_large_network_shows_a_draft_as_it_opens_and_the_full_picture_follows_by_itself(
    desk: Desk, resolution: int, first: int | None
):
    desk.library.options["dogs"] = {"resolution": resolution}
    desk.settings.change(device="cpu")
    desk.start()
    count = len(desk.frames)
    desk.open("dogs")
    desk.until(lambda: len(desk.frames) > count)
    assert desk.frames[count].request.resolution == first
    desk.rest()
    desk.walk(1.0)
    desk.until(lambda: desk.frames[-1].request.blend == resolve(desk.controller.session).blend)
    desk.rest()
    assert [frame.request.resolution for frame in desk.frames[count:]].count(64) == (first is not None)


def test_the_first_draft_of_a_network_is_shown_however_slow_it_is(desk: Desk, qtbot: QtBot):
    desk.library.options["dogs"] = {"resolution": 1024}
    desk.settings.change(device="cpu")
    desk.start()
    count = len(desk.frames)
    desk.engine.gate.shut()
    desk.open("dogs")
    qtbot.wait(3 * REST_MS)
    desk.engine.gate.open()
    desk.until(lambda: len(desk.frames) > count)
    assert desk.frames[count].is_draft, "the full picture takes its turn afterwards"
    desk.rest()


def test_a_draft_in_which_nothing_is_to_be_seen_is_not_shown_and_a_larger_one_comes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("explorer_app.controller.drafts.MIN_DRAFT_PX", 32)
    desk.engine.full_ms = 5e3
    desk.engine.empty_px = 32
    desk.start()
    desk.walk(0.5, release=False)
    desk.until(lambda: desk.engine.requests[-1].resolution == 32)
    desk.until(lambda: desk.walk(0.6, release=False) or desk.frames[-1].is_draft)
    assert desk.frames[-1].request.resolution == 64
    assert all(frame.request.resolution != 32 for frame in desk.frames)


def test_a_hand_that_holds_still_gets_the_full_picture_without_letting_go(desk: Desk):
    desk.engine.full_ms = 50.0
    desk.start()
    desk.walk(0.5, release=False)
    desk.rest()
    assert not desk.frames[-1].is_draft
    assert desk.labels == ["Start"]


def test_a_model_that_is_fast_enough_is_never_drafted(open_desk: Desk):
    open_desk.walk(0.5, release=False)
    open_desk.rest()
    open_desk.walk(0.5)
    assert not any(frame.is_draft for frame in open_desk.frames)


def test_the_same_picture_is_not_rendered_twice(open_desk: Desk):
    desk = open_desk
    desk.walk(0.5, release=False)
    desk.rest()
    count = len(desk.engine.requests)
    desk.walk(0.5)
    desk.walk(0.7)
    desk.rest()
    assert len(desk.engine.requests) == count + 1


def test_latency_runs_from_the_gesture_to_the_paint_and_counts_once(open_desk: Desk):
    desk = open_desk
    desk.controller.frame_painted(desk.frames[-1])
    first = desk.controller.statistics.gesture_to_screen_ms
    desk.now_s = 10.0
    desk.walk(0.5)
    desk.rest()
    desk.now_s = 10.04
    desk.controller.frame_painted(desk.frames[-1])
    desk.now_s = 99.0
    desk.controller.frame_painted(desk.frames[-1])
    assert first == 0.0
    assert round(desk.controller.statistics.gesture_to_screen_ms) == 20  # the median of 0 and 40


def test_the_steps_of_the_picture_are_measured_once_while_the_panel_is_visible(open_desk: Desk):
    desk = open_desk
    assert desk.controller.statistics.steps == ()
    desk.controller.set_measuring(True)
    desk.until(lambda: desk.controller.statistics.steps)
    measured = [item for item in desk.engine.requests if item.measure_steps]
    assert len(measured) == 1
    assert desk.settings.values.performance_visible
    desk.controller.set_measuring(False)
    desk.walk(0.5)
    desk.rest()
    assert len([item for item in desk.engine.requests if item.measure_steps]) == 1


def measuring_is_due(desk: Desk, qtbot: QtBot) -> None:
    timer = next(timer for timer in desk.controller.findChildren(QTimer) if timer.interval() == MEASURE_MS)
    with qtbot.waitSignal(timer.timeout):
        timer.start()


def test_measuring_waits_for_a_plain_first_picture_since_measured_ones_have_no_time(desk: Desk, qtbot: QtBot):
    desk.engine.gate.shut()
    desk.controller.start()
    desk.until(lambda: desk.controller.facts)
    desk.engine.gate.wait_for_knock()
    measuring_is_due(desk, qtbot)
    desk.walk(0.5)
    desk.engine.gate.open()
    desk.until(lambda: desk.controller.statistics.steps)
    assert not desk.engine.given_up[0].measure_steps
    assert [request.measure_steps for request in desk.engine.requests] == [False, True]
    assert desk.controller.statistics.newest_ms > 0


def test_measuring_that_was_due_does_not_reach_the_next_models_first_picture(open_desk: Desk, qtbot: QtBot):
    desk = open_desk
    desk.controller.set_measuring(True)
    desk.engine.gate.shut()
    desk.walk(0.5)
    desk.engine.gate.wait_for_knock()
    measuring_is_due(desk, qtbot)
    desk.engine.gate.open()
    desk.open("dogs")
    desk.until(lambda: desk.controller.statistics.steps)
    assert desk.controller.statistics.newest_ms > 0
    of_dogs = [request for request in desk.engine.requests if request.model_id == desk.controller.facts.model_id]
    assert [request.measure_steps for request in of_dogs] == [False, True]


def test_a_restored_picture_of_another_model_has_its_steps_measured_at_rest(open_desk: Desk):
    desk = open_desk
    desk.controller.save_picture(desk.folder / "cat.png")
    desk.until(lambda: "Saved cat.png." in desk.said())
    desk.controller.set_measuring(True)
    desk.open("dogs")
    desk.until(lambda: desk.controller.statistics.steps)
    desk.controller.open_picture(desk.folder / "cat.png")
    desk.until(lambda: desk.controller.facts and desk.controller.facts.name == "cats")
    assert desk.controller.statistics.steps == ()
    desk.until(lambda: desk.controller.statistics.steps)
    assert desk.controller.statistics.newest_ms > 0


def test_a_measured_picture_that_gives_way_to_another_passes_the_measuring_on(open_desk: Desk, qtbot: QtBot):
    desk = open_desk
    desk.engine.gate.shut()
    desk.walk(1.0)
    desk.engine.gate.wait_for_knock()
    measuring_is_due(desk, qtbot)
    for x in (2.0, 3.0):  # the first one is to be measured, waits behind the gate, and is never rendered
        desk.walk(x)
    desk.engine.gate.open()
    desk.until(lambda: desk.controller.statistics.steps)
    assert desk.controller.frame.request.measure_steps
    desk.walk(4.0)
    desk.rest()
    assert [request.measure_steps for request in desk.engine.requests].count(True) == 1


def test_what_cannot_be_rendered_is_told_once_and_can_be_asked_for_again(open_desk: Desk):
    desk = open_desk
    desk.engine.failing = DeviceError("Out of memory.")
    for x in (1.0, 2.0, 3.0):
        count = len(desk.engine.requests)
        desk.walk(x)
        desk.until(lambda count=count: len(desk.engine.requests) > count)
    desk.until(lambda: "Out of memory." in desk.said())
    desk.engine.failing = None
    desk.walk(3.0)
    desk.walk(3.5)
    desk.rest()
    assert desk.said().count("Out of memory.") == 1


def test_small_pictures_of_a_large_network_are_made_at_an_exit_that_shows_its_colours(desk: Desk):
    desk.library.options["cats"] = {"resolution": 1024}
    desk.start()
    session = GoToSeed(7).apply(desk.controller.session)
    desk.controller.request_thumbnail("here", session)
    desk.controller.request_thumbnail("there", replace(resolve(session), model_id="some other model"))
    desk.until(lambda: len(desk.controller.thumbnails) == 2)
    assert {item.resolution for item in desk.engine.requests[-2:]} == {256}


@pytest.mark.parametrize("has_transform", [False, True])
def test_small_pictures_of_another_network_are_asked_for_with_what_this_one_has(desk: Desk, has_transform: bool):
    desk.library.options["cats"] = {"has_transform": has_transform}
    desk.start()
    turned = Transform(degrees=30.0).matrix
    desk.controller.request_thumbnail("there", RenderRequest("another model", transform=turned, tap=Tap("L0_36_512")))
    desk.until(lambda: len(desk.controller.thumbnails) == 1)
    assert desk.engine.requests[-1].transform == (turned if has_transform else None)
    assert desk.engine.requests[-1].tap is None


def test_small_pictures_of_a_small_network_are_its_pictures_made_once_and_shrunk(open_desk: Desk):
    desk = open_desk
    session = GoToSeed(7).apply(desk.controller.session)
    desk.controller.request_thumbnail("here", session)
    desk.until(lambda: len(desk.controller.thumbnails) == 1)
    assert desk.engine.requests[-1].resolution is None
    small = desk.controller.thumbnails.get("here")
    assert small is not None
    assert (small.width, small.height) == (64, 64)
    assert "thumbnails" in desk.heard
    count = len(desk.engine.requests)
    desk.controller.request_thumbnail("here", session)
    desk.walk(1.0)
    desk.rest()
    assert len(desk.engine.requests) == count + 1


def test_a_small_picture_of_what_is_on_the_screen_is_there_at_once_and_costs_no_rendering(open_desk: Desk):
    desk = open_desk
    count = len(desk.engine.requests)
    desk.heard.clear()
    desk.controller.request_thumbnail("here", desk.controller.session)
    small = desk.controller.thumbnails.get("here")
    assert small is not None
    assert (small.width, small.height) == (64, 64)
    assert desk.heard == ["thumbnails"]
    assert len(desk.engine.requests) == count


def test_a_small_picture_of_the_session_that_came_back_is_there_with_its_first_picture(desk: Desk):
    desk.engine.gate.shut()
    desk.controller.start()
    desk.until(lambda: desk.controller.facts)
    for number in range(50):
        desk.controller.request_thumbnail(number, GoToSeed(number + 1).apply(desk.controller.session))
    desk.controller.request_thumbnail("here", desk.controller.session)
    desk.controller.request_thumbnail("later", GoToSeed(99).apply(desk.controller.session))
    desk.engine.gate.let_through()
    desk.until(lambda: "here" in desk.controller.thumbnails)
    assert len(desk.engine.requests) == 1
    assert len(desk.controller.thumbnails) == 1


def test_a_small_picture_that_cannot_be_made_is_not_tried_again_and_bothers_nobody(open_desk: Desk):
    desk = open_desk
    desk.engine.failing = DeviceError("No.")
    desk.controller.request_thumbnail("key", RenderRequest("x"))
    desk.until(lambda: desk.said(Level.NOTE))
    count = len(desk.engine.requests)
    desk.engine.failing = None
    desk.controller.request_thumbnail("key", RenderRequest("x"))
    desk.walk(1.0)
    desk.rest()
    assert len(desk.engine.requests) == count + 1
    assert desk.said() == []


def test_drifting_walks_by_itself_and_is_one_step_of_undo(open_desk: Desk):
    desk = open_desk
    desk.controller.set_drift_speed(2.0)
    desk.controller.set_drifting(True)
    for _ in range(5):
        desk.now_s += 0.05
        count = len(desk.frames)
        desk.until(lambda count=count: len(desk.frames) > count)
    assert desk.controller.drifting
    assert desk.labels == ["Start"]
    desk.controller.set_drifting(False)
    assert round(desk.x, 6) == 0.5
    assert desk.labels == ["Start", "Drift"]
    desk.controller.undo()
    assert desk.x == 0.0
    desk.rest()


def test_undo_while_drifting_stops_and_takes_back_the_whole_way(open_desk: Desk):
    desk = open_desk
    desk.controller.set_drifting(True)
    desk.now_s += 0.05
    desk.until(lambda: desk.x > 0)
    desk.controller.undo()
    assert not desk.controller.drifting
    assert desk.x == 0.0


def test_what_a_hand_does_while_it_drifts_is_taken_back_without_the_way_until_then(open_desk: Desk):
    desk = open_desk
    desk.controller.set_drifting(True)
    desk.now_s += 0.05
    desk.until(lambda: desk.x > 0)
    reached = desk.x
    for psi, final in ((0.5, False), (0.4, False), (0.3, True)):
        desk.controller.edit(set_truncation(Truncation(psi)), final)
    assert desk.labels == ["Start", "Drift", "Truncation"]
    desk.controller.undo()
    assert desk.controller.session.truncation == Session().truncation
    assert desk.x == reached
    desk.controller.undo()
    assert desk.x == 0.0


def test_the_drift_speed_is_kept_within_what_one_can_follow(open_desk: Desk):
    open_desk.controller.set_drift_speed(100.0)
    assert open_desk.controller.drift_speed == 4.0


def test_latency_begins_where_the_input_event_was_made_and_not_where_it_was_handled(open_desk: Desk):
    desk = open_desk
    desk.controller.statistics.clear()
    desk.now_s = 10.0
    desk.controller.input_came(0.03)
    desk.walk(0.5)
    desk.rest()
    desk.now_s = 10.02
    desk.controller.frame_painted(desk.frames[-1])
    assert round(desk.controller.statistics.gesture_to_screen_ms) == 50


def test_an_input_event_long_ago_has_nothing_to_do_with_what_is_asked_for_now(open_desk: Desk):
    desk = open_desk
    desk.controller.statistics.clear()
    desk.now_s = 10.0
    desk.controller.input_came(0.0)
    desk.now_s = 12.0
    desk.walk(0.5)
    desk.rest()
    desk.now_s = 12.02
    desk.controller.frame_painted(desk.frames[-1])
    assert round(desk.controller.statistics.gesture_to_screen_ms) == 20


def test_the_full_picture_after_a_rest_is_no_gesture(desk: Desk):
    desk.engine.full_ms = 50.0
    desk.start()
    desk.walk(0.5, release=False)
    desk.rest()
    assert not desk.frames[-1].is_draft
    desk.controller.statistics.clear()
    desk.now_s += 5.0
    desk.controller.frame_painted(desk.frames[-1])
    assert desk.controller.statistics.gesture_to_screen_ms == 0.0


def test_a_trace_of_the_last_frames_is_written_beside_everything_else(open_desk: Desk):
    desk = open_desk
    desk.walk(0.5)
    desk.rest()
    path = desk.folder / "drag.json"
    desk.controller.save_trace(path)
    desk.until(path.exists)
    desk.until(lambda: any("drag.json is saved" in message.sentence for message in desk.messages.messages))
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    assert any(name.startswith("frame ") for name in names)


def test_modulation_moves_the_picture_and_neither_the_session_nor_the_history(open_desk: Desk):
    desk = open_desk
    before = desk.controller.session

    class Ramp:
        def at(self, t: float) -> Position:
            return Position(t, 0.0)

    desk.now_s = 5.0
    desk.controller.set_modulation(Modulation((Modulator("position", Ramp()),)))
    desk.until(lambda: desk.frames[-1].request.blend == resolve(desk.controller.effective).blend)
    assert desk.controller.effective.position.x == 5.0
    assert desk.controller.session == before
    assert desk.labels == ["Start"]
    desk.controller.set_modulation(Modulation())
    desk.rest()
