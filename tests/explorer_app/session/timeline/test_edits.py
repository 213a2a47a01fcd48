"""Edits of a timeline."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from explorer_app.session.edits import GoToSeed
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session, Slider
from explorer_app.session.timeline import baking
from explorer_app.session.timeline.baking import baked_walk
from explorer_app.session.timeline.easing import as_bezier, eased
from explorer_app.session.timeline.edits import (
    SetTimeline,
    TimelineError,
    copied_keys,
    counted_in,
    eased_keys,
    key_at,
    moved_keys,
    moved_track,
    names_of,
    pasted_keys,
    retargeted,
    snapped,
    stretched_keys,
    with_grid,
    with_key,
    with_loop_closed,
    with_recorded,
    with_state,
    with_track,
    without_keys,
    without_track,
)
from explorer_app.session.timeline.evaluation import session_at, value_at
from explorer_app.session.timeline.noise_loop import with_noise_loop
from explorer_app.session.timeline.seam import Seam, seam
from explorer_app.session.timeline.timeline_json import (
    timeline_from_json,
    timeline_to_json,
    track_bytes,
    track_from_json,
)
from explorer_app.session.tracks import (
    HOLD,
    LINEAR,
    MAX_KEYS,
    MAX_SECONDS,
    NOISE_LOOP,
    STATE,
    WALK,
    BeatGrid,
    Easing,
    Handles,
    Key,
    Outside,
    Snap,
    Timeline,
    Track,
)

PSI, GAIN = "truncation.psi", "noise.gain"


def piece(*pairs: tuple[int, float], path: str = PSI, **others: object) -> Timeline:
    timeline = Timeline(**others)  # type: ignore[arg-type]
    for t, value in pairs:
        timeline = with_key(timeline, path, Fraction(t), value)
    return timeline


def times(timeline: Timeline, path: str = PSI) -> list[Fraction]:
    track = timeline.track(path)
    return [] if track is None else [timeline.seconds(key) for key in track.keys]


def test_a_key_goes_in_at_its_time_and_replaces_one_that_stands_there() -> None:
    timeline = piece((3, 0.3), (1, 0.1), (2, 0.2))
    assert times(timeline) == [1, 2, 3]
    eased_there = eased_keys(timeline, [(PSI, Fraction(2))], HOLD)
    again = with_key(eased_there, PSI, Fraction(2), 0.9)
    key = key_at(again, (PSI, Fraction(2)))
    assert key is not None
    assert (key.value, key.easing) == (0.9, HOLD)
    assert len(times(again)) == 3


def test_a_key_after_the_end_makes_the_timeline_longer() -> None:
    assert piece((25, 0.1)).end == 25


def test_keys_of_choices_and_whole_numbers_hold() -> None:
    timeline = with_key(Timeline(), "noise.seed", Fraction(0), 4)
    assert timeline.tracks[0].keys[0].easing == HOLD


def test_several_keys_move_at_once_and_their_distances_stay() -> None:
    timeline = with_key(piece((1, 0.1), (2, 0.2), (5, 0.5)), GAIN, Fraction(2), 1.0)
    moved, names = moved_keys(timeline, [(PSI, Fraction(1)), (PSI, Fraction(2)), (GAIN, Fraction(2))], Fraction(1, 2))
    assert times(moved) == [Fraction(3, 2), Fraction(5, 2), 5]
    assert times(moved, GAIN) == [Fraction(5, 2)]
    assert names == {(PSI, Fraction(3, 2)), (PSI, Fraction(5, 2)), (GAIN, Fraction(5, 2))}


def test_keys_do_not_move_before_the_start() -> None:
    moved, _ = moved_keys(piece((1, 0.1), (3, 0.2)), names_of(piece((1, 0.1), (3, 0.2))), Fraction(-9))
    assert times(moved) == [0, 2]


def test_a_moved_key_replaces_the_one_that_it_lands_on() -> None:
    moved, _ = moved_keys(piece((1, 0.1), (2, 0.2)), [(PSI, Fraction(1))], Fraction(1))
    assert times(moved) == [2]
    assert moved.tracks[0].keys[0].value == 0.1


def test_values_move_up_within_their_range() -> None:
    moved, _ = moved_keys(piece((1, 0.1), (2, 1.9)), [(PSI, Fraction(1)), (PSI, Fraction(2))], Fraction(0), raised=0.5)
    assert [round(key.value, 9) for key in moved.tracks[0].keys] == [0.6, 2.0]


def test_keys_stretch_away_from_a_pivot() -> None:
    timeline = piece((1, 0.1), (2, 0.2), (3, 0.3))
    stretched, _ = stretched_keys(timeline, names_of(timeline), Fraction(1), Fraction(3, 2))
    assert times(stretched) == [1, Fraction(5, 2), 4]


@pytest.mark.parametrize("snap", ["frame", "beat"])
def test_keys_that_are_stretched_many_times_can_still_be_saved(snap: Snap) -> None:
    grid = BeatGrid(Fraction("119.3"), Fraction(37, 1000))
    timeline = Timeline(fps=Fraction(30000, 1001), snap=snap, grid=grid)
    for second in range(8):
        timeline = with_key(timeline, PSI, snapped(timeline, Fraction(second)), second / 10)
    for number in range(14):
        times = sorted(t for _, t in names_of(timeline))
        first = number % 5  # other keys each time, so that nothing cancels out
        pivot, end = times[first], times[first + 3]
        to = snapped(timeline, end + Fraction(7 if number % 2 else -5, 10))
        chosen = [(PSI, t) for t in times[first : first + 4]]
        timeline, names = stretched_keys(timeline, chosen, pivot, (to - pivot) / (end - pivot))
        assert names <= names_of(timeline)
        timeline, names = pasted_keys(timeline, copied_keys(timeline, names), pivot)
        assert names <= names_of(timeline)
    (track,) = timeline.tracks
    assert len(track.keys) == 8
    assert track_from_json(json.loads(track_bytes(track))) == track
    assert timeline_from_json(timeline_to_json(timeline, [0]), [track]) == timeline


def test_copied_keys_are_pasted_at_the_playhead() -> None:
    timeline = with_key(piece((1, 0.1), (2, 0.2)), GAIN, Fraction(3, 2), 1.0)
    clip = copied_keys(timeline, names_of(timeline))
    pasted, names = pasted_keys(timeline, clip, Fraction(20))
    assert times(pasted) == [1, 2, 20, 21]
    assert times(pasted, GAIN) == [Fraction(3, 2), Fraction(41, 2)]
    assert names == {(PSI, Fraction(20)), (PSI, Fraction(21)), (GAIN, Fraction(41, 2))}
    assert pasted.end == 21


def test_pasted_keys_count_in_beats_while_keys_snap_to_them() -> None:
    timeline = piece((1, 0.1), snap="beat", grid=BeatGrid(Fraction(60)))
    pasted, names = pasted_keys(timeline, copied_keys(timeline, names_of(timeline)), Fraction(4))
    assert names == {(PSI, Fraction(4))}
    assert [key.is_beat for key in pasted.tracks[0].keys] == [True, True]
    assert times(with_grid(pasted, BeatGrid(Fraction(120)))) == [Fraction(1, 2), 2]


def test_copied_numbers_become_keys_of_another_track_within_its_range() -> None:
    timeline = piece((1, -2.0), (2, 0.5), path="slider/a")
    clip = copied_keys(timeline, names_of(timeline))
    assert [(path, key.time, key.value) for path, key in retargeted(clip, GAIN)] == [(GAIN, 0, 0.0), (GAIN, 1, 0.5)]
    assert retargeted(clip, STATE) == ()
    assert retargeted(clip, "noise.mode") == ()
    assert retargeted((*clip, (PSI, clip[0][1])), GAIN) == ()
    assert retargeted((), GAIN) == ()


def test_deleted_keys_are_gone_and_their_track_stays() -> None:
    timeline = without_keys(piece((1, 0.1), (2, 0.2)), [(PSI, Fraction(1)), (PSI, Fraction(2))])
    assert timeline.track(PSI) == Track(PSI)


def test_tracks_are_sorted_and_removed_by_their_path() -> None:
    timeline = with_key(piece((1, 0.1)), GAIN, Fraction(0), 1.0)
    assert [track.path for track in moved_track(timeline, GAIN, 0).tracks] == [GAIN, PSI]
    assert without_track(timeline, PSI).track(PSI) is None


def test_times_snap_to_frames_or_to_quarter_beats() -> None:
    assert snapped(Timeline(fps=Fraction(25), snap="frame"), Fraction(101, 100)) == 1
    beats = Timeline(grid=BeatGrid(Fraction(120), Fraction(1, 10)), snap="beat")
    assert snapped(beats, Fraction(27, 100)) == Fraction(1, 10) + Fraction(1, 8)
    assert snapped(Timeline(snap="off"), Fraction(1, 7)) == Fraction(1, 7)


def test_keys_that_count_in_beats_follow_a_new_tempo_and_keep_their_order() -> None:
    timeline = replace(piece((1, 0.1), (2, 0.2)), grid=BeatGrid(Fraction(60)))
    in_beats = counted_in(timeline, [(PSI, Fraction(2))], is_beat=True)
    assert times(in_beats) == [1, 2]
    faster = with_grid(in_beats, BeatGrid(Fraction(180)))
    assert times(faster) == [Fraction(2, 3), 1]
    assert [key.value for key in faster.tracks[0].keys] == [0.2, 0.1]


@pytest.mark.parametrize(
    "grid", [BeatGrid(Fraction(30)), BeatGrid(Fraction(60), Fraction(9))], ids=["slower tempo", "later first beat"]
)
def test_a_timeline_gets_longer_where_a_grid_moves_keys_beyond_its_end(grid: BeatGrid) -> None:
    timeline = replace(piece((1, 0.1), (9, 0.2)), grid=BeatGrid(Fraction(60)))
    in_beats = counted_in(timeline, [(PSI, Fraction(9))], is_beat=True)
    longer = with_grid(in_beats, grid)
    assert times(longer) == [1, 18]
    assert longer.end == 18
    assert with_grid(longer, BeatGrid(Fraction(60))).end == 18, "what is longer stays"
    assert with_grid(timeline, grid).end == 10, "keys that count in seconds do not move"
    cut = replace(in_beats, end=Fraction(5))
    assert with_grid(cut, grid).end == 5, "a key that lay beyond the end before"


def test_new_keys_count_in_beats_while_keys_snap_to_them() -> None:
    timeline = with_key(Timeline(grid=BeatGrid(Fraction(60)), snap="beat"), PSI, Fraction(3), 0.4)
    assert timeline.tracks[0].keys == (Key(Fraction(3), 0.4, is_beat=True),)


def test_keeping_the_picture_keys_the_whole_session_and_every_other_track() -> None:
    session = replace(GoToSeed(12).apply(Session()), sliders=(Slider("a", 2.0),))
    timeline = with_key(Timeline(), "slider/a", Fraction(0), -1.0)
    kept = with_state(timeline, replace(session, timeline=timeline), Fraction(4))
    shown = session_at(replace(Session(), timeline=kept), 4.0)
    assert replace(shown, timeline=Timeline()) == session
    assert shown.slider("a").amount == 2.0
    state = kept.track(STATE)
    assert state is not None
    assert state.keys[0].value.timeline == Timeline()


def test_keeping_the_picture_leaves_walks_and_loops_of_the_noise_alone() -> None:
    timeline = with_noise_loop(with_track(Timeline(), Track(WALK)))
    kept = with_state(timeline, Session(), Fraction(4))
    assert [kept.track(path) for path in (WALK, NOISE_LOOP)] == [timeline.track(path) for path in (WALK, NOISE_LOOP)]
    assert kept.track(STATE) is not None


def test_a_timeline_has_a_limit() -> None:
    full = Timeline((Track(PSI, tuple(Key(Fraction(n), 0.0) for n in range(MAX_KEYS))),))
    with pytest.raises(TimelineError, match="50,000 keys"):
        with_key(full, GAIN, Fraction(0), 1.0)


def test_the_edit_puts_the_timeline_into_the_session() -> None:
    timeline = piece((1, 0.1))
    assert SetTimeline(timeline).apply(Session()).timeline is timeline
    assert SetTimeline(timeline, "Nudge keys").is_nudge(Session())
    assert not SetTimeline(timeline).is_nudge(Session())


def test_every_easing_becomes_a_bezier_of_the_same_shape() -> None:
    for kind in ("linear", "smooth", "in", "out"):
        easing = Easing(kind)
        for step in range(11):
            assert eased(as_bezier(easing), step / 10) == pytest.approx(eased(easing, step / 10), abs=1e-9)
    assert eased(as_bezier(Easing("in-out")), 0.5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "handles",
    [
        (0.0, 0.3, 1.0, 0.7),  # turns at both ends
        (0.25, 0.1, 0.25, 1.0),  # grows everywhere
        (0.9, 0.0, 0.95, 1.0),  # the turning points lie after it
        (0.05, 0.0, 0.1, 1.0),  # and before it
        (0.0, 0.0, 0.2, 1.0),
        (1 / 3, 0.2, 2 / 3, 1.3),  # straight in time
        (0.334, 2.0, 0.666, -1.0),  # nearly so
        (1 / 3, 2.0, 0.68, -1.0),
        (0.4, 0.0, 0.7, 1.0),  # nearly a parabola
        (1.0, 0.0, 0.0, 1.0),  # stands still in the middle
    ],
)
def test_a_bezier_curve_has_the_height_that_bisection_finds(handles: Handles) -> None:
    x1, y1, x2, y2 = handles
    for u in (0.0, 1e-9, 0.01, 0.2, 0.4999, 0.5001, 0.77, 0.99, 1.0 - 1e-9):
        low, high = 0.0, 1.0
        for _ in range(60):
            s = 0.5 * (low + high)
            if 3 * s * (1 - s) ** 2 * x1 + 3 * s * s * (1 - s) * x2 + s**3 < u:
                low = s
            else:
                high = s
        expected = 3 * s * (1 - s) ** 2 * y1 + 3 * s * s * (1 - s) * y2 + s**3
        assert eased(Easing("bezier", handles), u) == pytest.approx(expected, abs=1e-8)


def test_newtons_method_is_left_to_curves_that_are_nearly_parabolas(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> float:
        raise AssertionError("It takes twice as long.")

    monkeypatch.setattr("explorer_app.session.timeline.easing._bezier_by_newton", refuse)
    for x1, x2 in ((1 / 3, 2 / 3), (0.34, 0.66), (0.3, 0.7), (0.5, 0.8), (0.9, 0.1)):
        assert 0.0 < eased(Easing("bezier", (x1, 0.0, x2, 1.0)), 0.4) < 1.0


def test_a_steep_bezier_is_still_solved() -> None:
    steep = Easing("bezier", (1.0, 0.0, 0.0, 1.0))
    values = [eased(steep, step / 50) for step in range(51)]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (pytest.approx(0.0), pytest.approx(1.0))


def test_keys_stay_within_the_longest_time() -> None:
    day = Fraction(MAX_SECONDS)
    timeline = piece((0, 0.0), (10, 1.0))
    moved, _ = moved_keys(timeline, names_of(timeline), day)
    assert (times(moved), moved.end) == ([day - 10, day], day), "they keep their distances"
    stretched, _ = stretched_keys(timeline, names_of(timeline), Fraction(0), day)
    assert (times(stretched), stretched.end) == ([0, day], day)
    clip = copied_keys(timeline, names_of(timeline))
    assert pasted_keys(timeline, clip, day - 10)[0].end == day
    in_beats = counted_in(timeline, names_of(timeline), is_beat=True)
    for refused in (
        lambda: pasted_keys(timeline, clip, day - 9),
        lambda: with_key(timeline, PSI, day + 1, 0.5),
        lambda: with_grid(in_beats, BeatGrid(Fraction(1, 1000))),
        lambda: with_grid(in_beats, BeatGrid(offset=day - 5)),
    ):
        with pytest.raises(TimelineError, match="at most a day long"):
            refused()


def test_a_take_replaces_the_keys_of_its_time() -> None:
    timeline = piece((0, 0.0), (2, 0.2), (3, 0.3), (9, 0.9))
    taken = with_recorded(timeline, PSI, [(Fraction(1), 1.0, LINEAR), (Fraction(4), 1.5, LINEAR)])
    assert times(taken) == [0, 1, 4, 9]


def test_the_loop_check_distinguishes_values_from_velocities() -> None:
    def loop(*values: float, easing: Easing = LINEAR) -> Session:
        keys = tuple(Key(Fraction(n), value, easing) for n, value in enumerate(values))
        return Session(timeline=Timeline((Track("slider/a", keys),)))

    open_loop = seam(loop(0.0, 1.0, 2.0), 0.0, 2.0)
    corner = seam(loop(0.0, 1.0, 0.0), 0.0, 2.0)
    smooth = seam(loop(0.0, 1.0, 0.0, easing=Easing("smooth")), 0.0, 2.0)
    assert (open_loop.value_meets, open_loop.velocity_meets) == (False, False)
    assert (corner.value_meets, corner.velocity_meets) == (True, False)
    assert (smooth.value_meets, smooth.velocity_meets) == (True, True)


def repeated(*values: float, end: int, outside: Outside = "loop", easing: Easing = LINEAR) -> Session:
    keys = tuple(Key(Fraction(n * 2, len(values) - 1), value, easing) for n, value in enumerate(values))
    return Session(timeline=Timeline((Track("slider/a", keys, outside=outside),), end=Fraction(end)))


@pytest.mark.parametrize(
    ("values", "outside"), [((0.0, 1.0), "loop"), ((0.0, 1.0, 0.0), "loop"), ((0.0, 1.0), "mirror")]
)
def test_a_track_that_repeats_is_not_reported_where_each_of_its_repeats_is_alike(
    values: tuple[float, ...], outside: Outside
) -> None:
    session = repeated(*values, end=8, outside=outside)
    assert seam(session, 0.0, 8.0) == Seam(True, True, only_repeats=True)
    assert seam(repeated(*values, end=8, outside=outside, easing=Easing("smooth")), 2.0, 6.0).velocity_meets
    assert with_loop_closed(session.timeline, session) == session.timeline
    jumps = Track(PSI, (Key(Fraction(0), 0.2), Key(Fraction(8), 0.8)))
    assert not seam(replace(session, timeline=with_track(session.timeline, jumps)), 0.0, 8.0).value_meets


def test_a_track_that_repeats_only_at_the_end_of_the_loop_jumps_there_and_can_be_closed() -> None:
    for session in (repeated(0.0, 0.4, 1.0, end=2), repeated(0.0, 0.4, 1.0, end=6)):
        timeline = replace(session.timeline, loop=(Fraction(0), Fraction(2)))
        session = replace(session, timeline=timeline)
        assert seam(session, 0.0, 2.0) == Seam(False, False)
        closed = with_loop_closed(timeline, session)
        assert [key.value for key in closed.tracks[0].keys] == [0.0, 0.4, 0.0]
        assert seam(Session(timeline=closed), 0.0, 2.0).value_meets


def test_closing_the_loop_leaves_whole_turns() -> None:
    keys = (Key(Fraction(0), 0.0), Key(Fraction(10), 360.0))
    timeline = with_key(Timeline((Track("transform.degrees", keys),)), PSI, Fraction(1), 0.2)
    timeline = with_key(timeline, PSI, Fraction(9), 0.8)
    closed = with_loop_closed(timeline, Session(timeline=timeline))
    assert closed.track("transform.degrees") == timeline.track("transform.degrees")
    assert closed.track(PSI) != timeline.track(PSI)


def test_closing_the_loop_makes_ends_meet_and_leaves_what_is_at_rest_or_turns_round() -> None:
    timeline = piece((1, 0.2), (6, 0.8), end=Fraction(10), loop=(Fraction(0), Fraction(8)))
    timeline = with_noise_loop(with_key(timeline, GAIN, Fraction(3), 0.5))
    timeline = with_track(timeline, Track(WALK, period=Fraction(3)))
    for seed, t in ((3, 0), (4, 2), (5, 4)):
        timeline = with_state(timeline, GoToSeed(seed).apply(Session()), Fraction(t))
    before = Session(timeline=timeline)
    assert not seam(before, 0.0, 8.0).value_meets
    closed = with_loop_closed(timeline, before)
    assert seam(Session(timeline=closed), 0.0, 8.0) == Seam(value_meets=True, velocity_meets=True)
    assert times(closed, STATE) == [0, 2, 4, 8]
    assert closed.track(NOISE_LOOP) == timeline.track(NOISE_LOOP)
    walk = closed.track(WALK)
    assert walk is not None
    assert walk.period == Fraction(8, 3)
    assert with_loop_closed(closed, Session(timeline=closed)) == closed
    still = piece((1, 0.2), end=Fraction(10))
    assert with_loop_closed(still, Session(timeline=still)) == still


def test_closing_the_loop_leaves_a_track_that_repeats_and_meets_as_it_is() -> None:
    timeline = with_track(
        Timeline(),
        Track(PSI, (Key(Fraction(0), 0.2, LINEAR), Key(Fraction(5, 2), 0.8, LINEAR)), outside="mirror"),
    )
    assert with_loop_closed(timeline, Session()) == timeline, "back at its start after 5 and after 10 s"


@pytest.mark.parametrize(
    ("outside", "start", "length", "first", "last", "fitted"),
    [
        ("mirror", 0, Fraction(5, 2), 0, 9, Fraction(9, 4)),
        ("loop", 0, Fraction(3), 0, 10, Fraction(10, 3)),
        ("loop", 1, Fraction(2), 0, 9, Fraction(9, 4)),
        ("loop", 7, Fraction(2), 3, 6, Fraction(3, 2)),
        ("loop", 6, Fraction(3), 0, 4, Fraction(4)),
    ],
)
@pytest.mark.parametrize("is_beat", [False, True])
@pytest.mark.parametrize("values", [(0.2, 0.8, 0.3), (0.2, 0.8, 0.2)], ids=["open", "closed"])
def test_closing_the_loop_fits_the_period_of_a_track_that_repeats(
    outside: Outside,
    start: int,
    length: Fraction,
    first: int,
    last: int,
    fitted: Fraction,
    is_beat: bool,
    values: tuple[float, ...],
) -> None:
    keys = tuple(Key(start + length * share / 3, value, LINEAR) for share, value in zip((0, 1, 3), values, strict=True))
    timeline = Timeline((Track(PSI, keys, outside=outside),), loop=(Fraction(first), Fraction(last)))
    timeline = counted_in(timeline, names_of(timeline), is_beat=is_beat)
    assert not seam(Session(timeline=timeline), first, last).value_meets
    closed = with_loop_closed(timeline, Session(timeline=timeline))
    assert times(closed)[-1] - times(closed)[0] == fitted
    assert len(times(closed)) == 3
    assert times(closed)[0] >= 0
    assert times(closed)[-1] <= closed.end == timeline.end
    assert value_at(closed, PSI, first) == pytest.approx(value_at(timeline, PSI, first))
    assert seam(Session(timeline=closed), first, last).value_meets
    assert with_loop_closed(closed, Session(timeline=closed)) == closed


def test_closing_the_loop_sets_both_ends_of_a_repeating_track_that_fills_it() -> None:
    keys = (Key(Fraction(1), 0.2, LINEAR), Key(Fraction(4), 0.6, LINEAR), Key(Fraction(9), 0.2, LINEAR))
    timeline = Timeline((Track(PSI, keys, outside="loop"),))
    closed = with_loop_closed(timeline, Session(timeline=timeline))
    assert times(closed) == [0, 1, 4, 9, 10], "with a period of 10 s the last of its keys would lie beyond the end"
    assert value_at(closed, PSI, 10.0) == value_at(closed, PSI, 0.0) == pytest.approx(0.28)


def test_closing_the_loop_sets_the_end_of_a_loop_within_the_keys_of_a_track_that_repeats() -> None:
    keys = (Key(Fraction(0), 0.2, LINEAR), Key(Fraction(8), 1.0, LINEAR))
    timeline = Timeline((Track(PSI, keys, outside="loop"),), loop=(Fraction(2), Fraction(6)))
    closed = with_loop_closed(timeline, Session(timeline=timeline))
    assert times(closed) == [0, 6, 8]
    assert value_at(closed, PSI, 6.0) == pytest.approx(0.4)


def test_a_walk_closes_over_its_period_and_not_over_half_of_it() -> None:
    session = replace(GoToSeed(2).apply(Session()), timeline=Timeline((Track(WALK, period=Fraction(8), radius=0.5),)))
    whole = seam(session, 0.0, 8.0)
    assert (whole.value_meets, whole.velocity_meets) == (True, True)
    assert not seam(session, 0.0, 4.0).value_meets


def test_a_baked_walk_shows_nearly_the_same_and_closes_too() -> None:
    walk = Timeline((Track(WALK, period=Fraction(8), radius=0.5, seed=3),), end=Fraction(8))
    session = replace(GoToSeed(2).apply(Session()), timeline=walk)
    baked = replace(session, timeline=baked_walk(session))
    assert baked.timeline.track(WALK) is None
    for t in (0.0, 1.1, 4.7, 7.9):
        first, second = dict(session_at(session, t).pinned_blend), dict(session_at(baked, t).pinned_blend)
        assert max(abs(first.get(recipe, 0.0) - second.get(recipe, 0.0)) for recipe in {**first, **second}) < 0.01
    assert seam(baked, 0.0, 8.0).velocity_meets


def test_a_walk_of_too_many_keys_is_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(session: Session, t: float) -> Session:
        pytest.fail(f"a key was made at {t} s")

    monkeypatch.setattr(baking, "session_at", made)
    walk = Timeline((Track(WALK, period=Fraction(1, 100), radius=0.5),), end=Fraction(3600))
    with pytest.raises(TimelineError, match="slow it down"):
        baked_walk(replace(GoToSeed(2).apply(Session()), timeline=walk))


def test_setting_a_parameter_leaves_the_timeline_alone() -> None:
    timeline = piece((1, 0.1))
    assert SetParameter(PSI, 0.3).apply(Session(timeline=timeline)).timeline is timeline


def test_a_track_takes_the_place_of_that_of_its_path() -> None:
    timeline = with_track(piece((1, 0.1)), Track(PSI, is_muted=True))
    assert timeline.tracks == (Track(PSI, is_muted=True),)
