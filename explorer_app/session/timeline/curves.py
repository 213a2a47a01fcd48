"""Curves of tracks: compiled once a track, then a value for any time in about half a microsecond."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Protocol

from explorer_app.session.blend import Blend
from explorer_app.session.parameters import Parameter, Value
from explorer_app.session.timeline.easing import bezier_curve, eased
from explorer_app.session.timeline.spline import spline_weights
from explorer_app.session.tracks import Key, Timeline, Track
from gpu_backend import blend_between, is_on_seed, weighted_blend

_HOLD, _LINEAR, _SMOOTH, _IN, _OUT, _IN_OUT, _BEZIER = range(7)
_CODES = {
    "hold": _HOLD,
    "linear": _LINEAR,
    "smooth": _SMOOTH,
    "in": _IN,
    "out": _OUT,
    "in-out": _IN_OUT,
    "bezier": _BEZIER,
}


_ROUNDING_S = 1e-6
"""So short before the end of a round the next one has begun: thirds of a second are not exact in floating point."""

_Segment = tuple[float, float, float, float, float, int, Any]
"""Start, end, one over the length, first value, change, code of the easing, share of the change of a Bezier curve."""


class Curve(Protocol):
    """A value for every time in seconds; implements `explorer_app.session.resolve.Curve`."""

    def at(self, t: float) -> Value:
        """Return the value at a time."""
        ...


class _Clock:
    """Times of a track's keys in seconds, and what comes before the first and after the last."""

    __slots__ = ("first", "length", "outside", "times")

    def __init__(self, track: Track, timeline: Timeline) -> None:
        self.times = [float(timeline.seconds(key)) for key in track.keys]
        self.first, self.length = self.times[0], self.times[-1] - self.times[0]
        self.outside = track.outside if self.length > 0.0 else "hold"

    def folded(self, t: float) -> float:
        """Return the time within the keys that a time outside them repeats."""
        if self.outside == "loop":
            place = (t - self.first) % self.length
            return self.first + (place if place < self.length - _ROUNDING_S else 0.0)
        if self.outside == "mirror":
            place = (t - self.first) % (2.0 * self.length)
            return self.first + (place if place <= self.length else 2.0 * self.length - place)
        return t

    def place(self, t: float) -> tuple[int, float]:
        """Return the key at or before a time, and the share of the time to the next one; 0 at the last key."""
        times = self.times
        if not times[0] <= t < times[-1]:
            t = self.folded(t)
            if t <= times[0]:
                return 0, 0.0
            if t >= times[-1]:
                return len(times) - 1, 0.0
        index = bisect_right(times, t) - 1
        return index, (t - times[index]) / (times[index + 1] - times[index])


class NumberCurve:
    """A curve through numbers: segments with their easing worked out beforehand.

    `at` is a closure: it is called for each track and frame, and a method would look six attributes up.
    """

    __slots__ = ("at",)

    at: Callable[[float], float]
    """Return the value at a time."""

    def __init__(self, track: Track, timeline: Timeline, *, is_geometric: bool, is_whole: bool) -> None:
        keys = track.keys
        values = [float(key.value or 0.0) for key in keys]
        is_geometric = is_geometric and min(values) > 0.0
        if is_geometric:
            values = [math.log(value) for value in values]
        clock = _Clock(track, timeline)
        times = clock.times
        segments = [
            _segment(keys[i], times[i], times[i + 1], values[i], values[i + 1] - values[i])
            for i in range(len(keys) - 1)
        ]
        eased = _eased_number(clock, segments, values[0], values[-1])

        def shown(t: float) -> float:
            value = math.exp(eased(t)) if is_geometric else eased(t)
            return round(value) if is_whole else value

        self.at = shown if is_geometric or is_whole else eased


def _eased_number(
    clock: _Clock, segments: list[_Segment], first_value: float, last_value: float
) -> Callable[[float], float]:
    times = clock.times
    first, last = times[0], times[-1]
    if not segments:
        return lambda t: first_value
    recent = segments[0]  # the next frame mostly falls into the same one; replaced whole, so threads may share it

    def at(t: float) -> float:
        nonlocal recent
        start, end, rate, value, change, code, curve = recent
        if not start <= t < end:
            if t < first or t >= last:
                t = clock.folded(t)
                if t <= first:
                    return first_value
                if t >= last:
                    return last_value
            recent = start, end, rate, value, change, code, curve = segments[bisect_right(times, t) - 1]
        u = (t - start) * rate
        if code == _SMOOTH:
            return value + change * (u * u * (3.0 - 2.0 * u))
        if code == _LINEAR:
            return value + change * u
        if code == _BEZIER:
            share: float = curve(u)
            return value + change * share
        if code == _HOLD:
            return value
        if code == _IN:
            return value + change * u * u
        if code == _OUT:
            return value + change * u * (2.0 - u)
        return value + change * (u * u * u * (u * (6.0 * u - 15.0) + 10.0))

    return at


def _segment(key: Key, start: float, end: float, value: float, change: float) -> _Segment:
    code = _CODES[key.easing.kind] if change else _HOLD
    curve = bezier_curve(key.easing.handles) if code == _BEZIER else None
    return start, end, 1.0 / (end - start), value, change, code, curve


class ValueCurve:
    """A curve through values of any kind, by what the table says of values between two."""

    __slots__ = ("_clock", "_keys", "_row")

    def __init__(self, track: Track, timeline: Timeline, row: Parameter) -> None:
        self._clock = _Clock(track, timeline)
        self._keys = track.keys
        self._row = row

    def at(self, t: float) -> Value:
        """Return the value at a time."""
        index, u = self._clock.place(t)
        key = self._keys[index]
        if u == 0.0:
            return key.value
        return self._row.between(key.value, self._keys[index + 1].value, eased(key.easing, u))


class LatentCurve:
    """A curve through blends of recipes."""

    __slots__ = ("_blends", "_track", "way")

    def __init__(self, track: Track, timeline: Timeline) -> None:
        self.way = PathWeights(track, timeline)
        self._track = track
        self._blends: list[Blend] = [key.value for key in track.keys]

    def at(self, t: float) -> Blend:
        """Return the blend at a time; the key's own at a key."""
        way, blends = self.way, self._blends
        index, u = way.clock.place(t)
        if u == 0.0:
            return blends[index]
        share = eased(self._track.keys[index].easing, u)
        kind = self._track.way
        ends = blends[index], blends[index + 1]
        if share in (0.0, 1.0) or (ends[0] == ends[1] and kind != "w-cubic"):
            return ends[round(share)]
        if kind == "w-slerp" or (kind.startswith("z") and all(is_on_seed(end) for end in ends)):
            return blend_between(*ends, kind, share, z_dim=way.z_dim)
        return weighted_blend(blends, way.weights(index, share))


class PathWeights:
    """The weights of the keys on a way through latents or states."""

    __slots__ = ("_closes", "_is_cubic", "clock", "z_dim")

    def __init__(self, track: Track, timeline: Timeline) -> None:
        self.clock = _Clock(track, timeline)
        self.z_dim = timeline.z_dim
        self._is_cubic = track.way == "w-cubic"
        self._closes = len(track.keys) > 2 and track.keys[0].value == track.keys[-1].value

    def weights(self, index: int, share: float) -> dict[int, float]:
        """Return the weight of each key at a share of the way from a key to the next one."""
        if self._is_cubic and 0.0 <= share <= 1.0:
            return spline_weights(self.clock.times, index, share, closes=self._closes)
        return {index: 1.0 - share, index + 1: share}


def number_curve(track: Track, timeline: Timeline, row: Parameter) -> NumberCurve:
    """Return the curve of a track of numbers, angles or whole numbers."""
    return NumberCurve(track, timeline, is_geometric=row.is_geometric, is_whole=row.kind == "integer")
