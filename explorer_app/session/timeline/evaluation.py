"""Session with a timeline, time -> session: pure, and random access.

A track's curve is compiled when it is first needed and stays with the track, so that another key recompiles one track.
Tracks apply in this order, whatever their order on the screen, so that a more particular one moves what a more general
one sets: states, the latent, parameters, the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from explorer_app.session.blend import resolve_blend
from explorer_app.session.parameters import Parameter, Value, parameter
from explorer_app.session.resolve import NO_MODULATION, Modulation, evaluate
from explorer_app.session.session import Session, as_still, moved_sliders
from explorer_app.session.session_writer import SessionWriter
from explorer_app.session.timeline.curves import (
    Curve,
    LatentCurve,
    NumberCurve,
    PathWeights,
    ValueCurve,
    number_curve,
)
from explorer_app.session.timeline.easing import eased
from explorer_app.session.timeline.states import mixed_states, placed, states_between
from explorer_app.session.timeline.walk import walked
from explorer_app.session.tracks import STATE, WALK, Timeline, Track

_LATENT = "pinned_blend"
_GENERAL = (STATE, _LATENT)
"""Tracks that set more than one parameter."""
_SLIDER = "slider/"
_NUMBERS = ("number", "angle", "integer")


def session_at(session: Session, t: float, sound: Modulation = NO_MODULATION) -> Session:
    """Return the session as its timeline has it at a time in seconds: what is rendered.

    Sound moves what keys set, and the walk leads on from there.
    """
    return with_walk(evaluate(keyed_at(session, t), sound, t), t)


def keyed_at(session: Session, t: float) -> Session:
    """Return the session with the values that keys have at a time. Every value is kept within its range.

    Applied to a session that is at another time already, it gives the same: keys set values, and add nothing to them.
    """
    program = _program(session.timeline)
    if program.states is not None:
        session = placed(program.states.at(t), session)
    if program.latent is not None:
        session = replace(session, pinned_blend=program.latent.at(t))
    if program.parts or program.rows:
        writer = SessionWriter(session)
        for part, curves in program.parts.items():
            writer.write_part(part, {path: at(t) for path, at in curves})
        for row, at in program.rows:
            writer.write(row, at(t))
        session = writer.finish()
    if program.sliders:
        amounts = {direction: at(t) for direction, at in program.sliders}
        session = replace(session, sliders=moved_sliders(session.sliders, amounts))
    return session


def with_walk(session: Session, t: float) -> Session:
    """Return a session that its timeline's walk has moved on, if there is one."""
    walk = _program(session.timeline).walk
    if walk is None:
        return session
    return replace(session, pinned_blend=walked(resolve_blend(replace(session, sliders=(), mix=())), walk, t))


def value_at(timeline: Timeline, path: str, t: float) -> Value:
    """Return the value of a track at a time; None if it has no keys, or its values are no parameter's."""
    track = timeline.track(path)
    if track is None or not track.keys or path in (STATE, WALK):
        return None
    value = _curve(track, timeline).at(t)
    return parameter(path).clamped(value)


def track_session(session: Session, track: Track, t: float) -> Session:
    """Return the session at a time as if its timeline had only this track; without a timeline, as pictures have it."""
    alone = replace(session.timeline, tracks=(replace(track, is_muted=False),))
    return as_still(keyed_at(replace(session, timeline=alone), t))


def sampled(timeline: Timeline, track: Track, times: Sequence[float]) -> list[float]:
    """Return the values of a track of numbers at many times, for drawing."""
    row, curve = parameter(track.path), _curve(track, timeline)
    return [float(row.clamped(curve.at(t)) or 0.0) for t in times]


def is_blended(track: Track) -> bool:
    """Return whether a frame between two keys of a track holds the recipes of several keys."""
    return track.path in (STATE, _LATENT) and not track.is_muted


def moves_something(timeline: Timeline) -> bool:
    """Return whether tracks of a timeline change the picture over time."""
    return any(_acts(track) for track in timeline.tracks)


def changed_tracks(before: Timeline, timeline: Timeline) -> Timeline:
    """Return a timeline without the tracks whose values an edit of `before` left as they were.

    A change of what sets more than one parameter leaves all tracks, since others move what it sets; so does the end of
    a track that moved what such a one sets.
    """
    if (before.grid, before.z_dim) != (timeline.grid, timeline.z_dim):
        return timeline
    changed = tuple(track for track in timeline.tracks if track not in before.tracks)
    acting = {track.path for track in timeline.tracks if _acts(track)}
    is_uncovered = any(_acts(track) and track.path not in acting for track in before.tracks)
    if any(track.path in _GENERAL for track in changed) or (is_uncovered and not acting.isdisjoint(_GENERAL)):
        return timeline
    return replace(timeline, tracks=changed)


def is_piece(session: Session) -> bool:
    """Return whether there is something to play and to export: tracks that act, or sounds."""
    return bool(session.timeline.sounds) or moves_something(session.timeline)


class _States:
    """A curve through whole sessions."""

    __slots__ = ("_states", "_track", "_way")

    def __init__(self, track: Track, timeline: Timeline) -> None:
        self._way = PathWeights(track, timeline)
        self._track = track
        self._states: list[Session] = [key.value for key in track.keys]

    def at(self, t: float) -> Session:
        """Return the state at a time; the key's own at a key."""
        index, u = self._way.clock.place(t)
        if u == 0.0:
            return self._states[index]
        share = eased(self._track.keys[index].easing, u)
        if share in (0.0, 1.0):
            return self._states[index + round(share)]
        if self._track.way not in ("w-linear", "w-cubic"):
            first, second = self._states[index : index + 2]
            return states_between(first, second, self._track.way, share, self._way.z_dim)
        return mixed_states(self._states, self._way.weights(index, share), index)


_Curves = list[tuple[str, Callable[[float], Value]]]
"""Functions of time by path, or by direction."""


class _Program:
    """The curves of a timeline, by what they move."""

    __slots__ = ("latent", "parts", "rows", "sliders", "states", "walk")

    def __init__(self, timeline: Timeline) -> None:
        self.states: _States | None = None
        self.latent: LatentCurve | None = None
        self.parts: dict[str, _Curves] = {}
        """Curves of parameters that `SessionWriter` writes together, by part."""
        self.rows: list[tuple[Parameter, Callable[[float], Value]]] = []
        """Curves of the others, and of those that are of the same part: their order counts."""
        self.sliders: _Curves = []
        self.walk: Track | None = None
        rows: list[tuple[Parameter, Callable[[float], Value]]] = []
        for track in timeline.tracks:
            if not _acts(track):
                continue
            if track.path == WALK:
                self.walk = track
            elif track.path == STATE:
                self.states = _curve(track, timeline)
            elif track.path == _LATENT:
                self.latent = _curve(track, timeline)
            elif track.path.startswith(_SLIDER):
                self.sliders.append((track.path[len(_SLIDER) :], _curve(track, timeline).at))
            else:
                row = parameter(track.path)
                rows.append((row, _clamped(row, _curve(track, timeline))))
        single = {row.part for row, _ in rows if not row.is_batched}
        for row, at in rows:
            if row.part in single:
                self.rows.append((row, at))
            else:
                self.parts.setdefault(row.part, []).append((row.path, at))


def _clamped(row: Parameter, curve: Curve) -> Callable[[float], Value]:
    """Return a curve's values within the range of its parameter."""
    at, clamp, low, high = curve.at, row.clamped, row.low, row.high
    if not isinstance(curve, NumberCurve):
        return lambda t: clamp(at(t))

    def inside(t: float) -> float:
        value: float = at(t)
        return value if low <= value <= high else float(clamp(value))

    return inside


def _acts(track: Track) -> bool:
    return not track.is_muted and bool(track.keys or track.path == WALK)


def _program(timeline: Timeline) -> _Program:
    program = timeline.derived.get("program")
    if program is None:
        program = timeline.derived["program"] = _Program(timeline)
    assert isinstance(program, _Program)
    return program


def _curve(track: Track, timeline: Timeline) -> Any:
    """Return the compiled curve of a track. Only its beats and arcs depend on the timeline."""
    key = ("curve", timeline.grid, timeline.z_dim)
    curve = track.derived.get(key)
    if curve is None:
        curve = track.derived[key] = _made_curve(track, timeline)
    return curve


def _made_curve(track: Track, timeline: Timeline) -> Curve:
    if track.path == STATE:
        return _States(track, timeline)
    row = parameter(track.path)
    if row.kind == "latent":
        return LatentCurve(track, timeline)
    if row.kind in _NUMBERS and all(key.value is not None for key in track.keys):
        return number_curve(track, timeline, row)
    return ValueCurve(track, timeline, row)
