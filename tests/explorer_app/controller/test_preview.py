from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from explorer_app.controller.preview import MEASURE_MS, REST_MS
from explorer_app.messages import Level
from explorer_app.session.edits import GoToSeed, set_truncation
from explorer_app.session.resolve import Modulation, Modulator, resolve
from explorer_app.session.session import Position, Session
from gpu_backend import DeviceError, RenderRequest, Tap, Transform, Truncation
from tests.helpers.controller_harness import Harness
from tests.helpers.patience import more_than


def test_while_the_hand_moves_drafts_come_and_at_the_end_the_full_picture(harness: Harness) -> None:
    harness.engine.full_ms = 50.0
    harness.start()
    harness.drag(0.5, release=False)
    assert harness.draft().request.resolution == 64
    harness.drag(0.6)
    harness.rest()
    assert not harness.frames[-1].is_draft


def test_a_picture_that_holds_while_time_goes_on_is_shown_in_full_and_stays(harness: Harness) -> None:
    harness.engine.full_ms = 50.0
    harness.start()
    harness.drag(0.5, release=False)
    harness.draft()
    preview, held = harness.controller.engine.preview, harness.controller.editing.effective

    def go_on() -> bool:
        preview.request(held, live=True)
        return not harness.frames[-1].is_draft

    harness.until(go_on)
    count = len(harness.frames)
    for _ in range(3):
        assert go_on()
    preview.refresh()
    harness.until(lambda: len(harness.frames) > count)
    assert go_on()
    assert not any(frame.is_draft for frame in harness.frames[count:])
    harness.drag(0.6, release=False)
    assert harness.draft(len(harness.frames)).is_draft


def test_a_gesture_that_leaves_the_picture_as_it_is_requests_no_draft(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.engine.full_ms = 50.0
    harness.start()
    harness.drag(0.5, release=False)
    harness.draft()
    harness.drag(0.5)
    harness.until(lambda: not harness.frames[-1].is_draft)
    preview, shown = harness.controller.engine.preview, harness.controller.editing.effective
    requested: list[RenderRequest] = []
    monkeypatch.setattr(preview._renders, "submit", lambda request, *_, **__: requested.append(request))
    for _ in range(3):
        preview.request(shown, live=True)  # such as painting a mask
    assert not requested
    preview.request(replace(shown, position=Position(0.9, 0.0)), live=True)
    assert [request.resolution is None for request in requested] == [False]


@pytest.mark.parametrize(("resolution", "first"), [(1024, 64), (256, None)])
def test_a_large_network_shows_a_draft_as_it_opens_and_the_full_picture_follows_by_itself(
    harness: Harness, resolution: int, first: int | None
) -> None:
    harness.library.options["dogs"] = {"resolution": resolution}
    harness.settings.change(device="cpu")
    harness.start()
    count = len(harness.frames)
    harness.open("dogs")
    harness.until(lambda: len(harness.frames) > count)
    assert harness.frames[count].request.resolution == first
    harness.rest()
    harness.drag(1.0)
    harness.until(lambda: harness.frames[-1].request.blend == resolve(harness.controller.editing.session).blend)
    harness.rest()
    assert [frame.request.resolution for frame in harness.frames[count:]].count(64) == (first is not None)


def test_the_first_draft_of_a_network_is_shown_however_slow_it_is(harness: Harness, qtbot: QtBot) -> None:
    harness.library.options["dogs"] = {"resolution": 1024}
    harness.settings.change(device="cpu")
    harness.start()
    count = len(harness.frames)
    harness.engine.gate.shut()
    harness.open("dogs")
    qtbot.wait(3 * REST_MS)
    harness.engine.gate.open()
    harness.until(lambda: len(harness.frames) > count)
    assert harness.frames[count].is_draft, "the full picture takes its turn afterwards"
    harness.rest()


def test_a_draft_in_which_nothing_is_to_be_seen_is_not_shown_and_a_larger_one_comes(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer_app.controller.drafts.MIN_DRAFT_PX", 32)
    harness.engine.full_ms = 5e3
    harness.engine.empty_px = 32
    harness.start()
    harness.drag(0.5, release=False)
    harness.until(lambda: harness.engine.requests[-1].resolution == 32)

    def is_draft_of_a_move() -> bool:
        harness.drag(0.6 + 0.01 * next(moves), release=False)
        return any(frame.is_draft for frame in harness.frames)

    moves = itertools.count()
    harness.until(is_draft_of_a_move)
    assert harness.draft().request.resolution == 64
    assert all(frame.request.resolution != 32 for frame in harness.frames)


def test_a_gesture_that_holds_still_gets_the_full_picture_without_letting_go(harness: Harness) -> None:
    harness.engine.full_ms = 50.0
    harness.start()
    harness.drag(0.5, release=False)
    harness.rest()
    assert not harness.frames[-1].is_draft
    assert harness.labels == ["Start"]


def test_a_model_that_is_fast_enough_is_never_drafted(open_harness: Harness) -> None:
    open_harness.drag(0.5, release=False)
    open_harness.rest()
    open_harness.drag(0.5)
    assert not any(frame.is_draft for frame in open_harness.frames)


def test_the_same_picture_is_not_rendered_twice(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(0.5, release=False)
    harness.rest()
    count = len(harness.engine.requests)
    harness.drag(0.5)
    harness.drag(0.7)
    harness.rest()
    assert len(harness.engine.requests) == count + 1


def test_latency_runs_from_the_gesture_to_the_paint_and_counts_once(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.engine.preview.frame_painted(harness.frames[-1])
    assert harness.controller.engine.preview.statistics.newest_latency_ms is None, "opening a model is no gesture"
    harness.now_s = 10.0
    harness.drag(0.5)
    harness.rest()
    harness.now_s = 10.04
    harness.controller.engine.preview.frame_painted(harness.frames[-1])
    harness.now_s = 99.0
    harness.controller.engine.preview.frame_painted(harness.frames[-1])
    assert round(harness.controller.engine.preview.statistics.gesture_to_screen_ms) == 40


def test_the_steps_of_the_picture_are_measured_once_while_the_panel_is_visible(open_harness: Harness) -> None:
    harness = open_harness
    assert harness.controller.engine.preview.statistics.steps == ()
    harness.controller.engine.set_measuring(True)
    harness.until(lambda: harness.controller.engine.preview.statistics.steps)

    def measured() -> int:
        return len([item for item in harness.engine.requests if item.measure_steps])

    assert measured() == 1
    assert harness.settings.values.performance_visible
    harness.controller.engine.measure_counters()  # a measured picture reports them
    harness.until(lambda: measured() == 2)
    harness.controller.engine.set_measuring(False)
    harness.drag(0.5)
    harness.rest()
    assert measured() == 2


def measuring_is_due(harness: Harness, qtbot: QtBot) -> QTimer:
    timer = next(timer for timer in harness.controller.findChildren(QTimer) if timer.interval() == MEASURE_MS)
    with qtbot.waitSignal(timer.timeout):
        timer.start()
    return timer


def test_measuring_waits_for_a_plain_first_picture_since_measured_ones_have_no_time(
    harness: Harness, qtbot: QtBot
) -> None:
    harness.engine.gate.shut()
    harness.controller.start()
    harness.until(lambda: harness.controller.engine.model.facts)
    harness.engine.gate.wait_for_knock()
    measuring_is_due(harness, qtbot)
    harness.drag(0.5)
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.engine.preview.statistics.steps)
    assert not harness.engine.given_up[0].measure_steps
    assert [request.measure_steps for request in harness.engine.requests] == [False, True]
    assert harness.controller.engine.preview.statistics.newest_ms > 0


def test_measuring_that_was_due_does_not_reach_the_next_models_first_picture(
    open_harness: Harness, qtbot: QtBot
) -> None:
    harness = open_harness
    harness.controller.engine.set_measuring(True)
    harness.engine.gate.shut()
    harness.drag(0.5)
    harness.engine.gate.wait_for_knock()
    measuring_is_due(harness, qtbot)
    harness.engine.gate.open()
    harness.open("dogs")
    harness.until(lambda: harness.controller.engine.preview.statistics.steps)
    assert harness.controller.engine.preview.statistics.newest_ms > 0
    dogs = harness.controller.engine.model.facts
    assert dogs is not None
    of_dogs = [request for request in harness.engine.requests if request.model_id == dogs.model_id]
    assert [request.measure_steps for request in of_dogs] == [False, True]


def test_a_restored_picture_of_another_model_has_its_steps_measured_at_rest(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.pictures.save(harness.folder / "cat.png")
    harness.until(lambda: "Saved cat.png." in harness.said())
    harness.controller.engine.set_measuring(True)
    harness.open("dogs")
    harness.until(lambda: harness.controller.engine.preview.statistics.steps)
    harness.controller.files.open_picture(harness.folder / "cat.png")
    harness.until(
        lambda: harness.controller.engine.model.facts and harness.controller.engine.model.facts.name == "cats"
    )
    assert harness.controller.engine.preview.statistics.steps == ()
    harness.until(lambda: harness.controller.engine.preview.statistics.steps)
    assert harness.controller.engine.preview.statistics.newest_ms > 0


def test_a_measured_picture_that_yields_to_another_passes_the_measurement_on(
    open_harness: Harness, qtbot: QtBot
) -> None:
    harness = open_harness
    harness.engine.gate.shut()
    harness.drag(1.0)
    harness.engine.gate.wait_for_knock()
    measuring_is_due(harness, qtbot).stop()  # it is due once, however long the test takes
    for x in (2.0, 3.0):  # the first one is to be measured, waits behind the gate, and is never rendered
        harness.drag(x)
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.engine.preview.statistics.steps)
    assert harness.controller.engine.preview.frame is not None
    assert harness.controller.engine.preview.frame.request.measure_steps
    harness.drag(4.0)
    harness.rest()
    assert [request.measure_steps for request in harness.engine.requests].count(True) == 1


def test_a_failed_picture_is_reported_once_and_can_be_requested_again(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.failing = DeviceError("Out of memory.")
    for x in (1.0, 2.0, 3.0):
        count = len(harness.engine.requests)
        harness.drag(x)
        harness.until(more_than(harness.engine.requests, count))
    harness.until(lambda: "Out of memory." in harness.said())
    harness.engine.failing = None
    harness.drag(3.0)
    harness.drag(3.5)
    harness.rest()
    assert harness.said().count("Out of memory.") == 1


def test_small_pictures_of_a_large_network_are_made_at_an_exit_that_shows_its_colours(harness: Harness) -> None:
    harness.library.options["cats"] = {"resolution": 1024}
    harness.start()
    session = GoToSeed(7).apply(harness.controller.editing.session)
    harness.controller.thumbnails.request("here", session)
    harness.controller.thumbnails.request("there", replace(resolve(session), model_id="some other model"))
    harness.until(lambda: len(harness.controller.thumbnails.store) == 2)
    assert {item.resolution for item in harness.engine.requests[-2:]} == {256}


@pytest.mark.parametrize("has_transform", [False, True])
def test_small_pictures_of_another_network_are_requested_with_what_this_one_has(
    harness: Harness, has_transform: bool
) -> None:
    harness.library.options["cats"] = {"has_transform": has_transform}
    harness.start()
    turned = Transform(degrees=30.0).matrix
    harness.controller.thumbnails.request(
        "there", RenderRequest("another model", transform=turned, tap=Tap("L0_36_512"))
    )
    harness.until(lambda: len(harness.controller.thumbnails.store) == 1)
    assert harness.engine.requests[-1].transform == (turned if has_transform else None)
    assert harness.engine.requests[-1].tap is None


def test_small_pictures_of_a_small_network_are_its_pictures_made_once_and_shrunk(open_harness: Harness) -> None:
    harness = open_harness
    session = GoToSeed(7).apply(harness.controller.editing.session)
    harness.controller.thumbnails.request("here", session)
    harness.until(lambda: len(harness.controller.thumbnails.store) == 1)
    assert harness.engine.requests[-1].resolution is None
    small = harness.controller.thumbnails.store.get("here")
    assert small is not None
    assert (small.width, small.height) == (64, 64)
    assert "thumbnails" in harness.heard
    count = len(harness.engine.requests)
    harness.controller.thumbnails.request("here", session)
    harness.drag(1.0)
    harness.rest()
    assert len(harness.engine.requests) == count + 1


def test_a_small_picture_of_what_is_on_the_screen_is_there_at_once_and_costs_no_rendering(
    open_harness: Harness,
) -> None:
    harness = open_harness
    count = len(harness.engine.requests)
    harness.heard.clear()
    harness.controller.thumbnails.request("here", harness.controller.editing.session)
    small = harness.controller.thumbnails.store.get("here")
    assert small is not None
    assert (small.width, small.height) == (64, 64)
    assert harness.heard == ["thumbnails"]
    assert len(harness.engine.requests) == count


def test_a_small_picture_of_the_session_that_came_back_is_there_with_its_first_picture(harness: Harness) -> None:
    harness.engine.gate.shut()
    harness.controller.start()
    harness.until(lambda: harness.controller.engine.model.facts)
    for number in range(50):
        harness.controller.thumbnails.request(number, GoToSeed(number + 1).apply(harness.controller.editing.session))
    harness.controller.thumbnails.request("here", harness.controller.editing.session)
    harness.controller.thumbnails.request("later", GoToSeed(99).apply(harness.controller.editing.session))
    harness.engine.gate.let_through()
    harness.until(lambda: "here" in harness.controller.thumbnails.store)
    assert len(harness.engine.requests) == 1
    assert len(harness.controller.thumbnails.store) == 1


def test_a_failed_thumbnail_is_neither_retried_nor_reported(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.failing = DeviceError("No.")
    harness.controller.thumbnails.request("key", RenderRequest("x"))
    harness.until(lambda: harness.said(Level.NOTE))
    count = len(harness.engine.requests)
    harness.engine.failing = None
    harness.controller.thumbnails.request("key", RenderRequest("x"))
    harness.drag(1.0)
    harness.rest()
    assert len(harness.engine.requests) == count + 1
    assert harness.said() == []


def test_drifting_walks_by_itself_and_is_one_step_of_undo(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.editing.set_drift_speed(2.0)
    harness.controller.editing.set_drifting(True)
    for _ in range(5):
        harness.now_s += 0.05
        count = len(harness.frames)
        harness.until(more_than(harness.frames, count))
    assert harness.controller.editing.drifting
    assert harness.labels == ["Start"]
    harness.controller.editing.set_drifting(False)
    assert round(harness.x, 6) == 0.5
    assert harness.labels == ["Start", "Drift"]
    harness.controller.editing.undo()
    assert harness.x == 0.0
    harness.rest()


def test_undo_while_drifting_stops_and_takes_back_the_whole_way(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.editing.set_drifting(True)
    harness.now_s += 0.05
    harness.until(lambda: harness.x > 0)
    harness.controller.editing.undo()
    assert not harness.controller.editing.drifting
    assert harness.x == 0.0


def test_undo_of_a_gesture_during_drift_leaves_the_drift_out(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.editing.set_drifting(True)
    harness.now_s += 0.05
    harness.until(lambda: harness.x > 0)
    reached = harness.x
    for psi, final in ((0.5, False), (0.4, False), (0.3, True)):
        harness.controller.editing.edit(set_truncation(Truncation(psi)), final)
    assert harness.labels == ["Start", "Drift", "Truncation"]
    harness.controller.editing.undo()
    assert harness.controller.editing.session.truncation == Session().truncation
    assert harness.x == reached
    harness.controller.editing.undo()
    assert harness.x == 0.0


def test_the_drift_speed_is_kept_within_what_one_can_follow(open_harness: Harness) -> None:
    open_harness.controller.editing.set_drift_speed(100.0)
    assert open_harness.controller.editing.drift_speed == 4.0


def test_latency_begins_where_the_input_event_was_made_and_not_where_it_was_handled(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.engine.preview.statistics.clear()
    harness.now_s = 10.0
    harness.controller.engine.preview.input_came(0.03)
    harness.drag(0.5)
    harness.rest()
    harness.now_s = 10.02
    harness.controller.engine.preview.frame_painted(harness.frames[-1])
    assert round(harness.controller.engine.preview.statistics.gesture_to_screen_ms) == 50


def test_an_old_input_event_does_not_time_a_new_request(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.engine.preview.statistics.clear()
    harness.now_s = 10.0
    harness.controller.engine.preview.input_came(0.0)
    harness.now_s = 12.0
    harness.drag(0.5)
    harness.rest()
    harness.now_s = 12.02
    harness.controller.engine.preview.frame_painted(harness.frames[-1])
    assert round(harness.controller.engine.preview.statistics.gesture_to_screen_ms) == 20


def test_the_full_picture_after_a_rest_is_no_gesture(harness: Harness) -> None:
    harness.engine.full_ms = 50.0
    harness.start()
    harness.drag(0.5, release=False)
    harness.rest()
    assert not harness.frames[-1].is_draft
    harness.controller.engine.preview.statistics.clear()
    harness.now_s += 5.0
    harness.controller.engine.preview.frame_painted(harness.frames[-1])
    assert harness.controller.engine.preview.statistics.gesture_to_screen_ms == 0.0


def test_a_trace_of_the_last_frames_is_written_beside_everything_else(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(0.5)
    harness.rest()
    path = harness.folder / "drag.json"
    harness.controller.engine.save_trace(path)
    harness.until(path.exists)
    harness.until(lambda: any("drag.json is saved" in message.sentence for message in harness.messages.messages))
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    assert any(name.startswith("frame ") for name in names)


def test_modulation_moves_the_picture_and_neither_the_session_nor_the_history(open_harness: Harness) -> None:
    harness = open_harness
    before = harness.controller.editing.session

    class Ramp:
        def at(self, t: float) -> Position:
            return Position(t, 0.0)

    harness.now_s = 5.0
    harness.controller.editing.sample_with(lambda session: Modulation((Modulator("position", Ramp()),)))
    harness.controller.editing.follow_inputs()
    harness.until(lambda: harness.frames[-1].request.blend == resolve(harness.controller.editing.effective).blend)
    assert harness.controller.editing.effective.position.x == 5.0
    assert harness.controller.editing.session == before
    assert harness.labels == ["Start"]
    harness.controller.editing.sample_with(lambda session: Modulation())
    harness.controller.editing.follow_inputs()
    harness.rest()
