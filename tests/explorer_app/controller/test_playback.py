"""Playing, scrubbing and recording over a fake renderer, with a clock that the test winds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from explorer_app.session.edits import GoToSeed, set_slider
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from explorer_app.session.storage import load_session, load_session_file
from explorer_app.session.timeline.edits import SetTimeline, with_key, with_state
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.tracks import STATE, WALK, Timeline, Track
from gpu_backend import DirectionAmount, RowRange
from tests.helpers.controller_harness import Harness

PSI = "truncation.psi"


@pytest.fixture
def ramp(harness: Harness) -> Harness:
    """Return a harness whose timeline moves psi from 0 to 1 in 10 s."""
    harness.start()
    timeline = with_key(with_key(Timeline(), PSI, Fraction(0), 0.0), PSI, Fraction(10), 1.0)
    harness.controller.editing.edit(SetTimeline(timeline))
    return harness


def at(harness: Harness) -> float:
    return harness.controller.editing.session.truncation.psi


def wind(harness: Harness, seconds: float) -> None:
    """Let time pass, and the playhead notice."""
    harness.now_s += seconds
    harness.controller.playback._tick()


def test_scrubbing_shows_the_picture_at_the_playhead_and_makes_no_step(ramp: Harness) -> None:
    playback, steps = ramp.controller.playback, len(ramp.labels)
    for t in (1, 3, 5):
        playback.seek(Fraction(t), False)
    assert at(ramp) == pytest.approx(0.5)
    playback.seek(Fraction(5), True)
    ramp.rest()
    assert ramp.frames[-1].request == resolve(ramp.controller.editing.session)
    assert len(ramp.labels) == steps


def test_scrubbing_goes_on_while_a_model_is_read(ramp: Harness) -> None:
    ramp.library.gate.shut()
    ramp.controller.files.open_model(ramp.path("dogs"))
    ramp.until(lambda: ramp.controller.engine.model.loading)
    for t in (3, 5):
        ramp.controller.playback.seek(Fraction(t), True)
        assert at(ramp) == pytest.approx(session_at(ramp.controller.editing.session, t).truncation.psi)
        ramp.rest()
    ramp.library.gate.open()
    ramp.until(lambda: ramp.controller.editing.session.model.name == "dogs")
    ramp.rest()
    assert at(ramp) == pytest.approx(0.5), "the playhead stays where it was"


def test_a_gesture_that_is_cancelled_leaves_what_was_set_by_hand_before_it(ramp: Harness) -> None:
    editing = ramp.controller.editing
    editing.edit(SetParameter(PSI, 0.7))
    before = editing.session
    editing.edit(SetParameter("slider/sefa/0", 1.0), False, "Sliders")
    editing.cancel_gesture("Sliders")
    assert editing.session == before
    assert at(ramp) == 0.7, "and not what the keys say, until the playhead moves"
    ramp.rest()


def test_an_edit_of_the_timeline_leaves_what_was_set_by_hand_in_other_tracks(ramp: Harness) -> None:
    editing = ramp.controller.editing
    editing.edit(SetParameter(PSI, 0.7))
    editing.edit(SetTimeline(with_key(editing.session.timeline, "noise.gain", Fraction(0), 0.5)))
    assert (at(ramp), editing.session.noise.gain) == (0.7, 0.5)
    editing.edit(SetTimeline(replace(editing.session.timeline, end=Fraction(20))))
    assert at(ramp) == 0.7
    editing.edit(SetTimeline(with_key(editing.session.timeline, PSI, Fraction(0), 0.2)))
    assert at(ramp) == 0.2
    ramp.rest()


def test_playing_keeps_time_however_late_it_is_polled(ramp: Harness) -> None:
    playback = ramp.controller.playback
    playback.set_playing(True)
    wind(ramp, 0.5)
    assert playback.time == Fraction(1, 2)
    wind(ramp, 3.51)
    assert playback.time == 4
    playback.set_playing(False)
    wind(ramp, 5.0)
    assert playback.time == 4
    assert at(ramp) == pytest.approx(session_at(ramp.controller.editing.session, 4.0).truncation.psi)


def test_playing_goes_on_from_the_playhead_when_its_range_or_its_rate_changes(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing

    def change(**fields: Any) -> None:
        editing.edit(SetTimeline(replace(editing.session.timeline, **fields)))
        ramp.until(lambda: playback._followed == editing.session.timeline)
        wind(ramp, 0.5)
        assert playback.is_playing

    playback.set_playing(True)
    wind(ramp, 43.0)
    assert playback.time == 3
    change(is_looping=False)
    change(fps=Fraction(60))
    change(end=Fraction(8), is_looping=True)
    assert playback.time == Fraction(9, 2)
    change(loop=(Fraction(6), Fraction(8)))
    assert playback.time == Fraction(13, 2), "outside of a new range it begins at its start"
    assert playback._timer.interval() == 16, "a frame is due so often now"
    playback.set_playing(False)


def test_playing_once_ends_at_the_end_and_begins_again_from_the_start(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    editing.edit(SetTimeline(replace(editing.session.timeline, is_looping=False)))
    playback.set_playing(True)
    wind(ramp, 60.0)
    assert not playback.is_playing
    assert playback.time == Fraction(299, 30)
    playback.set_playing(True)
    assert playback.time == 0


def test_a_gesture_moves_on_from_what_is_shown_and_undo_takes_only_that_back(ramp: Harness) -> None:
    editing = ramp.controller.editing
    ramp.controller.playback.seek(Fraction(10))
    editing.edit(SetParameter("noise.gain", 0.5), False)
    editing.edit(SetParameter("noise.gain", 0.5), True)
    assert (at(ramp), editing.session.noise.gain) == (1.0, 0.5)
    editing.undo()
    assert (at(ramp), editing.session.noise.gain) == (1.0, 1.0), "and not psi as it was at the step before, at 0 s"
    editing.redo()
    assert (at(ramp), editing.session.noise.gain) == (1.0, 0.5)


def test_undo_shows_the_playhead_and_a_click_on_a_step_its_picture(ramp: Harness) -> None:
    editing, playback = ramp.controller.editing, ramp.controller.playback
    playback.seek(Fraction(5))
    editing.edit(SetParameter(PSI, -0.5))
    playback.seek(Fraction(10))
    editing.edit(SetParameter("noise.gain", 0.5))
    editing.undo()
    assert at(ramp) == 1.0
    editing.redo()
    editing.go_to(editing.history.position - 1)
    assert at(ramp) == -0.5


def test_the_picture_before_a_step_is_the_one_that_undo_shows(ramp: Harness) -> None:
    editing = ramp.controller.editing
    ramp.controller.playback.seek(Fraction(10))
    for final in (False, True):
        editing.edit(SetParameter("noise.gain", 0.5), final)
        before = editing.session_before
        assert before is not None
        assert (before[1].truncation.psi, before[1].noise.gain) == (1.0, 1.0)
        shown = before[1]
    editing.undo()
    assert editing.session == shown


def test_redo_of_a_step_of_the_last_start_shows_it(ramp: Harness) -> None:
    editing = ramp.controller.editing
    ramp.controller.playback.seek(Fraction(10))
    session = editing.session
    steps = [(replace(session, truncation=replace(session.truncation, psi=psi)), f"{psi}") for psi in (0.3, 0.9)]
    read = [(replace(step, timeline=replace(step.timeline)), label) for step, label in steps]  # equal, as from a file
    editing._editor.restore_history(read, 1)
    editing.go_to(1)
    assert at(ramp) == 0.9
    editing.undo()
    assert at(ramp) == 1.0, "what the keys say"
    editing.redo()
    assert at(ramp) == 0.9


def test_a_gesture_on_what_is_animated_wins_until_the_playhead_moves(ramp: Harness) -> None:
    editing, playback = ramp.controller.editing, ramp.controller.playback
    playback.seek(Fraction(5))
    editing.edit(SetParameter(PSI, 0.9))
    assert at(ramp) == 0.9
    playback.step(1)
    assert at(ramp) == pytest.approx(session_at(editing.session, 5 + 1 / 30).truncation.psi)


def test_keeping_the_picture_makes_a_key_of_everything(harness: Harness) -> None:
    harness.start()
    playback, editing = harness.controller.playback, harness.controller.editing
    editing.edit(GoToSeed(4))
    playback.keep_picture()
    playback.seek(Fraction(2))
    editing.edit(GoToSeed(9))
    playback.keep_picture()
    state = editing.session.timeline.track(STATE)
    assert state is not None
    assert [key.time for key in state.keys] == [0, 2]
    playback.seek(Fraction(0))
    assert resolve(editing.session) == resolve(GoToSeed(4).apply(editing.session))
    playback.seek(Fraction(1))
    assert len(editing.session.pinned_blend) == 2
    editing.undo()
    editing.undo()
    assert harness.labels[-2:] == ["Go to seed", "Keep picture here"]
    state = editing.session.timeline.track(STATE)
    assert state is not None
    assert len(state.keys) == 1


def test_dragging_keys_shows_what_they_make_at_the_playhead(ramp: Harness) -> None:
    editing = ramp.controller.editing
    ramp.controller.playback.seek(Fraction(10))
    timeline = editing.session.timeline
    editing.edit(SetTimeline(with_key(timeline, PSI, Fraction(10), 2.0)), False, "TimelinePanel")
    assert at(ramp) == 2.0
    editing.cancel_gesture("TimelinePanel")
    assert at(ramp) == 1.0


def test_undo_of_a_key_shows_the_picture_that_was_there_at_the_playhead(ramp: Harness) -> None:
    editing = ramp.controller.editing
    ramp.controller.playback.seek(Fraction(5))
    editing.edit(SetTimeline(with_key(editing.session.timeline, PSI, Fraction(5), -1.0)))
    assert at(ramp) == -1.0
    editing.undo()
    assert at(ramp) == pytest.approx(0.5)


def test_undo_of_a_key_brings_back_what_was_set_by_hand_before_it(ramp: Harness) -> None:
    editing = ramp.controller.editing
    editing.edit(SetParameter(PSI, 0.7))
    editing.edit(SetTimeline(with_key(editing.session.timeline, PSI, Fraction(0), 0.2)))
    assert at(ramp) == 0.2
    editing.undo()
    assert at(ramp) == 0.7
    editing.redo()
    assert at(ramp) == 0.2
    ramp.controller.playback.seek(Fraction(10))
    editing.undo()
    assert at(ramp) == 1.0, "the playhead is elsewhere now"


def test_a_walk_moves_the_picture_and_leaves_the_session_where_it_is(harness: Harness) -> None:
    harness.start()
    editing = harness.controller.editing
    editing.edit(SetTimeline(Timeline((Track(WALK, radius=0.5),))))
    before = editing.session
    for t in (1, 2, 3):
        harness.controller.playback.seek(Fraction(t))
    assert editing.session == before
    assert resolve(editing.effective) == resolve(session_at(before, 3.0))


def record(harness: Harness, *values: float, path: str = "noise.gain", cancelled: bool = False) -> None:
    """Move a parameter for a second while it is recorded."""
    editing = harness.controller.editing
    for value in values[:-1]:
        wind(harness, 0.1)
        editing.edit(SetParameter(path, value), False, "Panel")
    wind(harness, 0.1)
    if cancelled:
        editing.cancel_gesture("Panel")
    else:
        editing.edit(SetParameter(path, values[-1]), True, "Panel")


def test_a_recorded_gesture_becomes_few_keys_and_one_step(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    steps = len(ramp.labels)
    playback.set_recording(True)
    assert playback.is_playing
    record(ramp, *(n / 10 for n in range(11)), 1.0, 1.0)
    track = editing.session.timeline.track("noise.gain")
    assert track is not None
    assert len(track.keys) < 6
    assert (track.keys[0].value, track.keys[-1].value) == (0.0, 1.0)
    assert len(ramp.labels) == steps + 1
    assert ramp.labels[-1] == "Record noise gain"
    playback.set_playing(False)
    playback.seek(Fraction(3, 5))
    assert editing.session.noise.gain == pytest.approx(0.5, abs=0.06)
    editing.undo()
    assert editing.session.timeline.track("noise.gain") is None


def test_a_gesture_over_the_end_of_the_loop_keeps_what_it_did_before_it(ramp: Harness) -> None:
    playback = ramp.controller.playback
    playback.seek(Fraction(39, 4))
    playback.set_recording(True)
    record(ramp, 0.2, 0.4, 0.8, 0.6, 0.3)
    track = ramp.controller.editing.session.timeline.track("noise.gain")
    assert track is not None
    at_end = [key.value for key in track.keys if key.time > 9]
    at_start = [key.value for key in track.keys if key.time < 1]
    assert (at_end, at_start) == ([0.2, 0.4], [0.8, 0.6, 0.3])


def test_a_gesture_while_playing_backwards_is_recorded_in_the_order_of_time(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    editing.edit(SetTimeline(replace(editing.session.timeline, is_ping_pong=True)))
    playback.seek(Fraction(49, 5))
    playback.set_recording(True)
    record(ramp, 0.1, 0.2, 0.5, 0.6, 1.0)
    track = editing.session.timeline.track("noise.gain")
    assert track is not None
    assert [key.value for key in track.keys if key.time < Fraction(98, 10)] == [1.0, 0.6]
    assert [key.time for key in track.keys] == sorted(key.time for key in track.keys)


def test_a_gesture_with_several_events_a_frame_is_one_curve_while_playing_backwards(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    editing.edit(SetTimeline(replace(editing.session.timeline, is_ping_pong=True)))
    playback.seek(Fraction(49, 5))
    playback.set_recording(True)
    wind(ramp, 1.0)
    for step in range(240):
        wind(ramp, 0.008)
        editing.edit(SetParameter("noise.gain", step / 240), False, "Latent")
    editing.edit(SetParameter("noise.gain", 1.0), True, "Latent")
    track = editing.session.timeline.track("noise.gain")
    assert track is not None
    assert [key.value for key in track.keys] == [1.0, 0.0]


def test_undo_of_a_gesture_that_is_recorded_takes_back_what_it_has_recorded(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    playback.set_recording(True)
    for value in (0.1, 0.2, 0.3):
        wind(ramp, 0.1)
        editing.edit(SetParameter("noise.gain", value), False, "Knob")
    editing.undo()
    assert ramp.labels[-1] == "Record noise gain"
    assert editing.session.timeline.track("noise.gain") is None
    record(ramp, 1.5, 1.6, 1.7)
    track = editing.session.timeline.track("noise.gain")
    assert track is not None
    assert [key.value for key in track.keys] == [1.5, 1.7]


@pytest.mark.parametrize("ends", ["at the end", "by a pause", "by the button"])
def test_a_gesture_that_goes_on_when_recording_ends_is_recorded_until_then(ramp: Harness, ends: str) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    editing.edit(SetTimeline(replace(editing.session.timeline, is_looping=False)))
    playback.seek(Fraction(8))
    playback.set_recording(True)
    for step in range(10):
        editing.edit(SetParameter("noise.gain", 0.1 * step), False, "Latent")
        wind(ramp, 0.1)
    if ends == "at the end":
        wind(ramp, 60.0)
    elif ends == "by a pause":
        playback.set_playing(False)
    else:
        playback.set_recording(False)
    track = editing.session.timeline.track("noise.gain")
    assert track is not None
    assert [key.value for key in track.keys][-1] == pytest.approx(0.9)
    assert ramp.labels[-1] == "Record noise gain"
    editing.edit(SetParameter("noise.gain", 2.0), False, "Latent")
    editing.edit(SetParameter("noise.gain", 2.0), True, "Latent")
    assert editing.session.timeline.track("noise.gain") == track, "what comes after it is no recording"
    playback.close()


def test_only_armed_parameters_are_recorded(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    playback.set_armed(PSI, True)
    playback.set_recording(True)
    record(ramp, 0.1, 0.2, 0.3)
    assert editing.session.timeline.track("noise.gain") is None
    assert editing.session.noise.gain == 0.3


def test_a_parameter_that_was_armed_on_a_track_which_is_gone_mutes_no_other(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    playback.set_armed(PSI, True)
    editing.edit(SetTimeline(replace(editing.session.timeline, tracks=())))
    playback.set_recording(True)
    record(ramp, 0.1, 0.2, 0.3)
    assert editing.session.timeline.track("noise.gain") is not None


def test_a_cancelled_gesture_records_nothing(ramp: Harness) -> None:
    ramp.controller.playback.set_recording(True)
    record(ramp, 0.1, 0.2, 0.3, cancelled=True)
    assert ramp.controller.editing.session.timeline.track("noise.gain") is None
    assert ramp.controller.editing.session.noise.gain == 1.0


def test_a_cancelled_gesture_leaves_what_another_one_has_recorded(ramp: Harness) -> None:
    editing = ramp.controller.editing
    ramp.controller.playback.set_recording(True)
    for value in (0.2, 0.9, 0.4):
        wind(ramp, 0.1)
        editing.edit(SetParameter("noise.gain", value), False, "Knob")
    editing.edit(SetParameter("slider/sefa/0", 1.0), False, "Sliders")
    editing.cancel_gesture("Sliders")
    wind(ramp, 0.1)
    editing.edit(SetParameter("noise.gain", 0.4), True, "Knob")
    track = editing.session.timeline.track("noise.gain")
    assert track is not None
    assert max(key.value for key in track.keys) == 0.9
    assert editing.session.timeline.track("slider/sefa/0") is None


def test_the_timeline_is_saved_a_second_after_a_change_and_comes_back(ramp: Harness) -> None:
    ramp.until(lambda: (ramp.state / "1" / "session.loom").exists() or list(ramp.state.rglob("session.loom")))
    (path,) = ramp.state.rglob("session.loom")
    ramp.until(lambda: load_session(path).timeline.tracks)
    timeline = ramp.controller.editing.session.timeline
    again = ramp.reopened()
    again.start()
    assert again.controller.editing.session.timeline == timeline
    again.until(lambda: again.controller.editing.history.can_undo)
    again.controller.editing.undo()
    assert again.controller.editing.session.timeline.tracks == ()


def test_a_picture_leaves_the_timeline_and_a_project_brings_its_own(ramp: Harness) -> None:
    files, editing = ramp.controller.files, ramp.controller.editing
    timeline = editing.session.timeline
    ramp.rest()
    ramp.controller.pictures.save(ramp.folder / "still.png")
    ramp.until((ramp.folder / "still.png").exists)
    files.save_session(ramp.folder / "piece.loom")
    ramp.until((ramp.folder / "piece.loom").exists)
    editing.edit(SetTimeline(replace(timeline, tracks=())))
    bare = editing.session.timeline
    editing.edit(SetParameter("noise.gain", 0.2))
    steps = len(ramp.labels)
    files.open_picture(ramp.folder / "still.png")
    ramp.until(lambda: editing.session.noise.gain == 1.0)
    assert len(ramp.labels) == steps + 1
    assert editing.session.timeline == bare
    files.open_session(ramp.folder / "piece.loom")
    ramp.until(lambda: editing.session.timeline == timeline)


def test_a_kept_picture_leaves_the_timeline_alone(ramp: Harness) -> None:
    editing = ramp.controller.editing
    editing.kept.star(editing.history.entries[-1].number, True)
    timeline = with_state(editing.session.timeline, editing.session, Fraction(3))
    editing.edit(SetTimeline(timeline))
    editing.go_to_kept(editing.history.kept[0].number)
    assert editing.session.timeline == timeline


def test_a_track_of_something_that_the_model_lacks_goes_with_a_message(harness: Harness) -> None:
    harness.start()
    editing = harness.controller.editing
    timeline: Any = with_key(Timeline(), "slider/axis/99999", Fraction(0), 1.0)
    editing.restore(Session(model=editing.session.model, timeline=timeline), "Restore")
    harness.open("dogs")
    assert editing.session.timeline.tracks == ()
    assert any("tracks of parameters that it does not have" in sentence for sentence in harness.said())


def test_a_project_brings_the_choices_of_its_export_along(ramp: Harness) -> None:
    for key, value in (("export.format", "jpeg"), ("export.fps", "24"), ("export.threads", "3"), ("other", "x")):
        ramp.settings.choose(key, value)
    ramp.controller.files.save_session(ramp.folder / "piece.loom")
    ramp.until((ramp.folder / "piece.loom").exists)
    assert load_session_file(ramp.folder / "piece.loom").export == {"export.format": "jpeg", "export.fps": "24"}
    ramp.settings.choose("export.format", "png")
    ramp.controller.files.open_session(ramp.folder / "piece.loom")
    ramp.until(lambda: ramp.settings.choice("export.format") == "jpeg")
    assert ramp.settings.choice("other") == "x"


def test_a_drawn_path_becomes_keys_from_the_playhead_on_as_one_step(open_harness: Harness) -> None:
    controller = open_harness.controller
    controller.playback.seek(Fraction(2), True)
    paths = ("slider/sefa/0", "slider/sefa/1")
    points = [(step / 10, float(step), 3.0 * abs(step - 5)) for step in range(11)]
    steps = len(open_harness.labels)
    controller.playback.draw(paths, points)
    assert open_harness.labels[steps:] == ["Draw path"]
    session = controller.editing.session
    for t, right, up in points:
        moved = session_at(session, 2.0 + t)
        assert moved.slider("sefa/0").amount == pytest.approx(right, abs=0.06)
        assert moved.slider("sefa/1").amount == pytest.approx(up, abs=0.09)
    keys = [len(track.keys) for track in session.timeline.tracks]
    assert keys == [2, 3]
    controller.editing.undo()
    assert controller.editing.session.timeline.tracks == ()


def test_a_slider_that_a_gesture_resets_while_a_track_moves_it_stays_on_its_directions_own_rows(
    open_harness: Harness,
) -> None:
    editing = open_harness.controller.editing
    editing.edit(SetTimeline(with_key(Timeline(), "slider/world/sun", Fraction(0), 2.0)))
    own = DirectionAmount("world/sun", 2.0, within_own=True)
    assert resolve(session_at(editing.session, 1.0)).blend[0][0].latent.directions == (own,)
    editing.edit(SetParameter("slider/world/sun", 0.0))
    assert resolve(session_at(editing.session, 1.0)).blend[0][0].latent.directions == (own,)


def test_a_recorded_slider_keeps_its_rows_without_a_track_of_them(ramp: Harness) -> None:
    playback, editing = ramp.controller.playback, ramp.controller.editing
    playback.set_recording(True)
    for value in (1.0, 2.0):
        wind(ramp, 0.5)
        editing.edit(set_slider("sefa/0", RowRange(2, 5), SetParameter("slider/sefa/0", value)), value == 2.0, "Panel")
    assert [track.path for track in editing.session.timeline.tracks] == [PSI, "slider/sefa/0"]
    assert editing.session.slider("sefa/0").rows == RowRange(2, 5)
