"""Edits of a timeline: pure functions that return another one, and the edit that puts one into the session.

A key is named by its track's path and its time in seconds (`KeyName`), since no two keys of a track have the same time.
While keys are dragged, each event moves the keys of the timeline before the drag, so that nothing adds up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from explorer_app.session.blend import resolve_blend
from explorer_app.session.parameters import Parameter, SetParameter, parameter
from explorer_app.session.session import Session, as_still
from explorer_app.session.timeline.evaluation import track_session, value_at
from explorer_app.session.timeline.seam import ending, repeats_alike
from explorer_app.session.tracks import (
    HOLD,
    MAX_KEYS,
    MAX_SECONDS,
    MAX_TRACKS,
    NOISE_LOOP,
    SMOOTH,
    STATE,
    WALK,
    BeatGrid,
    Easing,
    Key,
    Timeline,
    Track,
)
from gpu_backend import LoomError, dataclass

KeyName = tuple[str, Fraction]
"""A track's path, and the key's time in seconds."""

Clip = tuple[tuple[str, Key], ...]
"""Copied keys: path and key, whose time in seconds counts from the first of them."""

LABEL, PASTE = "Timeline", "Paste keys"

_MAX_DENOMINATOR = 10**9
"""Of a key's time. Each stretch multiplies denominators, and files have no room for numbers of any length."""

TIMELINE = "timeline"
"""What edits of the timeline set."""

_STEPPED = ("integer", "choice", "rows", "layer", "source", "text", "flag", "mask")
"""Kinds of values of which a new key holds until the next one."""


class TimelineError(LoomError):
    """A timeline would hold more than it may, or be longer."""


@dataclass(frozen=True, slots=True)
class SetTimeline:
    """The edit that replaces the session's timeline; see `explorer_app.session.edits`.

    `also` sets what a recorded gesture chose at its beginning, such as rows of w: it does not move, so needs no track.
    """

    timeline: Timeline
    label: str = LABEL
    also: tuple[SetParameter, ...] = ()

    @property
    def target(self) -> Hashable:
        """The whole timeline: two gestures cannot move it at once."""
        return TIMELINE

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo: keys that are nudged."""
        return self.label == "Nudge keys"

    def apply(self, session: Session) -> Session:
        """Return the session with the timeline."""
        session = replace(session, timeline=self.timeline)
        for edit in self.also:
            session = edit.apply(session)
        return session


# -- tracks -------------------------------------------------------------------------------------------------------


def with_track(timeline: Timeline, track: Track) -> Timeline:
    """Return the timeline with a track in the place of that of the same path, or as the last one.

    Raises
    ------
    TimelineError
        If there would be more tracks or keys than a timeline may have.
    """
    others = sum(len(item.keys) for item in timeline.tracks if item.path != track.path)
    if others + len(track.keys) > MAX_KEYS:
        raise TimelineError(f"A timeline may have {MAX_KEYS:,} keys, but this one would have more.")
    if timeline.track(track.path) is not None:
        return replace(timeline, tracks=tuple(track if item.path == track.path else item for item in timeline.tracks))
    if len(timeline.tracks) >= MAX_TRACKS:
        raise TimelineError(f"A timeline may have {MAX_TRACKS} tracks, but this one would have more.")
    return replace(timeline, tracks=(*timeline.tracks, track))


def without_track(timeline: Timeline, path: str) -> Timeline:
    """Return the timeline without a track."""
    return replace(timeline, tracks=tuple(track for track in timeline.tracks if track.path != path))


def moved_track(timeline: Timeline, path: str, place: int) -> Timeline:
    """Return the timeline with a track at another place in the list."""
    track = timeline.track(path)
    if track is None:
        return timeline
    rest = [item for item in timeline.tracks if item.path != path]
    rest.insert(max(0, min(place, len(rest))), track)
    return replace(timeline, tracks=tuple(rest))


# -- keys ---------------------------------------------------------------------------------------------------------


def names_of(timeline: Timeline, path: str | None = None) -> frozenset[KeyName]:
    """Return the names of every key of a track, or of all of them."""
    return frozenset(
        (track.path, timeline.seconds(key))
        for track in timeline.tracks
        if path in (None, track.path)
        for key in track.keys
    )


def key_at(timeline: Timeline, name: KeyName) -> Key | None:
    """Return the key of a name; None if it is gone."""
    track = timeline.track(name[0])
    return None if track is None else next((key for key in track.keys if timeline.seconds(key) == name[1]), None)


def usual_easing(path: str) -> Easing:
    """Return the easing of a new key: values that cannot be between two others hold."""
    if path == STATE:
        return SMOOTH
    return HOLD if parameter(path).kind in _STEPPED else SMOOTH


def with_key(timeline: Timeline, path: str, t: Fraction, value: Any, easing: Easing | None = None) -> Timeline:
    """Return the timeline with a key at a time in seconds; it replaces a key at that time.

    A key that is replaced keeps its easing unless one is given. A track that is missing is added. While keys snap to
    beats, new ones count in beats.

    Raises
    ------
    TimelineError
        If the timeline would have too many keys, or one after the longest time.
    """
    track = timeline.track(path) or Track(path)
    former = key_at(timeline, (path, t))
    chosen = easing or (former.easing if former is not None else usual_easing(path))
    is_beat = former.is_beat if former is not None else timeline.snap == "beat"
    value = as_still(value) if path == STATE else value
    key = _placed(timeline, Key(t, value, chosen), t, is_beat=is_beat)
    longer = _until(timeline, _within_limit(t))
    return with_track(longer, _with_keys(timeline, track, (*track.keys, key)))


def without_keys(timeline: Timeline, names: Collection[KeyName]) -> Timeline:
    """Return the timeline without keys; their tracks stay."""
    return _each_track(timeline, names, lambda track, chosen: [key for key in track.keys if key not in chosen])


def moved_keys(
    timeline: Timeline, names: Collection[KeyName], by: Fraction, *, raised: float = 0.0
) -> tuple[Timeline, frozenset[KeyName]]:
    """Return the timeline with keys moved, and the keys' new names; a key that they land on is replaced.

    Parameters
    ----------
    by
        Seconds. The keys keep their distances; the first does not go before 0, nor the last after `MAX_SECONDS`.
    raised
        Added to numbers, which stay in their range.
    """
    first, last = span_of(names)
    by = max(min(by, max(MAX_SECONDS - last, Fraction(0))), -first)
    return _moved(timeline, names, lambda t: t + by, raised)


def stretched_keys(
    timeline: Timeline, names: Collection[KeyName], pivot: Fraction, factor: Fraction
) -> tuple[Timeline, frozenset[KeyName]]:
    """Return the timeline with keys moved away from a pivot by a factor above 0, and the keys' new names.

    The factor is smaller where keys would come after `MAX_SECONDS`.
    """
    _, last = span_of(names)
    if last > pivot:
        factor = min(factor, max((MAX_SECONDS - pivot) / (last - pivot), Fraction(1)))
    return _moved(timeline, names, lambda t: max(Fraction(0), pivot + (t - pivot) * factor), 0.0)


def eased_keys(timeline: Timeline, names: Collection[KeyName], easing: Easing) -> Timeline:
    """Return the timeline with another easing for the way that begins at each key."""
    return _each_track(
        timeline,
        names,
        lambda track, chosen: [replace(key, easing=easing) if key in chosen else key for key in track.keys],
    )


def span_of(names: Collection[KeyName]) -> tuple[Fraction, Fraction]:
    """Return the first and the last second of keys; 0 and 0 of none."""
    times = [t for _, t in names] or [Fraction(0)]
    return min(times), max(times)


def copied_keys(timeline: Timeline, names: Collection[KeyName]) -> Clip:
    """Return keys for `pasted_keys`, their times counted from the first of them."""
    first = min((t for _, t in names), default=Fraction(0))
    return tuple(
        (track.path, replace(key, time=timeline.seconds(key) - first, is_beat=False))
        for track in timeline.tracks
        for key in track.keys
        if (track.path, timeline.seconds(key)) in names
    )


def pasted_keys(timeline: Timeline, clip: Clip, t: Fraction) -> tuple[Timeline, frozenset[KeyName]]:
    """Return the timeline with copied keys from a time in seconds on, and their names.

    While keys snap to beats, pasted ones count in beats.

    Raises
    ------
    TimelineError
        As `with_key`.
    """
    by_track: dict[str, list[Key]] = {}
    for path, key in clip:
        placed = _placed(timeline, key, key.time + t, is_beat=timeline.snap == "beat")
        by_track.setdefault(path, []).append(placed)
    names = frozenset((path, timeline.seconds(key)) for path, keys in by_track.items() for key in keys)
    pasted = timeline
    for path, keys in by_track.items():
        track = pasted.track(path) or Track(path)
        longer = _until(pasted, _within_limit(max(timeline.seconds(key) for key in keys)))
        pasted = with_track(longer, _with_keys(timeline, track, (*track.keys, *keys)))
    return pasted, names


def retargeted(clip: Clip, path: str) -> Clip:
    """Return the copied keys of one track of numbers as keys of another track of numbers, within its range.

    The result is empty if they are of several tracks, or if either track has other values than numbers.
    """
    paths = {source for source, _ in clip}
    if len(paths) != 1 or not {*paths, path}.isdisjoint((STATE, WALK)):
        return ()
    numbers = ("number", "angle", "integer")
    target, sources = parameter(path), [parameter(source) for source in paths]
    if target.kind not in numbers or any(source.kind not in numbers for source in sources):
        return ()
    return tuple((path, replace(key, value=target.clamped(key.value))) for _, key in clip)


def with_grid(timeline: Timeline, grid: BeatGrid) -> Timeline:
    """Return the timeline on another grid of beats; keys that count in beats move with it, and its end makes room.

    Raises
    ------
    TimelineError
        If keys that play would come after the longest time.
    """
    changed = replace(timeline, grid=grid)
    changed = replace(changed, tracks=tuple(_with_keys(changed, track, track.keys) for track in timeline.tracks))
    inside = (
        changed.seconds(key)
        for track in timeline.tracks
        for key in track.keys
        if key.is_beat and timeline.seconds(key) <= timeline.end
    )
    return _until(changed, _within_limit(max(inside, default=timeline.end)))


def counted_in(timeline: Timeline, names: Collection[KeyName], *, is_beat: bool) -> Timeline:
    """Return the timeline with the times of keys counted in beats or in seconds; nothing moves."""

    def recounted(key: Key) -> Key:
        return key if key.is_beat == is_beat else _placed(timeline, key, timeline.seconds(key), is_beat=is_beat)

    return _each_track(
        timeline, names, lambda track, chosen: [recounted(key) if key in chosen else key for key in track.keys]
    )


def snapped(timeline: Timeline, t: Fraction) -> Fraction:
    """Return the time of the frame or of the quarter beat that is nearest to a time, as the timeline snaps."""
    match timeline.snap:
        case "frame":
            return round(t * timeline.fps) / timeline.fps
        case "beat":
            return max(Fraction(0), timeline.grid.seconds(Fraction(round(timeline.grid.beat(t) * 4), 4)))
        case _:
            return t


def with_state(timeline: Timeline, session: Session, t: Fraction) -> Timeline:
    """Return the timeline with a key that keeps the whole picture at a time in seconds.

    Tracks of single parameters would still change what the key holds, so each track with keys gets a key too. Walks and
    loops of the noise go on.
    """
    kept = with_key(timeline, STATE, t, session)
    for track in timeline.tracks:
        goes_on = track.path in (STATE, WALK) or (track.path == NOISE_LOOP and track.outside == "loop")
        if track.keys and not goes_on:
            kept = with_key(kept, track.path, t, _kept_of(session, track.path))
    return kept


def with_loop_closed(timeline: Timeline, session: Session) -> Timeline:
    """Return the timeline whose tracks have, at the end of what plays, the values that they have at its start.

    A track that stands still stays as it is. A walk, and a track that repeats, get the nearest period that goes into
    what plays; if that is one round from end to end, the last key gets the value of the first one.
    """
    first, last = timeline.playing_range
    for track in timeline.tracks:
        if track.path == WALK:
            rounds = max(1, round((last - first) / track.period))
            timeline = with_track(timeline, replace(track, period=(last - first) / rounds))
        elif any(key.value != track.keys[0].value for key in track.keys) and not _is_full_turn(timeline, track):
            value = _value_of(timeline, track, session, first)
            arriving = _within(timeline, track)
            if _is_near(value, _value_of(with_track(timeline, arriving), arriving, session, last)):
                continue
            repeats = track.outside != "hold" and not _covers(timeline, track, first, last)
            fitted = _with_whole_rounds(timeline, track) if repeats else None
            if repeats and fitted is None:
                timeline = with_key(timeline, track.path, first, value)
            timeline = fitted or with_key(timeline, track.path, last, value)
    return timeline


def _within(timeline: Timeline, track: Track) -> Track:
    """Return a track that comes to its last key where what plays ends, unless it begins again within it too."""
    first, last = (float(t) for t in timeline.playing_range)
    return track if repeats_alike(timeline, track, first, last) else ending(timeline, track, last)


def _covers(timeline: Timeline, track: Track, first: Fraction, last: Fraction) -> bool:
    """Return whether a track has keys at or before a stretch and at or after it, so that nothing repeats in it."""
    return timeline.seconds(track.keys[0]) <= first and last <= timeline.seconds(track.keys[-1])


def _with_whole_rounds(timeline: Timeline, track: Track) -> Timeline | None:
    """Return the timeline with the keys of a repeating track stretched so that whole rounds fill what plays.

    The value at the start of what plays stays. None if the keys would go beyond the timeline: a key at the end of what
    plays would make the repeated part longer, so one at its start is needed too.
    """
    first, last = timeline.playing_range
    times = [timeline.seconds(key) for key in track.keys]
    length = times[-1] - times[0]
    period = length * 2 if track.outside == "mirror" else length
    fitted = (last - first) / max(1, round((last - first) / period))
    factor = fitted / period
    start = first - (first - times[0]) % period * factor
    start += fitted * round((times[0] - start) / fitted)
    while start < 0:
        start += fitted
    while start + length * factor > timeline.end:
        start -= fitted
    if start < 0:
        return None
    moved = tuple(
        _placed(timeline, key, start + (t - times[0]) * factor, is_beat=key.is_beat)
        for key, t in zip(track.keys, times, strict=True)
    )
    fitted_track = replace(track, keys=moved)
    if _within(timeline, fitted_track) is not fitted_track:
        fitted_track = replace(track, keys=(*moved[:-1], replace(moved[-1], value=moved[0].value)))
    return with_track(timeline, fitted_track)


def _is_full_turn(timeline: Timeline, track: Track) -> bool:
    """Return whether an angle ends where it began, after whole turns."""
    if track.path == STATE or parameter(track.path).kind != "angle":
        return False
    arriving = with_track(timeline, _within(timeline, track))
    first, last = timeline.playing_range
    start, end = value_at(timeline, track.path, float(first)), value_at(arriving, track.path, float(last))
    return abs(math.remainder(end - start, 360.0)) < 1e-6


def _is_near(first: Any, second: Any) -> bool:
    """Return whether two values are the same, of numbers but for rounding."""
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, abs_tol=1e-9)
    return bool(first == second)


def _value_of(timeline: Timeline, track: Track, session: Session, t: Fraction) -> Any:
    """Return a track's value at a time; a key's own, which a spline takes for the same place."""
    if track.outside == "hold" and t <= timeline.seconds(track.keys[0]):
        return track.keys[0].value
    if track.path == STATE:
        return track_session(replace(session, timeline=timeline), track, float(t))
    return value_at(timeline, track.path, float(t))


def with_parameter_key(timeline: Timeline, session: Session, path: str, t: Fraction) -> Timeline:
    """Return the timeline with a key of a parameter's present value."""
    return with_key(timeline, path, t, _kept_of(session, path))


def with_recorded(timeline: Timeline, path: str, points: Iterable[tuple[Fraction, Any, Easing]]) -> Timeline:
    """Return the timeline with a recorded take: times, values and easings that replace the keys of that stretch."""
    taken = [(max(Fraction(0), t), value, easing) for t, value, easing in points]
    if not taken:
        return timeline
    first, last = taken[0][0], taken[-1][0]
    track = timeline.track(path) or Track(path)
    kept = [key for key in track.keys if not first <= timeline.seconds(key) <= last]
    keys = [Key(t, value, easing) for t, value, easing in taken]
    longer = _until(timeline, last)
    return with_track(longer, _with_keys(timeline, track, (*kept, *keys)))


# -- inside -------------------------------------------------------------------------------------------------------


def _until(timeline: Timeline, t: Fraction) -> Timeline:
    """Return the timeline at least as long as to a time; keys beyond the longest one do not play."""
    if t.denominator > _MAX_DENOMINATOR:
        t = Fraction(math.ceil(t * 1000), 1000)
    return replace(timeline, end=max(timeline.end, min(t, Fraction(MAX_SECONDS))))


def _within_limit(t: Fraction) -> Fraction:
    if t > MAX_SECONDS:
        raise TimelineError("A timeline is at most a day long, but keys would come after that.")
    return t


def _with_keys(timeline: Timeline, track: Track, keys: Iterable[Key]) -> Track:
    """Return a track with these keys in the order of their times; of two at one time the later in the list stays."""
    by_time = {timeline.seconds(key): key for key in keys}
    return replace(track, keys=tuple(by_time[t] for t in sorted(by_time)))


def _each_track(
    timeline: Timeline, names: Collection[KeyName], change: Callable[[Track, Collection[Key]], Iterable[Key]]
) -> Timeline:
    """Return the timeline with the keys of the tracks that have chosen ones replaced."""
    chosen = _by_track(names)
    tracks = []
    for track in timeline.tracks:
        times = chosen.get(track.path)
        if times:
            keys = [key for key in track.keys if timeline.seconds(key) in times]
            track = _with_keys(timeline, track, change(track, keys))
        tracks.append(track)
    return replace(timeline, tracks=tuple(tracks))


def _by_track(names: Collection[KeyName]) -> Mapping[str, set[Fraction]]:
    found: dict[str, set[Fraction]] = {}
    for path, t in names:
        found.setdefault(path, set()).add(t)
    return found


def _moved(
    timeline: Timeline, names: Collection[KeyName], place: Callable[[Fraction], Fraction], raised: float
) -> tuple[Timeline, frozenset[KeyName]]:
    chosen = _by_track(names)
    tracks, moved_names, end = [], set(), timeline.end
    for track in timeline.tracks:
        times = chosen.get(track.path)
        if times:
            row = parameter(track.path) if raised and track.path != STATE else None
            rest, moved = [], []
            for key in track.keys:
                t = timeline.seconds(key)
                if t not in times:
                    rest.append(key)
                    continue
                key_there = _placed(timeline, _raised(key, row, raised), place(t), is_beat=key.is_beat)
                t = timeline.seconds(key_there)
                end = max(end, t)
                moved_names.add((track.path, t))
                moved.append(key_there)
            track = _with_keys(timeline, track, (*rest, *moved))
        tracks.append(track)
    return _until(replace(timeline, tracks=tuple(tracks)), end), frozenset(moved_names)


def _placed(timeline: Timeline, key: Key, t: Fraction, *, is_beat: bool) -> Key:
    """Return a key at a time in seconds, counted in beats or in seconds; within a nanosecond, and mostly exactly."""
    time = timeline.grid.beat(t) if is_beat else t
    return replace(key, time=time.limit_denominator(_MAX_DENOMINATOR), is_beat=is_beat)


def _raised(key: Key, row: Parameter | None, by: float) -> Key:
    if row is None or row.kind not in ("number", "angle", "integer") or key.value is None:
        return key
    return replace(key, value=row.clamped(key.value + by))


def between_value(timeline: Timeline, path: str, session: Session, t: Fraction) -> Any:
    """Return the value of a new key that moves nothing: that of the curve at the time, else the session's."""
    value = value_at(timeline, path, float(t))
    return _kept_of(session, path) if value is None else value


def _kept_of(session: Session, path: str) -> Any:
    """Return what a key keeps of a parameter: of a latent that is not pinned, that of the seed plane."""
    row = parameter(path)
    value = row.read(session)
    return value or resolve_blend(replace(session, sliders=(), mix=())) if row.kind == "latent" else value
