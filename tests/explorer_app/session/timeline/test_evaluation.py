"""Session with a timeline, time -> session."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Position, Session, Slider
from explorer_app.session.timeline.evaluation import changed_tracks, session_at, value_at
from explorer_app.session.timeline.seam import seam
from explorer_app.session.tracks import (
    HOLD,
    LINEAR,
    SMOOTH,
    STATE,
    WALK,
    BeatGrid,
    Easing,
    EasingKind,
    Key,
    Outside,
    Timeline,
    Track,
)
from gpu_backend import Arc, Latent, Noise, Point, Recipe, RowRange, Transform, Truncation

PSI = "truncation.psi"


def track(path: str, *pairs: tuple[float, object], easing: Easing = LINEAR, **others: object) -> Track:
    keys = tuple(Key(Fraction(t).limit_denominator(1000), value, easing) for t, value in pairs)
    return Track(path, keys, **others)  # type: ignore[arg-type]


def with_tracks(*tracks: Track, session: Session | None = None, **others: object) -> Session:
    timeline = Timeline(tracks, **others)  # type: ignore[arg-type]
    return replace(session or Session(), timeline=timeline)


def on_seed(seed: int) -> Session:
    return GoToSeed(seed).apply(Session())


def blend_on(seed: int) -> tuple[tuple[Recipe, float], ...]:
    return ((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),)


def seeds_of(session: Session) -> dict[int, float]:
    found: dict[int, float] = {}
    for recipe, weight in resolve(session).blend:
        point = recipe.latent.point
        assert isinstance(point, Point)
        for seed, share in point.seeds:
            found[seed] = found.get(seed, 0.0) + weight * share
    return found


def test_a_session_without_tracks_stays_as_it_is() -> None:
    assert session_at(on_seed(4), 3.0) == on_seed(4)


def test_a_number_goes_straight_from_key_to_key() -> None:
    session = with_tracks(track(PSI, (1, 0.2), (3, 1.0)))
    assert [round(session_at(session, t).truncation.psi, 9) for t in (0, 1, 2, 3, 9)] == [0.2, 0.2, 0.6, 1.0, 1.0]


def test_a_key_gives_exactly_its_value_on_its_frame() -> None:
    times = [Fraction(n * 7, 30) for n in range(20)]
    keys = tuple(Key(t, n / 10, SMOOTH) for n, t in enumerate(times))
    session = with_tracks(Track("slider/sefa/1", keys))
    assert [session_at(session, float(t)).slider("sefa/1").amount for t in times] == [n / 10 for n in range(20)]


@pytest.mark.parametrize(
    ("kind", "half"), [("hold", 0.0), ("linear", 0.5), ("smooth", 0.5), ("in", 0.25), ("out", 0.75), ("in-out", 0.5)]
)
def test_each_easing_has_its_own_middle(kind: EasingKind, half: float) -> None:
    session = with_tracks(track("slider/a", (0, 0.0), (2, 1.0), easing=Easing(kind)))
    assert session_at(session, 1.0).slider("a").amount == pytest.approx(half)


def test_bezier_handles_may_overshoot_but_the_range_holds() -> None:
    easing = Easing("bezier", (0.3, 2.0, 0.6, 2.0))
    session = with_tracks(track("slider/a", (0, 0.0), (1, 1.0), easing=easing))
    assert session_at(session, 0.5).slider("a").amount > 1.2
    clamped = with_tracks(track(PSI, (0, 1.0), (1, 2.0), easing=easing))
    assert session_at(clamped, 0.5).truncation.psi == 2.0


@pytest.mark.parametrize(
    ("outside", "values"), [("hold", (0.0, 1.0)), ("loop", (0.75, 0.25)), ("mirror", (0.25, 0.75))]
)
def test_outside_of_its_keys_a_track_holds_repeats_or_turns_back(outside: Outside, values: tuple[float, float]) -> None:
    session = with_tracks(track("slider/a", (1, 0.0), (2, 1.0), outside=outside))
    assert session_at(session, 0.75).slider("a").amount == pytest.approx(values[0])
    assert session_at(session, 2.25).slider("a").amount == pytest.approx(values[1])


def test_a_key_in_beats_moves_with_the_tempo() -> None:
    keys = (Key(Fraction(0), 0.0, LINEAR, is_beat=True), Key(Fraction(4), 1.0, LINEAR, is_beat=True))
    slow = with_tracks(Track("slider/a", keys), grid=BeatGrid(Fraction(60)))
    fast = with_tracks(Track("slider/a", keys), grid=BeatGrid(Fraction(120), Fraction(1)))
    assert session_at(slow, 2.0).slider("a").amount == pytest.approx(0.5)
    assert session_at(fast, 2.0).slider("a").amount == pytest.approx(0.5)


def test_a_muted_track_moves_nothing() -> None:
    session = with_tracks(track(PSI, (0, 0.1), is_muted=True))
    assert session_at(session, 0.0).truncation.psi == Session().truncation.psi


def test_a_scale_goes_in_equal_factors_and_a_turn_by_its_numbers() -> None:
    session = with_tracks(
        track("transform.scale", (0, 1.0), (2, 4.0)), track("transform.degrees", (0, 0.0), (2, 720.0))
    )
    transform = session_at(session, 1.0).transform
    assert transform.scale == pytest.approx(2.0)
    assert transform.degrees == pytest.approx(360.0)


def test_whole_numbers_choices_and_places_follow_their_kind() -> None:
    session = with_tracks(
        track("noise.seed", (0, 3), (2, 8)),
        track("noise.mode", (0, "const"), (1, "random")),
        track("position", (0, Position(0.0, 0.0)), (2, Position(4.0, 2.0))),
        track("truncation.cutoff", (0, None), (1, 8), easing=HOLD),
    )
    at = session_at(session, 1.0)
    assert (at.noise.seed, at.noise.mode, at.position, at.truncation.cutoff) == (6, "random", Position(2.0, 1.0), 8)


def test_a_slider_keeps_its_rows_and_name_while_its_amount_moves() -> None:
    slider = Slider("sefa/2", 0.5, RowRange(2, 5), "Sun", starred=True)
    session = with_tracks(track("slider/sefa/2", (0, 0.0), (1, 2.0)), session=Session(sliders=(slider,)))
    assert session_at(session, 0.5).sliders == (replace(slider, amount=1.0),)


def test_latents_on_a_spline_pass_their_keys_with_weights_that_sum_to_one() -> None:
    keys = [(t, blend_on(seed)) for t, seed in ((0, 1), (1, 2), (3, 3), (4, 4))]
    session = with_tracks(track("pinned_blend", *keys))
    assert session_at(session, 3.0).pinned_blend == blend_on(3)
    for t in (0.3, 1.7, 2.9, 3.5):
        assert sum(seeds_of(session_at(session, t)).values()) == pytest.approx(1.0)
    assert len(seeds_of(session_at(session, 2.0))) == 4


def test_a_spline_has_no_corner_at_a_key() -> None:
    keys = [(t, blend_on(seed)) for t, seed in ((0, 1), (1, 2), (3, 3), (4, 4))]
    session = with_tracks(track("pinned_blend", *keys))
    h = 1e-5

    def velocity(t: float) -> dict[int, float]:
        a, b = seeds_of(session_at(session, t)), seeds_of(session_at(session, t + h))
        return {seed: (b.get(seed, 0.0) - a.get(seed, 0.0)) / h for seed in (1, 2, 3, 4)}

    before, after = velocity(1.0 - 2 * h), velocity(1.0 + h)
    assert all(before[seed] == pytest.approx(after[seed], abs=1e-3) for seed in (1, 2, 3, 4))


def test_a_closed_spline_goes_over_its_seam_without_a_corner() -> None:
    keys = [(t, blend_on(seed)) for t, seed in ((0, 1), (1, 2), (3, 3), (4, 1))]
    session = with_tracks(track("pinned_blend", *keys, outside="loop"))
    h = 1e-5
    a, b, c = (seeds_of(session_at(session, t)) for t in (4.0 - h, 4.0, 4.0 + h))
    for seed in (1, 2, 3):
        assert b.get(seed, 0.0) - a.get(seed, 0.0) == pytest.approx(c.get(seed, 0.0) - b.get(seed, 0.0), abs=1e-8)


def test_an_arc_in_z_blends_the_seeds_before_mapping() -> None:
    session = with_tracks(track("pinned_blend", (0, blend_on(1)), (1, blend_on(2)), way="z-slerp"))
    point = session_at(session, 0.5).pinned_blend[0][0].latent.point
    assert isinstance(point, Point)
    assert point.space == "z"
    assert point.seeds[0][1] == pytest.approx(point.seeds[1][1], rel=0.05)
    assert point.seeds[0][1] > 0.6, "longer than half: the arc keeps the length"


def test_a_state_shows_its_whole_picture_at_its_key() -> None:
    first = replace(
        on_seed(3), noise=Noise(gain=0.5), sliders=(Slider("sefa/0", 1.0),), transform=Transform(degrees=30.0)
    )
    second = replace(on_seed(9), truncation=Truncation(0.4), tap=None)
    session = with_tracks(track(STATE, (0, first), (2, second)), session=on_seed(77))
    assert resolve(session_at(session, 0.0)) == resolve(first)
    assert resolve(session_at(session, 2.0)) == resolve(second)
    between = session_at(session, 1.0)
    assert between.slider("sefa/0").amount == pytest.approx(0.5)
    assert between.noise.gain == pytest.approx(0.75)
    assert between.transform.degrees == pytest.approx(15.0)
    assert seeds_of(between) == {3: pytest.approx(0.5), 9: pytest.approx(0.5)}
    assert {recipe.truncation.psi for recipe, _ in between.pinned_blend} == {0.7, 0.4}


def test_a_state_keeps_the_model_and_the_timeline_of_the_session() -> None:
    session = with_tracks(track(STATE, (0, on_seed(3)), (2, on_seed(5))))
    assert session_at(session, 1.0).timeline is session.timeline
    assert session_at(session, 0.0).timeline is session.timeline


def test_a_slider_of_its_own_track_moves_over_states() -> None:
    first, second = (replace(on_seed(seed), sliders=(Slider("a", 3.0),)) for seed in (1, 2))
    session = with_tracks(track(STATE, (0, first), (2, second)), track("slider/a", (0, -1.0), (2, 1.0)))
    directions = {
        item.amount for recipe, _ in resolve(session_at(session, 1.0)).blend for item in recipe.latent.directions
    }
    assert directions == set(), "the track's 0, and nothing of the states' 3"


def test_a_slider_on_different_rows_in_two_states_fades_from_one_to_the_other() -> None:
    first = replace(on_seed(1), sliders=(Slider("a", 2.0, RowRange(0, 3)),))
    second = replace(on_seed(1), sliders=(Slider("a", 2.0, RowRange(4, 7)),))
    session = with_tracks(track(STATE, (0, first), (2, second)))
    blend = resolve(session_at(session, 1.0)).blend
    assert sorted(item.rows.first for recipe, _ in blend for item in recipe.latent.directions) == [0, 4]
    assert [weight for _, weight in blend] == [pytest.approx(0.5)] * 2


def test_states_on_one_place_leave_it_unpinned() -> None:
    first, second = replace(on_seed(5), noise=Noise(gain=0.0)), replace(on_seed(5), noise=Noise(gain=1.0))
    at = session_at(with_tracks(track(STATE, (0, first), (2, second))), 1.0)
    assert at.pinned_blend == ()
    assert at.position == on_seed(5).position


def test_a_walk_closes_after_its_period_and_its_weights_sum_to_one() -> None:
    walk = Track(WALK, period=Fraction(4), radius=0.5, seed=7)
    session = with_tracks(walk, session=on_seed(3))
    start, end = seeds_of(session_at(session, 0.0)), seeds_of(session_at(session, 4.0))
    assert start == end
    for t in (0.0, 0.7, 1.9, 3.3):
        weights = seeds_of(session_at(session, t))
        assert sum(weights.values()) == pytest.approx(1.0)
        assert weights[3] == pytest.approx(1.0)
        assert len(weights) == 13
    other = with_tracks(replace(walk, seed=8), session=on_seed(3))
    assert seeds_of(session_at(other, 0.0)) != start


def test_a_walk_is_as_long_as_its_radius() -> None:
    session = with_tracks(Track(WALK, period=Fraction(4), radius=0.5), session=on_seed(3))
    weights = seeds_of(session_at(session, 1.0))
    length = math.sqrt(sum(weight**2 for seed, weight in weights.items() if seed != 3))
    assert length == pytest.approx(0.5 * math.sqrt(1 + 1 / 4 + 1 / 9))


def test_evaluation_depends_on_nothing_but_the_session_and_the_time() -> None:
    numbers = random.Random(3)
    tracks = [
        track(f"slider/sefa/{n}", *[(t, numbers.uniform(-3, 3)) for t in range(20)], easing=SMOOTH) for n in range(20)
    ]
    session = with_tracks(*tracks, track(STATE, (0, on_seed(1)), (5, on_seed(2)), (20, on_seed(3))))
    times = [numbers.uniform(0, 22) for _ in range(40)]
    forward = {t: session_at(session, t) for t in sorted(times)}
    for t in times:
        assert session_at(replace(session, timeline=replace(session.timeline)), t) == replace(
            forward[t], timeline=session.timeline
        )


def test_truncation_tracks_move_a_pinned_latent_and_moved_sliders_stay_sliders() -> None:
    session = with_tracks(
        track("truncation.cutoff", (0, 2), (1, 6)),
        track(PSI, (0, 0.0), (1, 1.0)),
        track("slider/sefa/2", (0, 1.0), (1, 3.0)),
        track("slider/sefa/1", (0, 0.0), (1, 0.0)),
        session=Session(pinned_blend=blend_on(4), sliders=(Slider("sefa/1"), Slider("sefa/2", 9.0, label="mine"))),
    )
    shown = session_at(session, 0.5)
    assert shown.truncation == shown.pinned_blend[0][0].truncation == Truncation(0.5, 4)
    assert shown.sliders == (Slider("sefa/2", 2.0, label="mine"),)
    assert [type(slider) for slider in shown.sliders] == [Slider]
    assert hash(shown.sliders) == hash((Slider("sefa/2", 2.0, label="mine"),))


def test_the_value_of_one_track_can_be_read() -> None:
    timeline = Timeline((track(PSI, (0, 0.0), (1, 5.0)), Track(WALK)))
    assert value_at(timeline, PSI, 0.2) == pytest.approx(1.0)
    assert value_at(timeline, PSI, 0.9) == 2.0, "kept in the range"
    assert value_at(timeline, WALK, 0.0) is None
    assert value_at(timeline, "noise.gain", 0.0) is None


def test_an_arc_in_w_turns_between_two_keys_and_stands_on_each() -> None:
    session = with_tracks(track("pinned_blend", (0, blend_on(1)), (2, blend_on(2)), way="w-slerp"))
    arc = Arc(Point(((1, 1.0),)), Point(((2, 1.0),)), 0.25)
    assert session_at(session, 0.5).pinned_blend[0][0].latent.point == arc
    assert session_at(session, 2.0).pinned_blend == blend_on(2)


def test_states_go_on_an_arc_in_w_with_everything_else_beside_it() -> None:
    states = (on_seed(3), replace(on_seed(5), noise=Noise(gain=0.5)))
    session = with_tracks(track(STATE, (0, states[0]), (2, states[1]), way="w-slerp"))
    at = session_at(session, 1.0)
    ((recipe, weight),) = at.pinned_blend
    assert (type(recipe.latent.point), weight, at.noise.gain) == (Arc, 1.0, 0.75)


def test_a_loop_of_arcs_closes() -> None:
    keys = [(t, blend_on(seed)) for t, seed in ((0, 1), (1, 2), (2, 1))]
    session = with_tracks(track("pinned_blend", *keys, way="w-slerp", easing=SMOOTH))
    found = seam(session, 0.0, 2.0)
    assert found.value_meets
    assert found.velocity_meets


def test_an_edit_changes_one_track_but_tempo_and_whole_pictures_all() -> None:
    psi, gain = (track(path, (0, 1.0)) for path in (PSI, "noise.gain"))
    state = track(STATE, (0, Session()))
    before = Timeline((psi, gain))
    assert changed_tracks(before, before).tracks == ()
    muted = replace(gain, is_muted=True)
    assert changed_tracks(before, replace(before, tracks=(psi, muted))).tracks == (muted,)
    assert changed_tracks(before, replace(before, tracks=(gain,), end=Fraction(3))).tracks == ()
    for after in (replace(before, tracks=(state, psi, gain)), replace(before, grid=BeatGrid(Fraction(90)))):
        assert changed_tracks(before, after) is after
    covered = replace(before, tracks=(state, psi, gain))
    for tracks in ((state, psi), (state, psi, muted)):
        assert changed_tracks(covered, after := replace(covered, tracks=tracks)) is after, "the picture's gain shows"
    assert changed_tracks(covered, replace(covered, end=Fraction(3))).tracks == ()
