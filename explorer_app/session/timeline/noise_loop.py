"""Loops of the noise maps: the phase of the noise as keys that come back to their start, which a user can edit.

A loop passes through the noise that the picture has at the playhead, so that adding it, or changing it, moves nothing
there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from explorer_app.session.timeline.edits import with_track
from explorer_app.session.tracks import LINEAR, NOISE_LOOP, Easing, Key, Timeline, Track

FULL_CIRCLE = 360.0
"""Radius of a noise loop that turns once round."""

_OUT = Easing("bezier", (1 / 3, math.pi / 6, 2 / 3, 1.0))
_BACK = Easing("bezier", (1 / 3, 0.0, 2 / 3, 1.0 - math.pi / 6))
"""Quarters of a sine, with its slopes at both ends: away from the middle, and back to it."""

_SWING = ((0.0, _OUT), (1.0, _BACK), (0.0, _OUT), (-1.0, _BACK))
"""The quarters of a period: distance from the middle in radii, and the easing to the next one."""


def with_noise_loop(
    timeline: Timeline,
    phase: float = 0.0,
    t: Fraction = Fraction(0),
    *,
    period: Fraction | None = None,
    radius: float = FULL_CIRCLE,
) -> Timeline:
    """Return the timeline with a noise phase that comes back to its start, and goes on so outside of its keys.

    Parameters
    ----------
    phase, t
        The phase in degrees that the picture has at a time in seconds, where the loop passes through it. A loop that
        swings already keeps its middle.
    period
        Seconds until it closes; by default those of the range that plays.
    radius
        How far the phase goes from its middle, in degrees: a full circle turns steadily, a smaller radius swings as a
        sine to both sides.
    """
    first, last = timeline.playing_range
    track = timeline.track(NOISE_LOOP)
    if track is not None and track.keys:
        first = timeline.seconds(track.keys[0])
    period = last - first if period is None else period
    if radius >= FULL_CIRCLE:
        start = phase - FULL_CIRCLE * float((t - first) / period % 1)
        keys: tuple[Key, ...] = (Key(first, start, LINEAR), Key(first + period, start + FULL_CIRCLE, LINEAR))
    else:
        phase, t = _middle_of(timeline, track) or (phase, t)
        step = period / 4
        quarters = math.floor((t - first) / step)  # from the first key to t, where the swing passes its middle
        keys = tuple(
            Key(t + (index - quarters) * step, phase + radius * share, easing)
            for index in range(5)
            for share, easing in [_SWING[(index - quarters) % 4]]
        )
    made = Track(NOISE_LOOP, keys, outside="loop") if track is None else replace(track, keys=keys, outside="loop")
    return with_track(timeline, made)


def noise_loop_of(timeline: Timeline) -> tuple[Fraction, float]:
    """Return period and radius of the timeline's noise loop: how long its keys are, and how far they go."""
    track = timeline.track(NOISE_LOOP)
    if track is None or len(track.keys) < 2:
        return timeline.end, FULL_CIRCLE
    run = timeline.seconds(track.keys[-1]) - timeline.seconds(track.keys[0])
    phases = [float(key.value) for key in track.keys]
    span = max(phases) - min(phases)
    return run, FULL_CIRCLE if span >= FULL_CIRCLE or len(phases) == 2 else round(span / 2.0, 6)


def _middle_of(timeline: Timeline, track: Track | None) -> tuple[float, Fraction] | None:
    """Return the phase around which a loop swings, and the first time when it passes it upwards; None if it does not.

    That time may be before the first key.
    """
    if track is None or len(track.keys) != 1 + len(_SWING):
        return None
    quarters = track.keys[:4]
    if [key.easing for key in quarters] not in ([_OUT, _BACK] * 2, [_BACK, _OUT] * 2):
        return None
    phases = [float(key.value) for key in quarters]
    first, last = (timeline.seconds(track.keys[place]) for place in (0, -1))
    upwards = phases.index(max(phases)) - 1
    return (max(phases) + min(phases)) / 2.0, first + upwards * (last - first) / 4
