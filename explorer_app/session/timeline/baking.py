"""A walk as keys, so that a user can edit it."""

from __future__ import annotations

from dataclasses import replace

from explorer_app.session.blend import resolve_blend
from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import TimelineError, with_track, without_track
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.tracks import LINEAR, MAX_KEYS, WALK, Key, Timeline, Track

KEYS_A_PERIOD = 24
"""Eight for the fastest circle of a walk: a spline through them misses it by less than a hundredth of its radius."""


def baked_walk(session: Session) -> Timeline:
    """Return the session's timeline with keys of the latent in place of its walk.

    The keys hold what states and other tracks make of the latent, too, which then moves it no longer.

    Raises
    ------
    TimelineError
        If the walk would take more keys than a timeline may have.
    """
    timeline = session.timeline
    walk = timeline.track(WALK)
    if walk is None:
        return timeline
    step = walk.period / KEYS_A_PERIOD
    count = max(1, int(timeline.end / step))
    if count > MAX_KEYS:  # before they are made, which takes long
        raise TimelineError(f"A timeline may have {MAX_KEYS:,} keys, but this walk would take more; slow it down.")
    keys = []
    for index in range(count + 1):
        t = min(index * step, timeline.end)
        at = session_at(session, float(t))
        keys.append(Key(t, resolve_blend(replace(at, sliders=(), mix=())), LINEAR))
    if keys[-1].time < timeline.end:
        at = session_at(session, float(timeline.end))
        keys.append(Key(timeline.end, resolve_blend(replace(at, sliders=(), mix=())), LINEAR))
    if timeline.end % walk.period == 0 and _is_still(timeline):
        keys[-1] = replace(keys[-1], value=keys[0].value)  # the same but for rounding: the spline then closes
    baked = Track("pinned_blend", tuple(keys), way="w-cubic")
    return with_track(without_track(timeline, WALK), baked)


def _is_still(timeline: Timeline) -> bool:
    """Return whether nothing but the walk moves the latent."""
    return all(
        track.path.startswith(("slider/", "noise", "transform")) or track.path == WALK for track in timeline.tracks
    )
