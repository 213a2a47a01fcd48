"""Recorded curves with fewer keys: Ramer, Douglas and Peucker's way, within a tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from explorer_app.session.session import Position

Samples = Sequence[tuple[Fraction, Any]]
"""(seconds, value) pairs, in ascending order."""


def simplified(samples: Samples, tolerance: float) -> list[tuple[Fraction, Any]]:
    """Return the samples that a recording needs: straight lines between them miss no sample by more than a tolerance.

    Distances are measured along the value, since time only grows (Douglas and Peucker, 1973, with that distance).
    Numbers and places on the seed plane are thinned out; of values of other kinds every change stays.
    """
    if not samples:
        return []
    numbers = [_numbers(value) for _, value in samples]
    if any(item is None for item in numbers):
        return _changes(samples)
    points = [item for item in numbers if item is not None]
    times = [float(t) for t, _ in samples]
    kept = {0, len(samples) - 1}
    spans = [(0, len(samples) - 1)]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
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


def _numbers(value: Any) -> tuple[float, ...] | None:
    if isinstance(value, Position):
        return value.x, value.y
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return (float(value),)


def _changes(samples: Samples) -> list[tuple[Fraction, Any]]:
    kept = [samples[0]]
    kept += [sample for before, sample in pairwise(samples) if sample[1] != before[1]]
    return kept
