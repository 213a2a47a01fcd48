"""Sessions as files: a versioned JSON document, written whole or not at all, read field by field.

::

    {"format": "latent-loom-session", "version": 1, "model": {...}, "position": [x, y], ...,
     "history": {"position": 3, "steps": [[label, session], ...]},      the newest steps of undo
     "kept": [[label, session, when], ...]}                             sessions that were kept, seconds since 1970
"""

from __future__ import annotations

import errno
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from explorer_app.session.history import KeptSession
from explorer_app.session.session import MAX_SCALE, MIN_SCALE, ModelReference, Position, Session, Slider, Source
from gpu_backend import (
    MAX_ITEMS,
    MAX_KEPT,
    MAX_STEPS,
    MAX_TEXT,
    SESSION_LIMITS,
    LimitError,
    LoomError,
    RecipeBudget,
    RowRange,
    Transform,
    Truncation,
    check_json_size,
    flat_latent,
    latent_from_json,
    latent_to_json,
    noise_from_json,
    noise_to_json,
    parse_json,
    read_regular_file,
    recipe_from_json,
    recipe_to_json,
    spend_latent,
    tap_from_json,
    tap_to_json,
    write_whole,
)

FORMAT = "latent-loom-session"
VERSION = 1

_NESTED_BUDGET = RecipeBudget(seeds=200_000, sources=100_000, directions=200_000, depth=64)
"""What the mix sources of one session may hold before they are flattened: former versions nested them."""


class SessionFileError(LoomError):
    """A session file is missing, damaged, too new, or something else."""


LabelledSessions = tuple[tuple[Session, str], ...]
"""(session, label) pairs."""

KeptSessions = tuple[KeptSession, ...]
"""What was kept, in the order that the person gave it."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """What a `.loom` file holds.

    Attributes
    ----------
    kept
        What was kept, in the order that the person gave it.
    steps
        The history, oldest step first.
    position
        Index in `steps` of the step that the session stands on; -1 without steps.
    """

    session: Session
    kept: KeptSessions = ()
    steps: LabelledSessions = ()
    position: int = -1


def save_session(
    path: Path,
    session: Session,
    kept: Sequence[KeptSession] = (),
    steps: Sequence[tuple[Session, str]] = (),
    position: int = -1,
) -> None:
    """Write a session, its history and what was kept to a `.loom` file in one atomic move.

    Every session is read back before it is written, and the file before it replaces a former one, so that no file is
    replaced by one that cannot be opened.

    Raises
    ------
    OSError
        If the system refuses; a former file is then untouched.
    SessionFileError
        If there is more than the reader allows; a former file is then untouched.
    """
    text = session_bytes(session)
    if steps:
        text = _with_part(text, b'"history":{"position":%d,"steps":[%b]}' % (position, _labelled_bytes(steps)))
    if kept:
        text = _with_part(text, b'"kept":[%b]' % _kept_bytes(kept))
    if len(kept) > MAX_KEPT or len(steps) > MAX_STEPS:
        raise SessionFileError(f"A session file holds up to {MAX_KEPT:,} kept sessions and {MAX_STEPS} steps.")
    try:
        check_json_size(text, SESSION_LIMITS, "a session")
    except LimitError as error:
        raise SessionFileError(error.sentence, error.details) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text, check=lambda written: _check_same(written, text))


@lru_cache(maxsize=12_000)
def session_bytes(session: Session) -> bytes:
    """Return a session as JSON that was read back, encoded once: steps of the history are written again and again.

    Raises
    ------
    SessionFileError
        If the session could not be read again.
    """
    text = json.dumps(session_to_json(session), separators=(",", ":"), allow_nan=False).encode()
    session_from_json(json.loads(text))
    return text


def _labelled_bytes(sessions: Sequence[tuple[Session, str]]) -> bytes:
    return b",".join(
        b"[%b,%b]" % (json.dumps(label[:MAX_TEXT]).encode(), session_bytes(session)) for session, label in sessions
    )


def _kept_bytes(kept: Sequence[KeptSession]) -> bytes:
    return b",".join(
        b"[%b,%b,%b]" % (json.dumps(item.label[:MAX_TEXT]).encode(), session_bytes(item.session), b"%.3f" % item.kept_s)
        for item in kept
    )


def _with_part(text: bytes, part: bytes) -> bytes:
    """Return a JSON object with one more field."""
    return text[:-1] + b"," + part + b"}"


def _check_same(path: Path, text: bytes) -> None:
    if path.read_bytes() != text:
        raise OSError(errno.EIO, "the disk returned other bytes than were written", str(path))


def load_session(path: Path) -> Session:
    """Return the session of a `.loom` file. Raises SessionFileError."""
    return load_session_file(path).session


def load_session_file(path: Path) -> SessionFile:
    """Return the session of a `.loom` file and what was kept in it.

    Raises
    ------
    SessionFileError
        If the file cannot be read or is no session; the sentence says what came instead.
    """
    try:
        return file_of_bytes(read_regular_file(path, SESSION_LIMITS.nbytes, "a session"), path.name)
    except OSError as error:
        raise SessionFileError(f"The session {path} cannot be read ({error.strerror}).", str(error)) from error
    except LimitError as error:
        raise SessionFileError(error.sentence, error.details) from error


def file_of_bytes(text: bytes, name: str) -> SessionFile:
    """Return what the bytes of a `.loom` file hold; `name` is the file's, for errors. Raises SessionFileError."""
    try:
        data = parse_json(_without_zero_strengths(text), SESSION_LIMITS, "a session")
    except LimitError as error:
        raise SessionFileError(f"{name}: {error.sentence}", error.details) from error
    except ValueError as error:
        raise SessionFileError(f"{name} should be a session in JSON, but is something else.", str(error)) from error
    try:
        session = session_from_json(data)
        history = _mapping(data.get("history", {}), "history")
        steps = _labelled(history.get("steps", []), "step", MAX_STEPS)
        position = _integer(history.get("position", -1), "position in the history", -1, MAX_STEPS)
        kept = _kept(data.get("kept", []))
        return SessionFile(session, kept, steps, min(position, len(steps) - 1))
    except SessionFileError as error:
        raise SessionFileError(f"{name}: {error.sentence}", error.details) from error


def _without_zero_strengths(text: bytes) -> bytes:
    """Return a session's text, with rows of zeros written as empty lists if it holds more values than it may.

    Former versions nested every kept source in all later ones, mostly at strength 0. Missing strengths count as 0.
    """
    try:
        check_json_size(text, SESSION_LIMITS, "a session")
    except LimitError:
        return re.sub(rb"(?<=},)\[0\.0(?:,0\.0)*\]", b"[]", text)
    return text


def session_to_json(session: Session) -> dict[str, Any]:
    """Return a session as JSON-able data; empty parts are left out."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": session.model.name, "sha256": session.model.model_id},
        "position": [session.position.x, session.position.y],
        "psi": session.truncation.psi,
        "cutoff": session.truncation.cutoff,
        "noise": noise_to_json(session.noise),
    }
    if session.held:
        data["held"] = [[recipe_to_json(recipe), weight] for recipe, weight in session.held]
    if session.classes:
        data["classes"] = [list(pair) for pair in session.classes]
    if session.sliders:
        data["sliders"] = [
            {
                "direction": item.direction,
                "amount": item.amount,
                "rows": [item.rows.first, item.rows.last],
                "label": item.label,
                "starred": item.starred,
            }
            for item in session.sliders
        ]
    if session.mix:
        data["mix"] = [
            {"latent": latent_to_json(item.latent), "strengths": list(item.strengths), "label": item.label}
            for item in session.mix
        ]
    if session.transform != Transform():
        data["transform"] = asdict(session.transform)
    if session.tap is not None:
        data["tap"] = tap_to_json(session.tap)
    return data


def session_from_json(data: object) -> Session:
    """Read what `session_to_json` wrote; a part that is missing gets its default.

    Raises
    ------
    SessionFileError
        If it is no session, a newer version, or a field is of the wrong type or out of range.
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise SessionFileError(f"A session should say that its format is {FORMAT!r}, but this one does not.")
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise SessionFileError("A session should have a whole version number, but this one has none.")
    if version > VERSION:
        raise SessionFileError(
            f"This session is of version {str(version)[:20]}, but this program reads up to {VERSION}; update it."
        )
    default = Session()
    budget = RecipeBudget()
    try:
        return Session(
            model=_model(data.get("model", {})),
            position=_position(data.get("position", [0.0, 0.0])),
            held=tuple(
                (recipe_from_json(a, budget), _number(b, "weight")) for a, b in _pairs(data.get("held", []), "held")
            ),
            classes=tuple(
                (_integer(a, "class", 0, 1 << 20), _number(b, "class weight"))
                for a, b in _pairs(data.get("classes", []), "classes")
            ),
            truncation=Truncation(
                psi=_number(data.get("psi", default.truncation.psi), "psi"),
                cutoff=_optional_integer(data.get("cutoff"), "cutoff"),
            ),
            noise=noise_from_json(data.get("noise", {})),
            sliders=tuple(_slider(item) for item in _list(data.get("sliders", []), "sliders")),
            mix=_sources(data.get("mix", [])),
            transform=_transform(data.get("transform", {})),
            tap=None if data.get("tap") is None else tap_from_json(data["tap"]),
        )
    except SessionFileError:
        raise
    except LoomError as error:
        raise SessionFileError(f"The session is damaged: {error.sentence}", error.details) from error
    except (OverflowError, RecursionError) as error:
        raise SessionFileError("The session is damaged: it holds a number that is too large.", str(error)) from error


def _labelled(data: object, what: str, limit: int) -> LabelledSessions:
    sessions = []
    for item in _list(data, f"{what}s", limit=limit):
        pair = _list(item, what)
        if len(pair) != 2:
            raise SessionFileError(f"Each {what} must be a label and a session, but one is not.")
        sessions.append((session_from_json(pair[1]), _text(pair[0], "label")))
    return tuple(sessions)


def _kept(data: object) -> KeptSessions:
    """Read what was kept; former versions did not say when."""
    kept = []
    for item in _list(data, "kept sessions", limit=MAX_KEPT):
        fields = _list(item, "kept session")
        if len(fields) not in (2, 3):
            raise SessionFileError("Each kept session must be a label, a session and a time, but one is not.")
        kept_s = _number(fields[2], "time of a kept session") if len(fields) == 3 else 0.0
        kept.append(KeptSession(session_from_json(fields[1]), _text(fields[0], "label"), kept_s))
    return tuple(kept)


def _model(data: object) -> ModelReference:
    fields = _mapping(data, "model")
    return ModelReference(
        name=_text(fields.get("name", ""), "model name"),
        model_id=_text(fields.get("sha256", ""), "model's SHA-256"),
    )


def _position(data: object) -> Position:
    numbers = [_number(item, "position") for item in _list(data, "position")]
    if len(numbers) != 2:
        raise SessionFileError(f"The position must be two numbers, but has {len(numbers)}.")
    return Position(*numbers)


def _slider(data: object) -> Slider:
    fields = _mapping(data, "slider")
    starred = fields.get("starred", False)
    if not isinstance(starred, bool):
        raise SessionFileError("A slider's star must be true or false, but is something else.")
    rows = _list(fields.get("rows", [0, None]), "slider's rows")
    if len(rows) != 2:
        raise SessionFileError("A slider's rows must be a first and a last, but are not.")
    return Slider(
        direction=_text(fields.get("direction"), "slider's direction"),
        amount=_number(fields.get("amount", 0.0), "slider's amount"),
        rows=RowRange(_integer(rows[0], "first row", 0, MAX_ITEMS), _optional_integer(rows[1], "last row")),
        label=_text(fields.get("label", ""), "slider's label"),
        starred=starred,
    )


def _sources(data: object) -> tuple[Source, ...]:
    budget = replace(_NESTED_BUDGET)
    sources = tuple(_source(item, budget) for item in _list(data, "mix"))
    flat = RecipeBudget()
    for source in sources:
        spend_latent(source.latent, flat, 1)
    return sources


def _source(data: object, budget: RecipeBudget) -> Source:
    fields = _mapping(data, "mix source")
    return Source(
        latent=flat_latent(latent_from_json(_used_parts(fields.get("latent", {})), budget, 1)),
        strengths=tuple(_number(item, "strength") for item in _list(fields.get("strengths", []), "strengths")),
        label=_text(fields.get("label", ""), "mix source's label"),
    )


def _used_parts(latent: object) -> object:
    """Return a latent as JSON without the mix sources, on all levels, that have strength 0 in every row.

    Former versions nested kept sources so that n of them stood for 2^n, nearly all of them unused.
    """
    if not isinstance(latent, Mapping) or not isinstance(latent.get("mix"), list):
        return latent
    mix = []
    for item in latent["mix"]:
        if isinstance(item, list) and len(item) == 2 and isinstance(item[1], list):
            if any(strength != 0 for strength in item[1]):
                mix.append([_used_parts(item[0]), item[1]])
        else:
            mix.append(item)  # refused by the reader
    return {**latent, "mix": mix}


def _transform(data: object) -> Transform:
    fields, rest = _mapping(data, "transform"), Transform()
    names = ("x", "y", "degrees", "scale")
    x, y, degrees, scale = (_number(fields.get(name, getattr(rest, name)), f"transform's {name}") for name in names)
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise SessionFileError(f"The transform's scale must be in {MIN_SCALE:g}..{MAX_SCALE:g}, but is {scale:g}.")
    return Transform(x, y, degrees, scale)


def _mapping(data: object, what: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise SessionFileError(f"The {what} must be an object, but is {_kind(data)}.")
    return data


def _list(data: object, what: str, limit: int = MAX_ITEMS) -> Sequence[Any]:
    if not isinstance(data, list | tuple):
        raise SessionFileError(f"The {what} must be a list, but is {_kind(data)}.")
    if len(data) > limit:
        raise SessionFileError(f"The {what} may have {limit} items, but has {len(data)}.")
    return data


def _pairs(data: object, what: str) -> list[tuple[Any, Any]]:
    pairs = [item for item in _list(data, what) if isinstance(item, list | tuple) and len(item) == 2]
    if len(pairs) != len(_list(data, what)):
        raise SessionFileError(f"Each item of {what} must be a pair, but one is not.")
    return [(a, b) for a, b in pairs]


def _text(data: object, what: str) -> str:
    if not isinstance(data, str) or len(data) > MAX_TEXT:
        raise SessionFileError(f"The {what} must be a text of at most {MAX_TEXT} letters, but is {_kind(data)}.")
    return data


def _number(data: object, what: str) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
        raise SessionFileError(f"The {what} must be a finite number, but is {_kind(data)}.")
    return float(data)


def _optional_integer(data: object, what: str) -> int | None:
    return None if data is None else _integer(data, what, 0, MAX_ITEMS)


def _integer(data: object, what: str, low: int, high: int) -> int:
    if isinstance(data, bool) or not isinstance(data, int) or not low <= data <= high:
        raise SessionFileError(f"The {what} must be a whole number in {low}..{high}, but is {_kind(data)}.")
    return data


def _kind(data: object) -> str:
    return repr(data)[:40] if isinstance(data, float | str) else type(data).__name__
