"""Sessions as JSON: a versioned object, read field by field.

::

    {"format": "latent-loom-session", "version": 1, "model": {...}, "position": [x, y], ...,
     "parameters": {path: value}}              rows of the table of parameters that have no key of their own
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from explorer_app.session.local_blends import DEFAULT_SOFTNESS, LocalBlend
from explorer_app.session.local_edits import LayerBend, StyleChannel
from explorer_app.session.parameters import Parameter, Value, fixed_parameters
from explorer_app.session.session import MAX_SCALE, MIN_SCALE, ModelReference, Position, Session, Slider, Source
from gpu_backend import (
    MAX_BENDS,
    MAX_BLENDS,
    MAX_ITEMS,
    MAX_STYLE_OFFSETS,
    MAX_TEXT,
    LoomError,
    RecipeBudget,
    RowRange,
    StoredPart,
    Transform,
    Truncation,
    bend_from_json,
    flat_latent,
    latent_from_json,
    latent_to_json,
    mask_from_text,
    mask_of,
    mask_to_text,
    noise_from_json,
    noise_to_json,
    recipe_from_json,
    recipe_to_json,
    spend_latent,
    stored_in,
    tap_from_json,
    tap_to_json,
)

FORMAT = "latent-loom-session"
VERSION = 1

_OWN_KEYS = {
    "position",
    "pinned_blend",
    "classes",
    "truncation.psi",
    "truncation.cutoff",
    "noise.mode",
    "noise.seed",
    "noise.gain",
    "noise.phase",
    "transform.x",
    "transform.y",
    "transform.degrees",
    "transform.scale",
    "layer",
    "layer.gain",
    "mask",
}
"""Parameters that were written under keys of their own before there was a table."""

_NESTED_BUDGET = RecipeBudget(seeds=200_000, sources=100_000, directions=200_000, depth=64)
"""What the mix sources of one session may hold before they are flattened: former versions nested them."""


class SessionFileError(LoomError):
    """A session file is missing, damaged, too new, or something else."""


def session_to_json(session: Session) -> dict[str, Any]:
    """Return a session as JSON-able data; empty parts are left out, and so is the timeline (`timeline_json`)."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": session.model.name, "sha256": session.model.model_id},
        "position": [session.position.x, session.position.y],
        "psi": session.truncation.psi,
        "cutoff": session.truncation.cutoff,
        "noise": noise_to_json(session.noise),
    }
    if session.pinned_blend:
        data["held"] = [[recipe_to_json(recipe), weight] for recipe, weight in session.pinned_blend]
    if session.classes:
        data["classes"] = [list(pair) for pair in session.classes]
    if session.sliders:
        data["sliders"] = [
            {
                "direction": item.direction,
                "amount": item.amount,
                **({} if item.rows is None else {"rows": [item.rows.first, item.rows.last]}),
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
    if session.bends:
        data["bends"] = [_bend_to_json(bend) for bend in session.bends]
    if session.style_channels:
        data["styles"] = [
            [item.layer, item.channel, item.amount, item.reach, item.label] for item in session.style_channels
        ]
    if session.blends:
        data["blends"] = [_blend_to_json(blend) for blend in session.blends]
    if session.mask is not None:
        data["mask"] = mask_to_text(session.mask)
    others = {
        row.path: row.read(session)
        for row in fixed_parameters()
        if row.path not in _OWN_KEYS and row.read(session) != row.default
    }
    if others:
        data["parameters"] = others
    return data


def stored_of(sessions: Iterable[Session]) -> dict[str, StoredPart]:
    """Return every stored latent and mask of a blend that sessions use without their timelines, by digest."""
    found: dict[str, StoredPart] = {}
    for session in sessions:
        found.update(stored_in(recipe.latent for recipe, _ in session.pinned_blend))
        found.update(stored_in(source.latent for source in session.mix))
        found.update(stored_in(blend.latent for blend in session.blends))
        found.update((blend.mask.digest, blend.mask) for blend in session.blends if blend.mask is not None)
    return found


def session_from_json(data: object, stored: Mapping[str, StoredPart] | None = None) -> Session:
    """Read what `session_to_json` wrote; a part that is missing gets its default.

    `stored` has the stored latents and masks of the same file, by digest.

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
        session = Session(
            model=_model(data.get("model", {})),
            position=_position(data.get("position", [0.0, 0.0])),
            pinned_blend=tuple(
                (recipe_from_json(a, budget, stored), read_number(b, "weight"))
                for a, b in read_pairs(data.get("held", []), "held")
            ),
            classes=tuple(
                (read_integer(a, "class", 0, 1 << 20), read_number(b, "class weight"))
                for a, b in read_pairs(data.get("classes", []), "classes")
            ),
            truncation=Truncation(
                psi=read_number(data.get("psi", default.truncation.psi), "psi"),
                cutoff=_optional_integer(data.get("cutoff"), "cutoff"),
            ),
            noise=noise_from_json(data.get("noise", {})),
            sliders=tuple(_slider(item) for item in read_list(data.get("sliders", []), "sliders")),
            mix=_sources(data.get("mix", []), stored),
            transform=_transform(data.get("transform", {})),
            tap=None if data.get("tap") is None else tap_from_json(data["tap"]),
            bends=_bends(data.get("bends", [])),
            style_channels=_style_channels(data.get("styles", [])),
            blends=_blends(data.get("blends", []), budget, stored),
            mask=None if data.get("mask") is None else mask_from_text(data["mask"]),
        )
        return _with_parameters(session, read_mapping(data.get("parameters", {}), "parameters"))
    except SessionFileError:
        raise
    except LoomError as error:
        raise SessionFileError(f"The session is damaged: {error.sentence}", error.details) from error
    except (OverflowError, RecursionError) as error:
        raise SessionFileError("The session is damaged: it holds a number that is too large.", str(error)) from error


def _with_parameters(session: Session, values: Mapping[str, Any]) -> Session:
    """Return the session with the parameters that have no key of their own; one of a newer version is left out."""
    rows = {row.path: row for row in fixed_parameters()}
    for path, value in values.items():
        row = rows.get(path)
        if row is not None and path not in _OWN_KEYS:
            session = row.write(session, _value(row, value))
    return session


def _value(row: Parameter, data: object) -> Value:
    name = row.label.lower()
    match row.kind:
        case "number" | "angle":
            return row.clamped(read_number(data, name))
        case "integer":
            return row.clamped(None if data is None else read_number(data, name))
        case "choice":
            return read_text(data, name)
        case _:
            raise SessionFileError(f"The {name} cannot be kept as a number or a text.")


def _model(data: object) -> ModelReference:
    fields = read_mapping(data, "model")
    return ModelReference(
        name=read_text(fields.get("name", ""), "model name"),
        model_id=read_text(fields.get("sha256", ""), "model's SHA-256"),
    )


def _position(data: object) -> Position:
    numbers = [read_number(item, "position") for item in read_list(data, "position")]
    if len(numbers) != 2:
        raise SessionFileError(f"The position must be two numbers, but has {len(numbers)}.")
    return Position(*numbers)


def _slider(data: object) -> Slider:
    """Read a slider; all rows of a direction that is not from a file are its own, which older files name."""
    fields = read_mapping(data, "slider")
    direction = read_text(fields.get("direction"), "slider's direction")
    rows = None if fields.get("rows") is None else read_rows(fields["rows"], "slider's rows")
    if rows == RowRange() and direction.startswith(("sefa/", "axis/")):
        rows = None
    starred = fields.get("starred", False)
    if not isinstance(starred, bool):
        raise SessionFileError("A slider's star must be true or false, but is something else.")
    return Slider(
        direction=direction,
        amount=read_number(fields.get("amount", 0.0), "slider's amount"),
        rows=rows,
        label=read_text(fields.get("label", ""), "slider's label"),
        starred=starred,
    )


def read_rows(data: object, name: str) -> RowRange:
    """Read a range of rows of w, [first, last]."""
    items = read_list(data, name, 2)
    if len(items) != 2:
        raise SessionFileError(f"The {name} must be a first and a last row, but are not.")
    last = None if items[1] is None else read_integer(items[1], "last row", 0, MAX_ITEMS)
    return RowRange(read_integer(items[0], "first row", 0, MAX_ITEMS), last)


def _sources(data: object, stored: Mapping[str, StoredPart] | None) -> tuple[Source, ...]:
    budget = replace(_NESTED_BUDGET)
    sources = tuple(_source(item, budget, stored) for item in read_list(data, "mix"))
    flat = RecipeBudget()
    for source in sources:
        spend_latent(source.latent, flat, 1)
    return sources


def _source(data: object, budget: RecipeBudget, stored: Mapping[str, StoredPart] | None) -> Source:
    fields = read_mapping(data, "mix source")
    return Source(
        latent=flat_latent(latent_from_json(_used_parts(fields.get("latent", {})), budget, 1, stored)),
        strengths=tuple(read_number(item, "strength") for item in read_list(fields.get("strengths", []), "strengths")),
        label=read_text(fields.get("label", ""), "mix source's label"),
    )


def _used_parts(latent: object) -> object:
    """Return a latent as JSON without the mix sources, on all levels, that have strength 0 in every row.

    Former versions nested kept sources so that n of them held 2^n, nearly all unused.
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


def _bend_to_json(bend: LayerBend) -> dict[str, Any]:
    return {
        "number": bend.number,
        "bend": [bend.layer, bend.kind, bend.amount, list(bend.channels), bend.down],
        "on": bend.is_on,
        "label": bend.label,
    }


def _bends(data: object) -> tuple[LayerBend, ...]:
    bends: dict[int, LayerBend] = {}
    for item in read_list(data, "bends", MAX_BENDS):
        fields = read_mapping(item, "bend")
        number = read_integer(fields.get("number"), "bend's number", 1, 999_999)
        is_on = fields.get("on", True)
        if number in bends or not isinstance(is_on, bool):
            raise SessionFileError("Each bend must have a unique number and be on or off, but one does not.")
        read = bend_from_json(fields.get("bend"))
        label = read_text(fields.get("label", ""), "bend's label")
        bends[number] = LayerBend(number, read.layer, read.kind, read.amount, read.channels, read.down, is_on, label)
    return tuple(bends.values())


def _style_channels(data: object) -> tuple[StyleChannel, ...]:
    channels: dict[tuple[str, int], StyleChannel] = {}
    for item in read_list(data, "style channels", MAX_STYLE_OFFSETS):
        fields = read_list(item, "style channel", 5)
        if len(fields) != 5:
            raise SessionFileError(f"A style channel must be five values, but is {len(fields)}.")
        layer, channel = read_text(fields[0], "style channel's layer"), read_integer(fields[1], "channel", 0, 1 << 16)
        channels[layer, channel] = StyleChannel(
            layer,
            channel,
            read_number(fields[2], "style channel's amount"),
            read_number(fields[3], "style channel's reach"),
            read_text(fields[4], "style channel's label"),
        )
    return tuple(channels.values())


def _blend_to_json(blend: LocalBlend) -> dict[str, Any]:
    return {
        "number": blend.number,
        "latent": latent_to_json(blend.latent),
        "mask": None if blend.mask is None else blend.mask.digest,
        "rows": [blend.rows.first, blend.rows.last],
        "strength": blend.strength,
        "softness": blend.softness,
        "on": blend.is_on,
        "label": blend.label,
    }


def _blends(data: object, budget: RecipeBudget, stored: Mapping[str, StoredPart] | None) -> tuple[LocalBlend, ...]:
    blends: dict[int, LocalBlend] = {}
    for item in read_list(data, "blends", MAX_BLENDS):
        fields = read_mapping(item, "blend")
        number = read_integer(fields.get("number"), "blend's number", 1, 999_999)
        is_on = fields.get("on", True)
        if number in blends or not isinstance(is_on, bool):
            raise SessionFileError("Each blend must have a unique number and be on or off, but one does not.")
        mask = fields.get("mask")
        strength, softness = (
            min(max(read_number(fields.get(name, usual), f"blend's {name}"), 0.0), 1.0)
            for name, usual in (("strength", 1.0), ("softness", DEFAULT_SOFTNESS))
        )
        blends[number] = LocalBlend(
            number,
            flat_latent(latent_from_json(fields.get("latent", {}), budget, 0, stored)),
            None if mask is None else mask_of(mask, stored),
            read_rows(fields.get("rows", [0, None]), "blend's rows"),
            strength,
            softness,
            is_on,
            read_text(fields.get("label", ""), "blend's label"),
        )
    return tuple(blends.values())


def _transform(data: object) -> Transform:
    fields, rest = read_mapping(data, "transform"), Transform()
    names = ("x", "y", "degrees", "scale")
    x, y, degrees, scale = (read_number(fields.get(name, getattr(rest, name)), f"transform's {name}") for name in names)
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise SessionFileError(f"The transform's scale must be in {MIN_SCALE:g}..{MAX_SCALE:g}, but is {scale:g}.")
    return Transform(x, y, degrees, scale)


def read_mapping(data: object, what: str) -> Mapping[str, Any]:
    """Return data that is an object. Raises SessionFileError, as the functions below do."""
    if not isinstance(data, Mapping):
        raise SessionFileError(f"The {what} must be an object, but is {_kind(data)}.")
    return data


def read_list(data: object, what: str, limit: int = MAX_ITEMS) -> Sequence[Any]:
    """Return data that is a list of at most `limit` items."""
    if not isinstance(data, list | tuple):
        raise SessionFileError(f"The {what} must be a list, but is {_kind(data)}.")
    if len(data) > limit:
        raise SessionFileError(f"The {what} may have {limit} items, but has {len(data)}.")
    return data


def read_pairs(data: object, what: str) -> list[tuple[Any, Any]]:
    """Return data that is a list of pairs."""
    pairs = [item for item in read_list(data, what) if isinstance(item, list | tuple) and len(item) == 2]
    if len(pairs) != len(read_list(data, what)):
        raise SessionFileError(f"Each item of {what} must be a pair, but one is not.")
    return [(a, b) for a, b in pairs]


def read_text(data: object, what: str) -> str:
    """Return data that is a text of a usual length."""
    if not isinstance(data, str) or len(data) > MAX_TEXT:
        raise SessionFileError(f"The {what} must be a text of at most {MAX_TEXT} letters, but is {_kind(data)}.")
    return data


def read_number(data: object, what: str) -> float:
    """Return data that is a finite number."""
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise SessionFileError(f"The {what} must be a finite number, but is {_kind(data)}.")
    if not abs(data) <= sys.float_info.max:
        raise SessionFileError(f"The {what} must be a finite number, but is too large.")
    return float(data)


def _optional_integer(data: object, what: str) -> int | None:
    return None if data is None else read_integer(data, what, 0, MAX_ITEMS)


def read_integer(data: object, what: str, low: int, high: int) -> int:
    """Return data that is a whole number within a range."""
    if isinstance(data, bool) or not isinstance(data, int) or not low <= data <= high:
        raise SessionFileError(f"The {what} must be a whole number in {low}..{high}, but is {_kind(data)}.")
    return data


def _kind(data: object) -> str:
    return repr(data)[:40] if isinstance(data, float | str) else type(data).__name__
