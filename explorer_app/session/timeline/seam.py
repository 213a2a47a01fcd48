"""Whether a loop closes: value and velocity at its end equal those at its start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.tracks import WALK, Timeline, Track
from gpu_backend import BEND_REST, Arc, Point, StoredLatent, dataclass

_STEP_S = 1e-3
"""Velocities are differences over this time."""

_VALUE_TOLERANCE = 1e-4
_VELOCITY_TOLERANCE = 0.02
"""Of the largest velocity on the way: a difference below it is not seen."""

_PROBES = 48

_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class Seam:
    """Whether values and velocities at both ends of a range are equal.

    `only_repeats` says that tracks that repeat are left out: they jump or jerk at the seam, and at each of their
    repeats within the range alike.
    """

    value_meets: bool
    velocity_meets: bool
    only_repeats: bool = False


def seam(session: Session, start: float, end: float) -> Seam:
    """Return whether a range of the session's timeline, in seconds, can be repeated without a jump or a jerk.

    What is compared is what the renderer gets: weights of recipes, amounts, noise, transform, local edits.
    """
    if end <= start:
        return Seam(value_meets=True, velocity_meets=True)
    found = _seam(session, start, end)
    timeline = session.timeline
    others = tuple(track for track in timeline.tracks if not repeats_alike(timeline, track, start, end))
    if found.velocity_meets or len(others) == len(timeline.tracks):
        return found
    rest = _seam(replace(session, timeline=replace(timeline, tracks=others)), start, end)
    return replace(rest, only_repeats=rest.velocity_meets)


def _seam(session: Session, start: float, end: float) -> Seam:
    h = min(_STEP_S, (end - start) / 8.0)
    timeline = session.timeline
    tracks = tuple(ending(timeline, track, end) for track in timeline.tracks)
    before_end = replace(session, timeline=replace(timeline, tracks=tracks))
    value_meets = _distance(_numbers(session, start), _numbers(before_end, end)) <= _VALUE_TOLERANCE
    leaving = _velocity(session, start, h)
    arriving = _velocity(before_end, end - h, h)
    probes = (_velocity(session, start + (end - start) * i / _PROBES, h) for i in range(_PROBES))
    fastest = max((max(map(abs, item.values()), default=0.0) for item in probes), default=0.0)
    miss = _distance(leaving, arriving)
    # The difference over a step of an eased curve is never quite that at its end.
    return Seam(value_meets, velocity_meets=value_meets and miss <= max(_VELOCITY_TOLERANCE * fastest, 1e-6))


def repeats_alike(timeline: Timeline, track: Track, start: float, end: float) -> bool:
    """Return whether a track begins again, or turns, at both ends of a range and within it."""
    first, length = _round_of(timeline, track)
    if track.outside == "hold" or not 0.0 < length < end - start - _ROUNDING_S:
        return False
    period = 2.0 * length if track.outside == "mirror" else length
    return _is_near_multiple(end - first, length) and _is_near_multiple(end - start, period)


def ending(timeline: Timeline, track: Track, end: float) -> Track:
    """Return a track that ends at a time if it begins again there: what it comes from is the value of its last key."""
    first, length = _round_of(timeline, track)
    if track.outside != "loop" or length <= 0.0 or not _is_near_multiple(end - first, length):
        return track
    last = timeline.seconds(track.keys[-1])
    rounds = round((end - float(last)) / length) * (last - timeline.seconds(track.keys[0]))
    keys = tuple(replace(key, time=timeline.seconds(key) + rounds, is_beat=False) for key in track.keys)
    return replace(track, keys=keys, outside="hold")


def _round_of(timeline: Timeline, track: Track) -> tuple[float, float]:
    """Return the second of a track's first key, and the seconds from it to the last one."""
    if track.path == WALK or not track.keys:
        return 0.0, 0.0
    first, last = timeline.seconds(track.keys[0]), timeline.seconds(track.keys[-1])
    return float(first), float(last - first)


def _is_near_multiple(t: float, length: float) -> bool:
    return abs(math.remainder(t, length)) < _ROUNDING_S


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
