"""Loops of the noise maps around the noise that the picture has."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.timeline.noise_loop import FULL_CIRCLE, noise_loop_of, with_noise_loop
from explorer_app.session.timeline.seam import Seam, seam
from explorer_app.session.tracks import NOISE_LOOP, Timeline

TEN = Timeline(end=Fraction(10), loop=(Fraction(0), Fraction(10)))


def phases(timeline: Timeline, *times: float) -> list[float]:
    session = Session(timeline=timeline)
    return [session_at(session, t).noise.phase for t in times]


@pytest.mark.parametrize("radius", [FULL_CIRCLE, 30.0])
@pytest.mark.parametrize("t", [Fraction(0), Fraction(7, 2), Fraction(10)])
def test_a_loop_passes_through_the_noise_that_the_picture_has(radius: float, t: Fraction) -> None:
    looped = with_noise_loop(TEN, 40.0, t, radius=radius)
    assert phases(looped, float(t)) == pytest.approx([40.0], abs=1e-9)
    assert seam(Session(timeline=looped), 0.0, 10.0) == Seam(value_meets=True, velocity_meets=True)
    assert noise_loop_of(looped) == (10, radius)
    track = looped.track(NOISE_LOOP)
    assert track is not None
    assert 0 <= track.keys[0].time < Fraction(5, 2)


def test_a_small_radius_swings_as_a_sine_around_that_noise() -> None:
    looped = with_noise_loop(TEN, 40.0, Fraction(3), radius=30.0)
    times = [0.25 * step for step in range(41)]
    expected = [40.0 + 30.0 * math.sin(2.0 * math.pi * (t - 3.0) / 10.0) for t in times]
    assert phases(looped, *times) == pytest.approx(expected, abs=0.4)


def test_another_radius_or_period_of_a_swing_keeps_its_middle() -> None:
    looped = with_noise_loop(TEN, 40.0, Fraction(3), radius=30.0)
    (now,) = phases(looped, 4.0)
    wider = with_noise_loop(looped, now, Fraction(4), period=Fraction(8), radius=60.0)
    assert phases(wider, 3.0, 5.0, 7.0, 9.0) == pytest.approx([40.0, 100.0, 40.0, -20.0])
    assert noise_loop_of(wider) == (8, 60.0)


def test_a_swing_becomes_a_circle_where_the_playhead_is_and_back() -> None:
    swing = with_noise_loop(TEN, 40.0, Fraction(3), radius=30.0)
    circle = with_noise_loop(swing, 70.0, Fraction(11, 2), period=Fraction(10))
    assert phases(circle, 5.5, 8.0) == pytest.approx([70.0, 160.0])
    back = with_noise_loop(circle, 160.0, Fraction(8), period=Fraction(10), radius=15.0)
    assert phases(back, 8.0, 10.5) == pytest.approx([160.0, 175.0])


def test_keys_that_a_user_moved_are_no_swing_to_keep() -> None:
    swing = with_noise_loop(TEN, 0.0, radius=30.0)
    edited = with_key(swing, NOISE_LOOP, Fraction(1), 80.0)
    assert phases(with_noise_loop(edited, 80.0, Fraction(1), period=Fraction(10), radius=10.0), 1.0) == [80.0]


def test_a_loop_follows_the_range_that_plays() -> None:
    part = replace(TEN, loop=(Fraction(2), Fraction(6)))
    assert noise_loop_of(with_noise_loop(part)) == (4, FULL_CIRCLE)
    assert noise_loop_of(part) == (10, FULL_CIRCLE)
