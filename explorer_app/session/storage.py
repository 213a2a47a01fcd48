"""Sessions as files: a zip with JSON and stored latents, written whole or not at all.

::

    session.json            {"format": "latent-loom-session", ...,                          session_json.py
                             "history": {"position": 3, "steps": [[label, session], ...],   the newest steps of undo
                                         "timelines": [0, ...],                     the timeline of each,
                                         "patches": [0, ...],                       its patches,
                                         "times": [0.0, ...]},                      and its playhead, null if unknown
                             "kept": [[label, session, when, tags], ...],   what was kept, seconds since 1970
                             "tracks": [...], "timelines": [...],       timelines of the session and of the steps,
                             "timeline": 0,                             each track once; the session's timeline
                             "patch_tables": [...], "patches": 0,       patches likewise: `patch_table.py`
                             "export": {"export.format": "png", ...}}   choices of the export dialog
    latents.safetensors     digest -> (num_ws, w_dim) float32, if the sessions use any stored latents

A file that is JSON alone, as earlier versions wrote it, opens too.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer_app.session.history import MAX_TAG, MAX_TAGS, KeptSession, Tags
from explorer_app.session.patch_table import Patches
from explorer_app.session.session import Session, as_still
from explorer_app.session.session_json import (
    SessionFileError as SessionFileError,
    read_mapping,
    read_text,
    session_from_json,
    session_to_json,
    stored_of,
)
from explorer_app.session.timeline.timeline_json import stored_of_tracks, track_bytes
from explorer_app.session.timeline.track_pool import TrackPool, read_patch_tables, read_timelines, steps_that_fit
from explorer_app.session.tracks import MAX_SECONDS, Timeline
from gpu_backend import (
    MASK_SIDE,
    MAX_KEPT,
    MAX_STEPS,
    MAX_STORED_NBYTES,
    MAX_TEXT,
    SESSION_LIMITS,
    LimitError,
    LoomError,
    PictureMask,
    StoredPart,
    check_json_size,
    check_same,
    dataclass,
    parse_json,
    read_member,
    read_regular_file,
    write_whole,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_JSON_NAME, _LATENTS_NAME = "session.json", "latents.safetensors"

_MAX_TENSORS_NBYTES = MAX_STORED_NBYTES + (8 << 20)
"""Of the stored latents with their header, which has about 140 bytes for each."""

EXPORT_CHOICE = "export."
"""What the names of the export dialog's choices begin with in the settings."""

MAX_EXPORT_CHOICES = 64

_NO_CHOICES: Mapping[str, str] = {}

LabelledSessions = tuple[tuple[Session, str], ...]
"""(session, label) pairs."""

MOST_KEPT = f"{MAX_KEPT:,} pictures or {MAX_STORED_NBYTES >> 20} MB of their stored latents and masks"
"""How much a file of kept sessions holds, in words."""

KeptSessions = tuple[KeptSession, ...]
"""What was kept, in the order that the user gave it."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """What a `.loom` file holds.

    Attributes
    ----------
    kept
        What was kept, in the order that the user gave it.
    steps
        The history, oldest step first.
    position
        Index in `steps` of the session's step; -1 without steps.
    export
        Choices of the export dialog, as the settings hold them.
    time_s
        Where the playhead was, in seconds.
    step_times
        Where it was at each step; None where that is not known.
    """

    session: Session
    kept: KeptSessions = ()
    steps: LabelledSessions = ()
    position: int = -1
    export: Mapping[str, str] = field(default_factory=dict)
    time_s: float = 0.0
    step_times: tuple[float | None, ...] = ()


def kept_that_fit(kept: Sequence[Session], added: Sequence[KeptSession]) -> KeptSessions:
    """Return the first of some sessions, as far as a file has room for them beside the kept ones."""
    parts: dict[str, StoredPart] | None = None
    nbytes = 0
    for index, item in enumerate(added[: max(0, MAX_KEPT - len(kept))]):
        new = stored_of((item.session,))
        if new and parts is None:  # few sessions have any
            parts = stored_of(kept)
            nbytes = _nbytes_of(parts.values())
        if new and parts is not None:
            nbytes += _nbytes_of(part for digest, part in new.items() if digest not in parts)
            parts.update(new)
            if nbytes > MAX_STORED_NBYTES:
                return tuple(added[:index])
    return tuple(added[: max(0, MAX_KEPT - len(kept))])


def save_session(
    path: Path,
    session: Session,
    kept: Sequence[KeptSession] = (),
    steps: Sequence[tuple[Session, str]] = (),
    position: int = -1,
    export: Mapping[str, str] = _NO_CHOICES,
    time_s: float = 0.0,
    step_times: Sequence[float | None] = (),
) -> None:
    """Write a session, its history, what was kept and the playhead's times to a `.loom` file in one atomic move.

    Every session is read back before it is written, and the file before it replaces a former one, so that no file is
    replaced by one that cannot be opened.

    Raises
    ------
    OSError
        If the system refuses; a former file is then untouched.
    SessionFileError
        If there is more than the reader allows; a former file is then untouched.
    """
    pool = TrackPool()
    timeline, patches = pool.number(session.timeline), pool.patch_number(session.patches)
    first, last = steps_that_fit(steps, position, pool)
    steps, position = steps[first:last], position - first if steps else position
    step_times = step_times[first:last]
    everything = (session, *(item.session for item in kept), *(step for step, _ in steps))
    stored = {**stored_of(everything), **stored_of_tracks(pool.tracks)}
    text = session_bytes(as_still(session))
    if timeline is not None:
        text = _with_part(text, b'"timeline":%d' % timeline)
    if patches is not None:
        text = _with_part(text, b'"patches":%d' % patches)
    if steps:
        history = b'"position":%d,"steps":[%b]' % (position, _labelled_bytes(steps))
        if pool.timelines:
            numbers = json.dumps([pool.number(step.timeline) for step, _ in steps]).encode()
            history += b',"timelines":' + numbers
        if pool.patch_tables:
            history += b',"patches":' + json.dumps([pool.patch_number(step.patches) for step, _ in steps]).encode()
        if any(time_s is not None for time_s in step_times):
            history += b',"times":' + json.dumps([_time_of_step(time_s) for time_s in step_times]).encode()
        text = _with_part(text, b'"history":{%b}' % history)
    if pool.timelines:
        text = _with_part(text, b'"tracks":[%b]' % b",".join(track_bytes(track) for track in pool.tracks))
        text = _with_part(text, b'"timelines":[%b]' % b",".join(pool.timelines))
    if pool.patch_tables:
        text = _with_part(text, b'"patch_tables":[%b]' % b",".join(pool.patch_tables))
    if kept:
        text = _with_part(text, b'"kept":[%b]' % _kept_bytes(kept))
    if export:
        choices = _export({"export": export})
        text = _with_part(text, b'"export":' + json.dumps(dict(sorted(choices.items()))).encode())
    if time_s:
        text = _with_part(text, b'"time":' + json.dumps(_time({"time": time_s})).encode())
    if len(kept) > MAX_KEPT or len(steps) > MAX_STEPS:
        raise SessionFileError(f"A session file holds up to {MAX_KEPT:,} kept sessions and {MAX_STEPS} steps.")
    try:
        check_json_size(text, SESSION_LIMITS, "a session")
    except LimitError as error:
        raise SessionFileError(error.sentence, error.details) from error
    content = _zipped(text, stored)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content, check=lambda written: check_same(written, content))


@lru_cache(maxsize=12_000)
def session_bytes(session: Session) -> bytes:
    """Return a session as JSON that was read back, encoded once: steps of the history are written again and again.

    Raises
    ------
    SessionFileError
        If the session could not be read again.
    """
    text = json.dumps(session_to_json(session), separators=(",", ":"), allow_nan=False).encode()
    session_from_json(json.loads(text), stored_of((session,)))
    return text


def _labelled_bytes(sessions: Sequence[tuple[Session, str]]) -> bytes:
    return b",".join(
        b"[%b,%b]" % (json.dumps(label[:MAX_TEXT]).encode(), session_bytes(as_still(session)))
        for session, label in sessions
    )


def _kept_bytes(kept: Sequence[KeptSession]) -> bytes:
    return b",".join(
        b"[%b,%b,%.3f%b]"
        % (
            json.dumps(item.label[:MAX_TEXT]).encode(),
            session_bytes(as_still(item.session)),
            item.kept_s,
            b"," + json.dumps(_checked_tags(list(item.tags))).encode() if item.tags else b"",
        )
        for item in kept
    )


def _with_part(text: bytes, part: bytes) -> bytes:
    """Return a JSON object with one more field."""
    return text[:-1] + b"," + part + b"}"


def _zipped(text: bytes, stored: Mapping[str, StoredPart]) -> bytes:
    """Return the zip of a session's JSON and its stored parts; the same session gives the same bytes."""
    nbytes = _nbytes_of(stored.values())
    if nbytes > MAX_STORED_NBYTES:
        raise SessionFileError(
            f"A session holds up to {MAX_STORED_NBYTES >> 20} MB of stored latents and masks, but these are "
            f"{nbytes >> 20} MB."
        )
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_entry(_JSON_NAME), text)
        if stored:
            tensors = _tensors(stored)
            if len(tensors) > _MAX_TENSORS_NBYTES:
                raise SessionFileError(f"A session holds fewer stored latents and masks than these {len(stored):,}.")
            archive.writestr(_entry(_LATENTS_NAME), tensors)
    return target.getvalue()


def _nbytes_of(parts: Iterable[StoredPart]) -> int:
    return sum(len(part.values if isinstance(part, PictureMask) else part.rows) for part in parts)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # of 1980: a time would give equal sessions different bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _tensors(stored: Mapping[str, StoredPart]) -> bytes:
    """Return stored parts as a safetensors file: latents as float32, masks as uint8."""
    # Imported here, as below: few sessions have any, and NumPy would delay the window.
    import numpy as np
    import safetensors.numpy

    def array(part: StoredPart) -> NDArray[np.float32] | NDArray[np.uint8]:
        if isinstance(part, PictureMask):
            return np.frombuffer(part.values, np.uint8).reshape(MASK_SIDE, MASK_SIDE)
        return part.to_array()

    return safetensors.numpy.save({digest: array(part) for digest, part in sorted(stored.items())})


def _stored(tensors: bytes) -> dict[str, StoredPart]:
    """Return the stored parts of a safetensors file.

    Raises
    ------
    LoomError
        If the file or one of its parts is damaged.
    """
    import numpy as np
    import safetensors.numpy
    from safetensors import SafetensorError

    from gpu_backend import stored_latent

    try:
        arrays = safetensors.numpy.load(tensors)
    except SafetensorError as error:
        raise LoomError("The stored latents are damaged.", str(error)) from error
    stored: dict[str, StoredPart] = {
        digest: PictureMask(array.tobytes()) if array.dtype == np.uint8 else stored_latent(array)
        for digest, array in arrays.items()
    }
    if any(latent.digest != digest for digest, latent in stored.items()):
        raise LoomError("A stored latent or mask is damaged: it does not match its SHA-256.")
    return stored


def _unzipped(content: bytes, name: str) -> tuple[bytes, dict[str, StoredPart]]:
    """Return JSON and stored latents of a file; one that is no zip is JSON alone. Raises SessionFileError."""
    if not content.startswith(b"PK\x03\x04"):
        return content, {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            text = _member(archive, _JSON_NAME, SESSION_LIMITS.nbytes)
            has_latents = _LATENTS_NAME in archive.namelist()
            tensors = _member(archive, _LATENTS_NAME, _MAX_TENSORS_NBYTES) if has_latents else b""
        stored = _stored(tensors) if tensors else {}
    except LoomError as error:
        raise SessionFileError(f"{name}: {error.sentence}", error.details) from error
    except (ValueError, KeyError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise SessionFileError(f"{name} should be a session, but is damaged.", str(error)) from error
    return text, stored


def _member(archive: zipfile.ZipFile, name: str, max_nbytes: int) -> bytes:
    data = read_member(archive, name, max_nbytes + 1)
    if len(data) > max_nbytes:
        raise LimitError(f"{name} holds at most {max_nbytes >> 20} MB, but this one is larger.")
    return data


def load_session(path: Path) -> Session:
    """Return the session of a `.loom` file. Raises SessionFileError."""
    return load_session_file(path).session


def load_session_file(path: Path) -> SessionFile:
    """Return the session of a `.loom` file and what was kept in it.

    Raises
    ------
    SessionFileError
        If the file cannot be read or is no session; the sentence says what was found instead.
    """
    try:
        content = read_regular_file(path, SESSION_LIMITS.nbytes + _MAX_TENSORS_NBYTES, "a session")
        return file_of_bytes(content, path.name)
    except OSError as error:
        raise SessionFileError(f"The session {path} cannot be read ({error.strerror}).", str(error)) from error
    except LimitError as error:
        raise SessionFileError(error.sentence, error.details) from error


def file_of_bytes(content: bytes, name: str) -> SessionFile:
    """Return what the bytes of a `.loom` file hold; `name` is the file's, for errors. Raises SessionFileError."""
    text, stored = _unzipped(content, name)
    try:
        data = parse_json(_without_zero_strengths(text), SESSION_LIMITS, "a session")
    except LimitError as error:
        raise SessionFileError(f"{name}: {error.sentence}", error.details) from error
    except ValueError as error:
        raise SessionFileError(f"{name} should be a session in JSON, but is something else.", str(error)) from error
    try:
        session = session_from_json(data, stored)
        timelines = read_timelines(data.get("tracks", []), data.get("timelines", []), stored)
        tables = read_patch_tables(data.get("patch_tables", []))
        session = _with_project(session, data.get("timeline"), data.get("patches"), timelines, tables)
        history, position = _history(data)
        steps = _labelled(history, stored)
        of_steps = (_step_numbers(data, "timelines", len(steps)), _step_numbers(data, "patches", len(steps)))
        steps = tuple(
            (_with_project(step, *numbers, timelines, tables), label)
            for (step, label), numbers in zip(steps, zip(*of_steps, strict=True), strict=True)
        )
        times = tuple(_time_of_step(time_s) for time_s in _step_numbers(data, "times", len(steps)))
        kept = _kept(data.get("kept", []), stored)
        return SessionFile(session, kept, steps, min(position, len(steps) - 1), _export(data), _time(data), times)
    except SessionFileError as error:
        raise SessionFileError(f"{name}: {error.sentence}", error.details) from error


def _export(data: Mapping[str, Any]) -> Mapping[str, str]:
    """Read the choices of the export dialog. Raises SessionFileError."""
    choices = read_mapping(data.get("export", {}), "export choices")
    if len(choices) > MAX_EXPORT_CHOICES:
        raise SessionFileError(f"A session file holds up to {MAX_EXPORT_CHOICES} export choices.")
    for key, value in choices.items():
        if not read_text(key, "name of an export choice").startswith(EXPORT_CHOICE):
            raise SessionFileError(f"An export choice should begin with {EXPORT_CHOICE!r}, but is {key[:40]!r}.")
        read_text(value, "export choice")
    return dict(choices)


def _time(data: Mapping[str, Any]) -> float:
    """Read the playhead's time in seconds. Raises SessionFileError."""
    return _seconds(data.get("time", 0.0))


def _time_of_step(time_s: object) -> float | None:
    """Read the playhead's time at a step, in seconds; None is not known. Raises SessionFileError."""
    return None if time_s is None else _seconds(time_s)


def _seconds(time_s: object) -> float:
    if isinstance(time_s, bool) or not isinstance(time_s, int | float) or not 0.0 <= time_s <= MAX_SECONDS:
        raise SessionFileError("The time of the playhead must be a number of seconds of a day, but is not.")
    return float(time_s)


def _step_numbers(data: Mapping[str, Any], name: str, count: int) -> list[object]:
    """Return the number of each step's timeline, table of patches or time; None where the file has none."""
    numbers = _list(data.get("history", {}).get(name, []), f"{name} of the steps", MAX_STEPS)
    if numbers and len(numbers) != count:
        raise SessionFileError(f"The history must have {name} for each step, but does not.")
    return numbers or [None] * count


def _with_project(
    session: Session, timeline: object, patches: object, timelines: Sequence[Timeline], tables: Sequence[Patches]
) -> Session:
    """Return a session with the timeline and the patches of these numbers."""
    if timeline is not None:
        session = replace(session, timeline=timelines[_number(timeline, "timeline", len(timelines))])
    if patches is not None:
        session = replace(session, patches=tables[_number(patches, "patches", len(tables))])
    return session


def _number(number: object, what: str, count: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < count:
        raise SessionFileError(f"The session's {what} must refer to the file's tables, but does not.")
    return number


def _without_zero_strengths(text: bytes) -> bytes:
    """Return a session's text, with rows of zeros written as empty lists if it holds more values than it may.

    Former versions nested every kept source in all later ones, mostly at strength 0. Missing strengths count as 0.
    """
    try:
        check_json_size(text, SESSION_LIMITS, "a session")
    except LimitError:
        return re.sub(rb"(?<=},)\[0\.0(?:,0\.0)*\]", b"[]", text)
    return text


def _labelled(data: object, stored: Mapping[str, StoredPart]) -> LabelledSessions:
    """Read the steps of a history."""
    return tuple((_session(item, 2, stored), item[0]) for item in _list(data, "steps", MAX_STEPS))


def _kept(data: object, stored: Mapping[str, StoredPart]) -> KeptSessions:
    """Read what was kept; former versions did not say when, and had no tags."""
    kept = []
    for item in _list(data, "kept sessions", MAX_KEPT):
        session = _session(item, 4, stored)
        when = item[2] if len(item) >= 3 else 0.0
        if isinstance(when, bool) or not isinstance(when, int | float) or not abs(when) <= sys.float_info.max:
            raise SessionFileError("The time of a kept session must be a number, but is not.")
        kept.append(KeptSession(session, item[0], float(when), _checked_tags(item[3]) if len(item) == 4 else ()))
    return tuple(kept)


def _checked_tags(tags: object) -> Tags:
    if (
        not isinstance(tags, list)
        or len(tags) > MAX_TAGS
        or not all(isinstance(tag, str) and 0 < len(tag) <= MAX_TAG for tag in tags)
    ):
        raise SessionFileError(f"A kept session has up to {MAX_TAGS} tags of up to {MAX_TAG} letters each.")
    return tuple(tags)


def _session(item: Any, most: int, stored: Mapping[str, StoredPart]) -> Session:
    """Read [label, session] with up to `most` items in all."""
    if not isinstance(item, list) or not 2 <= len(item) <= most:
        raise SessionFileError("Each step and each kept session must be a list with a label and a session.")
    if not isinstance(item[0], str) or len(item[0]) > MAX_TEXT:
        raise SessionFileError(f"A label must be a text of at most {MAX_TEXT} letters, but one is not.")
    return session_from_json(item[1], stored)


def _history(data: Mapping[str, Any]) -> tuple[object, int]:
    """Return the steps of the history as JSON, and the position among them."""
    history = data.get("history", {})
    position = history.get("position", -1) if isinstance(history, Mapping) else None
    if isinstance(position, bool) or not isinstance(position, int) or not -1 <= position < MAX_STEPS:
        raise SessionFileError("The history must be an object with steps and a position, but is not.")
    return history.get("steps", []), position


def _list(data: object, what: str, most: int) -> list[Any]:
    if not isinstance(data, list):
        raise SessionFileError(f"The {what} must be a list, but are {type(data).__name__}.")
    if len(data) > most:
        raise SessionFileError(f"The {what} may be {most:,}, but are {len(data):,}.")
    return data
