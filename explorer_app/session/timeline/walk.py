"""Closed random walks in w: a latent drifts and returns to its start after one period."""

from __future__ import annotations

import math
import random
from functools import lru_cache

from explorer_app.session.blend import Blend
from explorer_app.session.tracks import Track
from gpu_backend import SEED_COUNT, Latent, Point, Recipe, Truncation

_HARMONICS = 3
"""A walk is a sum of circles that are passed once, twice and three times in a period, each smaller than the last."""


@lru_cache(maxsize=64)
def _circles(seed: int) -> tuple[tuple[int, float, tuple[int, int, int, int]], ...]:
    """Return (turns in a period, phase, the seeds of two axes) of each circle."""
    numbers = random.Random(seed)  # the same numbers on every system
    return tuple(
        (turns, numbers.uniform(0.0, math.tau), tuple(numbers.randrange(SEED_COUNT) for _ in range(4)))  # type: ignore[misc]
        for turns in range(1, _HARMONICS + 1)
    )


def walked(blend: Blend, track: Track, t: float) -> Blend:
    """Return a blend moved by a walk at a time in seconds.

    The walk adds, for circles k = 1, 2, 3 with a = radius / (k sqrt 2) and angle = 2 pi k t / period + phase::

        a cos(angle) (w(s1) - w(s2)) + a sin(angle) (w(s3) - w(s4))

    The weights of the blend still sum to one. Value and velocity meet at the end of each period.
    """
    if track.radius == 0.0 or not blend:
        return blend
    truncation, classes = blend[0][0].truncation, blend[0][0].latent.classes
    added: dict[Recipe, float] = dict(blend)
    share = t / float(track.period)
    for turns, phase, seeds in _circles(track.seed):
        angle = math.tau * turns * (share % 1.0) + phase
        size = track.radius / (turns * math.sqrt(2.0))
        for weight, (plus, minus) in ((math.cos(angle), seeds[:2]), (math.sin(angle), seeds[2:])):
            for number, sign in ((plus, 1.0), (minus, -1.0)):
                recipe = _on_seed(number, classes, truncation)
                added[recipe] = added.get(recipe, 0.0) + sign * size * weight
    return tuple(added.items())


@lru_cache(maxsize=512)
def _on_seed(seed: int, classes: tuple[tuple[int, float], ...], truncation: Truncation) -> Recipe:
    return Recipe(Latent(Point(((seed, 1.0),)), classes=classes), truncation)
