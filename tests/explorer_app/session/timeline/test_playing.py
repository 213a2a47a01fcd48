"""Where the playhead is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from explorer_app.session.timeline.playing import Place, played, time_text
from explorer_app.session.tracks import Timeline

TEN = Timeline(fps=Fraction(25), end=Fraction(10))


def test_the_frame_that_is_due_follows_from_the_time_alone() -> None:
    assert played(TEN, Fraction(0), 0.119).t == Fraction(2, 25)
    assert played(TEN, Fraction(1), 3.0).t == 4
    assert played(replace(TEN, fps=Fraction(30000, 1001)), Fraction(0), 1.0).t == Fraction(29 * 1001, 30000)


def test_a_loop_begins_again_without_a_frame_too_many() -> None:
    assert played(TEN, Fraction(9), 1.0).t == 0
    assert played(TEN, Fraction(0), 10.0 * 1000).t == 0
    assert played(TEN, Fraction(0), 9.99).t == Fraction(249, 25)


def test_a_range_plays_in_place_of_the_whole() -> None:
    ranged = replace(TEN, loop=(Fraction(2), Fraction(4)))
    assert played(ranged, Fraction(3), 1.52).t == Fraction(63, 25)
    assert played(ranged, Fraction(8), 0.0).t == 2, "one that stands outside begins at the start"


def test_ping_pong_turns_at_both_ends() -> None:
    there = replace(TEN, fps=Fraction(1), end=Fraction(4), is_ping_pong=True)
    assert [played(there, Fraction(0), n + 0.5).t for n in range(8)] == [0, 1, 2, 3, 2, 1, 0, 1]


def test_without_a_loop_playing_ends_on_the_last_frame() -> None:
    once = replace(TEN, is_looping=False)
    assert played(once, Fraction(0), 9.0) == Place(Fraction(9))
    assert played(once, Fraction(0), 99.0) == Place(Fraction(249, 25), is_over=True)


@pytest.mark.parametrize(
    ("t", "fps", "text"),
    [
        (Fraction(0), Fraction(30), "0:00:00"),
        (Fraction(61) + Fraction(14, 24), Fraction(24), "1:01:14"),
        (Fraction(29, 30), Fraction(30), "0:00:29"),
        (Fraction(503 * 1001, 24000), Fraction(24000, 1001), "0:20:23"),
        (Fraction(527 * 1001, 24000), Fraction(24000, 1001), "0:21:23"),
    ],
)
def test_times_are_minutes_seconds_and_frames(t: Fraction, fps: Fraction, text: str) -> None:
    assert time_text(t, fps) == text
