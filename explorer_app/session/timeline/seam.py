"""Whether a loop closes: value and velocity at its end equal those at its start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from explorer_app.session.timeline.evaluation import session_at
from gpu_backend import BEND_REST, Arc, Point, StoredLatent, dataclass

_STEP_S = 1e-3
"""Velocities are differences over this time."""

_VALUE_TOLERANCE = 1e-4
_VELOCITY_TOLERANCE = 0.02
"""Of the largest velocity on the way: a difference below it is not seen."""

_PROBES = 48


@dataclass(frozen=True, slots=True)
class Seam:
    """Whether values and velocities at both ends of a range are equal."""

    value_meets: bool
    velocity_meets: bool


def seam(session: Session, start: float, end: float) -> Seam:
    """Return whether a range of the session's timeline, in seconds, can be repeated without a jump or a jerk.

    What is compared is what the renderer gets: weights of recipes, amounts, noise, transform, local edits.
    """
    span = end - start
    if span <= 0.0:
        return Seam(value_meets=True, velocity_meets=True)
    h = min(_STEP_S, span / 8.0)
    value_meets = _distance(_numbers(session, start), _numbers(session, end)) <= _VALUE_TOLERANCE
    leaving = _velocity(session, start, h)
    arriving = _velocity(session, end - h, h)
    probes = (_velocity(session, start + span * i / _PROBES, h) for i in range(_PROBES))
    fastest = max((max(map(abs, item.values()), default=0.0) for item in probes), default=0.0)
    miss = _distance(leaving, arriving)
    # The difference over a step of an eased curve is never quite that at its end.
    return Seam(value_meets, velocity_meets=value_meets and miss <= max(_VELOCITY_TOLERANCE * fastest, 1e-6))


def _velocity(session: Session, t: float, h: float) -> Mapping[Any, float]:
    before, after = _numbers(session, t), _numbers(session, t + h)
    return {key: (after.get(key, 0.0) - before.get(key, 0.0)) / h for key in {**before, **after}}


def _distance(first: Mapping[Any, float], second: Mapping[Any, float]) -> float:
    return max((abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in {**first, **second}), default=0.0)


def _numbers(session: Session, t: float) -> dict[Any, float]:
    """Return everything that makes a picture as numbers by name; other values become part of a name."""
    request = resolve(session_at(session, t))
    found: dict[Any, float] = {("noise", request.noise.mode, request.noise.seed): request.noise.gain}
    turn = math.radians(request.noise.phase)  # on a circle, so that 0 and 360 degrees meet
    found["phase", 0], found["phase", 1] = math.cos(turn), math.sin(turn)
    for layer, gain in enumerate(request.noise.layer_gains):
        found["layer", layer] = gain - 1.0
    for index, number in enumerate(request.transform or (1, 0, 0, 0, 1, 0, 0, 0, 1)):
        found["transform", index] = number
    for place, bend in enumerate(request.edits.bends):
        name = ("bend", place, bend.layer, bend.kind, bend.channels)
        found[(*name, "amount")], found[(*name, "down")] = bend.amount - BEND_REST[bend.kind], bend.down
    for offset in request.edits.style_offsets:
        found["style", offset.layer, offset.channel] = offset.amount
    for blend in request.edits.blends:
        parts = ("blend", blend.recipe, blend.mask, blend.rows)
        found[(*parts, "strength")] = found.get((*parts, "strength"), 0.0) + blend.strength
        found[(*parts, "softness")] = blend.softness
    for recipe, weight in request.blend:
        latent, point = recipe.latent, recipe.latent.point
        sources = tuple((source.latent, tuple(source.strengths)) for source in latent.mix)
        for space, seed, share in _shares(point):
            key = ("seed", space, seed, latent.classes)
            found[key] = found.get(key, 0.0) + weight * share
        for item in latent.directions:
            found["slider", item.name] = found.get(("slider", item.name), 0.0) + weight * item.amount
        for source, strengths in sources:
            for row, strength in enumerate(strengths):
                found["mix", source, row] = found.get(("mix", source, row), 0.0) + weight * strength
        found["psi", recipe.truncation.cutoff] = (
            found.get(("psi", recipe.truncation.cutoff), 0.0) + weight * recipe.truncation.psi
        )
    return found


def _shares(point: Point | Arc | StoredLatent) -> Iterator[tuple[str, Any, float]]:
    """Yield (space, seed or stored latent, share) of a point; on an arc, fractions refer to its angle."""
    if isinstance(point, Arc):
        for end, factor in ((point.first, 1.0 - point.fraction), (point.second, point.fraction)):
            yield from ((space, seed, factor * share) for space, seed, share in _shares(end))
    elif isinstance(point, Point):
        yield from ((point.space, seed, share) for seed, share in point.seeds)
    else:
        yield "w", point, 1.0
