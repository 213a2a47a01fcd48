"""Timelines as JSON, read field by field.

::

    track      {"path": "truncation.psi", "outside": "hold", "way": "w-cubic", "muted": false,
                "period": [10, 1], "radius": 0.25, "seed": 0, "keys": [key, ...]}
    key        [numerator, denominator, value, easing], and true at the end if the time counts beats
    easing     "smooth" and so on; four numbers for the handles of a Bezier curve
    sound      {"name": "drums", "sha256": "…", "path": "sounds/drums.wav", "seconds": 10.5, "start": [0, 1],
                "gain": 0, "muted": false}
    timeline   {"fps": [30, 1], "end": [10, 1], "loop": null, ..., "tracks": [number, ...]}

Steps of a history share most of their tracks, so a file holds each track once and timelines name them by number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast, get_args

from explorer_app.session.parameters import Value, parameter
from explorer_app.session.session import Position, Session
from explorer_app.session.session_json import (
    SessionFileError,
    read_integer,
    read_list,
    read_mapping,
    read_number,
    read_pairs,
    read_rows,
    read_text,
    session_from_json,
    session_to_json,
    stored_of,
)
from explorer_app.session.tracks import (
    MAX_KEYS,
    MAX_SECONDS,
    MAX_SOUNDS,
    MAX_TRACKS,
    STATE,
    WALK,
    BeatGrid,
    Easing,
    EasingKind,
    Key,
    Outside,
    Snap,
    Sound,
    Timeline,
    Track,
)
from gpu_backend import (
    SEED_COUNT,
    LoomError,
    PathKind,
    RecipeBudget,
    StoredPart,
    latent_from_json,
    latent_to_json,
    mask_from_text,
    mask_to_text,
    recipe_from_json,
    recipe_to_json,
    stored_in,
    tap_from_json,
    tap_to_json,
)

MAX_FPS = 1000
"""Frames per second of a timeline."""

_MAX_TERM = 1 << 62
"""Largest numerator and denominator of a time."""

Stored = Mapping[str, StoredPart] | None


def track_bytes(track: Track) -> bytes:
    """Return a track as JSON, encoded once: it is written again with every step of the history.

    Raises
    ------
    SessionFileError
        If the track could not be read again.
    """
    text = track.derived.get("json")
    if text is None:
        text = json.dumps(track_to_json(track), separators=(",", ":"), allow_nan=False).encode()
        try:
            track_from_json(json.loads(text), stored_of_tracks((track,)))  # what cannot be read is not written
        except SessionFileError:
            raise
        except LoomError as error:
            raise SessionFileError(error.sentence, error.details) from error
        track.derived["json"] = text
    assert isinstance(text, bytes)
    return text


def track_to_json(track: Track) -> dict[str, Any]:
    """Return a track as JSON-able data."""
    return {
        "path": track.path,
        "outside": track.outside,
        "way": track.way,
        "muted": track.is_muted,
        "period": _terms(track.period),
        "radius": track.radius,
        "seed": track.seed,
        "keys": [_key_to_json(track.path, key) for key in track.keys],
    }


def timeline_to_json(timeline: Timeline, numbers: Sequence[int]) -> dict[str, Any]:
    """Return a timeline as JSON-able data; `numbers` are those of its tracks, in order."""
    return {
        "fps": _terms(timeline.fps),
        "end": _terms(timeline.end),
        "loop": None if timeline.loop is None else [_terms(t) for t in timeline.loop],
        "looping": timeline.is_looping,
        "ping_pong": timeline.is_ping_pong,
        "bpm": _terms(timeline.grid.bpm),
        "offset": _terms(timeline.grid.offset),
        "beats_per_bar": timeline.grid.beats_per_bar,
        "snap": timeline.snap,
        "z_dim": timeline.z_dim,
        "tracks": list(numbers),
        **({"sounds": [_sound_to_json(sound) for sound in timeline.sounds]} if timeline.sounds else {}),
    }


def stored_of_tracks(tracks: Iterable[Track]) -> dict[str, StoredPart]:
    """Return every stored latent that keys use, by digest."""
    found: dict[str, StoredPart] = {}
    for track in tracks:
        if track.path == STATE:
            found.update(stored_of(key.value for key in track.keys))
        elif track.path != WALK and parameter(track.path).kind == "latent":
            found.update(stored_in(recipe.latent for key in track.keys for recipe, _ in key.value))
        elif track.path != WALK and parameter(track.path).kind == "source":
            found.update(stored_in(key.value for key in track.keys))
    return found


def track_from_json(data: object, stored: Stored = None) -> Track:
    """Read what `track_to_json` wrote. Raises SessionFileError, and LoomError of what its values are made of."""
    fields = read_mapping(data, "track")
    path = read_text(fields.get("path"), "track's path")
    if path not in (STATE, WALK):
        parameter(path)
    track = Track(
        path,
        outside=cast("Outside", _choice(fields.get("outside", "hold"), Outside, "track's outside")),
        way=cast("PathKind", _choice(fields.get("way", "w-cubic"), PathKind, "track's way")),
        is_muted=_flag(fields.get("muted", False), "track's mute"),
        period=read_positive(fields.get("period", [10, 1]), "track's period", MAX_SECONDS),
        radius=read_number(fields.get("radius", 0.25), "track's radius"),
        seed=read_integer(fields.get("seed", 0), "track's seed", 0, SEED_COUNT - 1),
    )
    keys = [_key(path, item, stored) for item in read_list(fields.get("keys", []), "track's keys", MAX_KEYS)]
    return replace(track, keys=tuple(keys))


def timeline_from_json(data: object, tracks: Sequence[Track]) -> Timeline:
    """Read what `timeline_to_json` wrote; keys are put in order. Raises SessionFileError."""
    fields = read_mapping(data, "timeline")
    loop = fields.get("loop")
    start_end = None if loop is None else [read_time(item, "loop") for item in read_list(loop, "loop", 2)]
    if start_end is not None and (len(start_end) != 2 or not 0 <= start_end[0] < start_end[1]):
        raise SessionFileError("The loop must be a start and an end after it, but is not.")
    numbers = [
        read_integer(item, "track's number", 0, len(tracks) - 1)
        for item in read_list(fields.get("tracks", []), "timeline's tracks", MAX_TRACKS)
    ]
    grid = BeatGrid(
        read_positive(fields.get("bpm", [120, 1]), "tempo", 10_000),
        read_time(fields.get("offset", [0, 1]), "first beat"),
        read_integer(fields.get("beats_per_bar", 4), "beats in a bar", 1, 64),
    )
    timeline = Timeline(
        fps=read_positive(fields.get("fps", [30, 1]), "frames per second", MAX_FPS),
        end=read_positive(fields.get("end", [10, 1]), "timeline's end", MAX_SECONDS),
        loop=None if start_end is None else (start_end[0], start_end[1]),
        is_looping=_flag(fields.get("looping", True), "timeline's loop"),
        is_ping_pong=_flag(fields.get("ping_pong", False), "timeline's way back"),
        grid=grid,
        snap=cast("Snap", _choice(fields.get("snap", "frame"), Snap, "snapping")),
        z_dim=read_integer(fields.get("z_dim", 512), "length of z", 1, 1 << 16),
        sounds=_sounds(fields.get("sounds", [])),
    )
    chosen = tuple(_in_order(tracks[number], timeline) for number in numbers)
    if len({track.path for track in chosen}) != len(chosen):
        raise SessionFileError("A timeline must have at most one track per parameter, but has two.")
    if sum(len(track.keys) for track in chosen) > MAX_KEYS:
        raise SessionFileError(f"A timeline may have {MAX_KEYS:,} keys, but this one has more.")
    return replace(timeline, tracks=chosen)


def _sound_to_json(sound: Sound) -> dict[str, Any]:
    return {
        "name": sound.name,
        "sha256": sound.digest,
        "path": sound.path,
        "seconds": sound.seconds,
        "start": _terms(sound.start),
        "gain": sound.gain_db,
        "muted": sound.is_muted,
    }


def _sounds(data: object) -> tuple[Sound, ...]:
    sounds = tuple(_sound(item) for item in read_list(data, "sounds", MAX_SOUNDS))
    if len({sound.name for sound in sounds}) != len(sounds):
        raise SessionFileError("The sounds of a timeline must have different names, but two have the same.")
    return sounds


def _sound(data: object) -> Sound:
    fields = read_mapping(data, "sound")
    digest, path = read_text(fields.get("sha256"), "sound's SHA-256"), read_text(fields.get("path"), "sound's path")
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise SessionFileError("A sound's SHA-256 must have 64 hexadecimal digits, but does not.")
    if not path or path.startswith(("/", "\\")) or ":" in path or ".." in path.split("/"):
        raise SessionFileError("A sound's path must lead into the project's folder, but does not.")
    seconds, gain = read_number(fields.get("seconds"), "sound's length"), read_number(fields.get("gain", 0.0), "gain")
    if not 0.0 < seconds <= MAX_SECONDS or not -120.0 <= gain <= 24.0:
        raise SessionFileError("A sound must last up to a day and be amplified by -120..24 dB, but is not.")
    return Sound(
        read_text(fields.get("name"), "sound's name"),
        digest,
        path,
        seconds,
        read_time(fields.get("start", [0, 1]), "sound's start"),
        gain,
        _flag(fields.get("muted", False), "sound's mute"),
    )


def _in_order(track: Track, timeline: Timeline) -> Track:
    """Return a track with its keys in order; the same object if they are, so that steps still share it."""
    times = [timeline.seconds(key) for key in track.keys]
    if all(a < b for a, b in pairwise(times)):
        return track
    by_time = dict(zip(times, track.keys, strict=True))
    return replace(track, keys=tuple(by_time[t] for t in sorted(by_time)))


def _key_to_json(path: str, key: Key) -> list[Any]:
    easing = list(key.easing.handles) if key.easing.kind == "bezier" else key.easing.kind
    data = [*_terms(key.time), _value_to_json(path, key.value), easing]
    return [*data, True] if key.is_beat else data


def _key(path: str, data: object, stored: Stored) -> Key:
    items = read_list(data, "key", 5)
    if len(items) < 4:
        raise SessionFileError("A key must be a time, a value and an easing, but is not.")
    easing = items[3]
    if isinstance(easing, list):
        handles = [read_number(item, "handle") for item in easing]
        if len(handles) != 4:
            raise SessionFileError(f"An easing must have four handle numbers, but has {len(handles)}.")
        made = Easing("bezier", (handles[0], handles[1], handles[2], handles[3]))
    else:
        made = Easing(cast("EasingKind", _choice(easing, EasingKind, "easing")))
    return Key(
        read_time(items[:2], "key's time"), _value(path, items[2], stored), made, len(items) == 5 and items[4] is True
    )


def _value_to_json(path: str, value: Value) -> Any:
    if path == STATE:
        return session_to_json(value)
    match parameter(path).kind:
        case "point":
            return [value.x, value.y]
        case "latent":
            return [[recipe_to_json(recipe), weight] for recipe, weight in value]
        case "weights":
            return [list(pair) for pair in value]
        case "strengths":
            return list(value)
        case "rows":
            return None if value is None else [value.first, value.last]
        case "layer":
            return None if value is None else tap_to_json(value)
        case "source":
            return latent_to_json(value)
        case "mask":
            return None if value is None else mask_to_text(value)
        case _:
            return value


def _value(path: str, data: Any, stored: Stored) -> Value:
    if path == STATE:
        return _state(data, stored)
    row = parameter(path)
    name = f"{row.label.lower()} of a key"
    match row.kind:
        case "number" | "angle":
            return row.clamped(read_number(data, name))
        case "integer":
            return None if data is None and row.default is None else row.clamped(read_number(data, name))
        case "choice":
            return _known_choice(path, read_text(data, name))
        case "point":
            numbers = [read_number(item, name) for item in read_list(data, name, 2)]
            if len(numbers) != 2:
                raise SessionFileError(f"The {name} must be two numbers, but is not.")
            return Position(*numbers)
        case "latent":
            budget = RecipeBudget()
            blend = tuple(
                (recipe_from_json(recipe, budget, stored), read_number(weight, "weight"))
                for recipe, weight in read_pairs(data, name)
            )
            if not blend:
                raise SessionFileError(f"The {name} must hold a recipe, but is empty.")
            return blend
        case "weights":
            return tuple(
                (read_integer(index, "class", 0, 1 << 20), read_number(weight, "class weight"))
                for index, weight in read_pairs(data, name)
            )
        case "strengths":
            return tuple(read_number(item, name) for item in read_list(data, name))
        case "rows":
            return None if data is None else read_rows(data, name)
        case "layer":
            return None if data is None else tap_from_json(data)
        case "source":
            return latent_from_json(data, RecipeBudget(), 1, stored)
        case "flag":
            return _flag(data, name)
        case "mask":
            return None if data is None else mask_from_text(data)
        case "text":
            return read_text(data, name)


def _state(data: Any, stored: Stored) -> Session:
    return session_from_json(data, stored)


def _known_choice(path: str, value: str) -> str:
    """Return a choice that the program knows; the only one so far is the mode of the noise."""
    if path == "noise.mode" and value not in ("none", "const", "random"):
        raise SessionFileError(f"The noise of a key must be 'none', 'const' or 'random', but is {value[:40]!r}.")
    return value


def _terms(value: Fraction) -> list[int]:
    return [value.numerator, value.denominator]


def read_time(data: object, what: str) -> Fraction:
    """Return a rational number, written as numerator and denominator. Raises SessionFileError."""
    terms = read_list(data, what, 2)
    if len(terms) != 2:
        raise SessionFileError(f"The {what} must be a fraction, but is not.")
    value = Fraction(
        read_integer(terms[0], what, -_MAX_TERM, _MAX_TERM),
        read_integer(terms[1], f"denominator of the {what}", 1, _MAX_TERM),
    )
    if abs(value) > MAX_SECONDS * 10_000:
        raise SessionFileError(f"The {what} lies outside of every timeline.")
    return value


def read_positive(data: object, what: str, most: int) -> Fraction:
    """Return a rational number above 0 and up to `most`. Raises SessionFileError."""
    value = read_time(data, what)
    if not 0 < value <= most:
        raise SessionFileError(f"The {what} must be above 0 and at most {most:,}, but is {float(value):g}.")
    return value


def _choice(data: object, choices: Any, what: str) -> str:
    if data not in get_args(choices):
        raise SessionFileError(f"The {what} must be one of {', '.join(get_args(choices))}, but is not.")
    return str(data)


def _flag(data: object, what: str) -> bool:
    if not isinstance(data, bool):
        raise SessionFileError(f"The {what} must be true or false, but is not.")
    return data
