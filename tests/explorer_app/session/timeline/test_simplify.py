"""Recordings as few keys that play back what was recorded."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from explorer_app.session.parameters import parameter
from explorer_app.session.session import Position, Session
from explorer_app.session.timeline.edits import with_recorded
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.timeline.simplify import TOLERANCE, Samples, recorded_keys
from explorer_app.session.tracks import HOLD, LINEAR, Timeline

SLIDER = "slider/a"


def at_60_hz(curve: Callable[[float], float], seconds: float = 2.0) -> list[tuple[Fraction, float]]:
    return [(Fraction(round(1000 * n / 60), 1000), curve(n / 60)) for n in range(round(60 * seconds) + 1)]


def worst_miss(samples: Samples, path: str = SLIDER, **kinds: bool) -> float:
    """Return what the recording of a curve misses, as a share of its range."""
    session = Session(timeline=with_recorded(Timeline(), path, recorded_keys(samples, **kinds)))
    row = parameter(path)
    misses = [abs(row.read(session_at(session, float(t))) - value) for t, value in samples]
    values = [value for _, value in samples]
    return max(misses) / (max(values) - min(values) or 1.0)


@pytest.mark.parametrize(
    ("curve", "most"),
    [
        (lambda t: 0.3, 2),
        (lambda t: 2.0 * t - 1.0, 2),
        (lambda t: t * t, 2),
        (lambda t: math.sin(4.0 * t), 7),
        (lambda t: 1.0 / (1.0 + math.exp(12.0 - 12.0 * t)), 8),
        (lambda t: min(max(t - 0.5, 0.0), 1.0), 8),
    ],
    ids=["rest", "line", "parabola", "sine", "sigmoid", "ramp between rests"],
)
def test_a_smooth_gesture_becomes_few_keys_within_the_tolerance(curve: Callable[[float], float], most: int) -> None:
    samples = at_60_hz(curve)
    keys = recorded_keys(samples)
    assert len(keys) <= most
    assert (keys[0][0], keys[-1][0]) == (samples[0][0], samples[-1][0])
    assert worst_miss(samples) <= TOLERANCE + 1e-9


def test_any_gesture_is_kept_within_the_tolerance() -> None:
    random.seed(4)
    place, samples = 0.0, []
    for n in range(300):
        place += random.uniform(-0.1, 0.1)
        samples.append((Fraction(n, 60), place))
    assert worst_miss(samples) <= TOLERANCE + 1e-9


def test_the_steps_of_a_midi_controller_become_a_curve() -> None:
    samples = at_60_hz(lambda t: round(63.5 + 63.5 * math.sin(4.0 * t)) / 127.0)
    assert len(recorded_keys(samples)) <= 16


def test_a_value_that_repeats_for_one_frame_makes_no_step() -> None:
    smooth = at_60_hz(lambda t: math.sin(4.0 * t))
    stairs = [(t, smooth[index - index % 2][1]) for index, (t, _) in enumerate(smooth)]
    assert len(recorded_keys(stairs)) <= 8


def test_a_pause_stays_a_pause() -> None:
    samples = at_60_hz(lambda t: 0.0 if t < 1.0 else t - 1.0)
    session = Session(timeline=with_recorded(Timeline(), SLIDER, recorded_keys(samples)))
    assert session_at(session, 0.9).slider("a").amount == pytest.approx(0.0, abs=0.01)


def test_a_scale_is_fitted_as_it_is_played_in_equal_factors() -> None:
    samples = at_60_hz(lambda t: 2.0**t)
    keys = recorded_keys(samples, is_geometric=True)
    assert [(value, easing) for _, value, easing in keys] == [(1.0, LINEAR), (4.0, LINEAR)]
    assert worst_miss(samples, "transform.scale", is_geometric=True) <= TOLERANCE


def test_of_values_with_nothing_between_them_every_change_is_kept_and_holds() -> None:
    samples = [(Fraction(0), "const"), (Fraction(1), "const"), (Fraction(2), "random"), (Fraction(3), "random")]
    assert recorded_keys(samples) == [(0, "const", HOLD), (2, "random", HOLD)]
    seeds = [(Fraction(n), n // 2) for n in range(6)]
    assert recorded_keys(seeds, is_stepped=True) == [(0, 0, HOLD), (2, 1, HOLD), (4, 2, HOLD)]


def test_a_path_over_the_seed_plane_becomes_straight_lines() -> None:
    samples = [(Fraction(n), Position(min(n, 5), max(0, n - 5))) for n in range(11)]
    assert recorded_keys(samples) == [(n, Position(min(n, 5), max(0, n - 5)), LINEAR) for n in (0, 5, 10)]


def test_a_single_value_is_one_key_and_nothing_is_none() -> None:
    assert recorded_keys([(Fraction(1), 0.5)]) == [(1, 0.5, LINEAR)]
    assert recorded_keys([]) == []
