"""Recorded curves as few keys: Bezier curves through numbers, within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any

from explorer_app.session.session import Position
from explorer_app.session.tracks import HOLD, LINEAR, Easing
from gpu_backend import dataclass

Samples = Sequence[tuple[Fraction, Any]]
"""(seconds, value) pairs, in ascending order."""

Recorded = tuple[Fraction, Any, Easing]
"""Time in seconds, value and easing of a key."""

TOLERANCE = 0.01
"""What a recorded curve may miss, as a share of the range that it covers: about one step of a MIDI controller."""

_REST_S = 0.05
"""A value that repeats for a shorter time did not rest: the controller sent nothing between two frames."""


def recorded_keys(samples: Samples, *, is_stepped: bool = False, is_geometric: bool = False) -> list[Recorded]:
    """Return the keys that a recording needs.

    Numbers become Bezier curves, places on the seed plane straight lines; both miss no sample by more than `TOLERANCE`.
    Of values of other kinds every change stays, and holds.

    Parameters
    ----------
    is_stepped
        Whether nothing lies between two values, as between two seeds of the noise.
    is_geometric
        Whether values between two keys go in equal factors, as those of a scale do.
    """
    values = [value for _, value in samples]
    if is_stepped or not values:
        return [(t, value, HOLD) for t, value in _changes(samples)]
    if all(isinstance(value, Position) for value in values):
        spans = [max(axis) - min(axis) for axis in zip(*((place.x, place.y) for place in values), strict=True)]
        kept = _straightened(samples, max(TOLERANCE * max(spans), 1e-6))
        return [(t, value, LINEAR) for t, value in kept]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return _fitted(_without_repeats(samples), is_geometric=is_geometric and min(values) > 0.0)
    return [(t, value, HOLD) for t, value in _changes(samples)]


def _straightened(samples: Samples, tolerance: float) -> list[tuple[Fraction, Any]]:
    """Return the places that a path over the seed plane needs: lines between them keep within a tolerance.

    Distances are measured along the value, since time only grows (Douglas and Peucker, 1973, with that distance).
    """
    points = [(place.x, place.y) for _, place in samples]
    times = [float(t) for t, _ in samples]
    kept = {0, len(samples) - 1}
    spans = [(0, len(samples) - 1)]
    while spans:
        first, last = spans.pop()
        worst, place = tolerance, None
        run = times[last] - times[first]
        for index in range(first + 1, last):
            share = (times[index] - times[first]) / run if run > 0.0 else 0.0
            for a, b, value in zip(points[first], points[last], points[index], strict=True):
                miss = abs(a + share * (b - a) - value)
                if miss > worst:
                    worst, place = miss, index
        if place is not None:
            kept.add(place)
            spans += [(first, place), (place, last)]
    return [samples[index] for index in sorted(kept)]


def _fitted(samples: Samples, *, is_geometric: bool) -> list[Recorded]:
    """Return keys of Bezier curves through numbers: a stretch that one curve does not fit becomes two."""
    values = [math.log(value) if is_geometric else float(value) for _, value in samples]
    curve = _Curve([float(t) for t, _ in samples], values, max(TOLERANCE * (max(values) - min(values)), 1e-6))
    easings: dict[int, Easing] = {len(samples) - 1: LINEAR}
    spans = [(0, len(samples) - 1)] if len(samples) > 1 else []
    while spans:
        first, last = spans.pop()
        easing = curve.easing(first, last)
        if easing is None:
            middle = curve.split(first, last)
            spans += [(first, middle), (middle, last)]
        else:
            easings[first] = easing
    return [(*samples[index], easing) for index, easing in sorted(easings.items())]


@dataclass(frozen=True, slots=True)
class _Curve:
    """Samples that are to be fitted."""

    times: Sequence[float]
    values: Sequence[float]
    tolerance: float

    def easing(self, first: int, last: int) -> Easing | None:
        """Return the easing that leads from one sample to another past those between; None if no single one does.

        With handles at a third and two thirds of the time a Bezier curve is a cubic polynomial of the time; with both
        heights in 0..1 it never turns back. Least squares find the heights.
        """
        start, change = self.values[first], self.values[last] - self.values[first]
        shares = self._shares(first, last)
        rises = [value - start for value in self.values[first + 1 : last]]
        if all(abs(u * change - rise) <= self.tolerance for u, rise in zip(shares, rises, strict=True)):
            return LINEAR
        if len(shares) < 2 or abs(change) <= self.tolerance:
            return None
        a11 = a12 = a22 = b1 = b2 = 0.0
        for u, rise in zip(shares, rises, strict=True):
            p, q = 3.0 * u * (1.0 - u) ** 2, 3.0 * u * u * (1.0 - u)
            rest = rise / change - u**3
            a11, a12, a22, b1, b2 = a11 + p * p, a12 + p * q, a22 + q * q, b1 + p * rest, b2 + q * rest
        scale = a11 * a22 - a12 * a12
        if scale < 1e-12:
            return None
        y1 = min(max((b1 * a22 - b2 * a12) / scale, 0.0), 1.0)
        y2 = min(max((b2 * a11 - b1 * a12) / scale, 0.0), 1.0)
        for u, rise in zip(shares, rises, strict=True):
            y = 3.0 * u * (1.0 - u) ** 2 * y1 + 3.0 * u * u * (1.0 - u) * y2 + u**3
            if abs(y * change - rise) > self.tolerance:
                return None
        return Easing("bezier", (1 / 3, y1, 2 / 3, y2))

    def split(self, first: int, last: int) -> int:
        """Return where to divide a stretch: where it turns back, else where it is farthest from a straight line."""
        low, high = sorted((self.values[first], self.values[last]))
        between = range(first + 1, last)
        turn = max(between, key=lambda index: max(self.values[index] - high, low - self.values[index]))
        if max(self.values[turn] - high, low - self.values[turn]) > self.tolerance:
            return turn
        start, change = self.values[first], self.values[last] - self.values[first]
        shares = self._shares(first, last)
        return max(between, key=lambda index: abs(start + shares[index - first - 1] * change - self.values[index]))

    def _shares(self, first: int, last: int) -> list[float]:
        """Return the share of the time of each sample between two."""
        start, run = self.times[first], self.times[last] - self.times[first]
        return [(t - start) / run if run > 0.0 else 0.0 for t in self.times[first + 1 : last]]


def _without_repeats(samples: Samples) -> Samples:
    """Return samples without the steps that come of reading a controller more often than it sends."""
    kept: list[tuple[Fraction, Any]] = []
    for _, group in groupby(samples, key=lambda sample: sample[1]):
        run = list(group)
        kept.append(run[0])
        if len(run) > 1 and (run[-1][0] - run[0][0] >= _REST_S or run[-1] is samples[-1]):
            kept.append(run[-1])
    return kept


def _changes(samples: Samples) -> list[tuple[Fraction, Any]]:
    """Return the samples whose value differs from the one before."""
    return [*samples[:1], *(sample for before, sample in pairwise(samples) if sample[1] != before[1])]
