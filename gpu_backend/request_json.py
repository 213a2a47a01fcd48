"""Requests, recipes and edits as JSON-able data, for saved pictures, sessions, manifests and the tasks of a farm.

Readers check every type, range and count, and raise a RequestError whose sentence names the field.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from gpu_backend.errors import RequestError
from gpu_backend.limits import MAX_ITEMS, MAX_STORED_DIM, MAX_STORED_ROWS, RecipeBudget
from gpu_backend.picture_mask import MaskError, PictureMask, mask_from_text, mask_to_text
from gpu_backend.recipe import (
    NO_EDITS,
    SEED_COUNT,
    Arc,
    Bend,
    BendKind,
    DirectionAmount,
    Latent,
    LocalEdits,
    MaskedBlend,
    MixSource,
    Noise,
    NoiseMode,
    Point,
    Recipe,
    RowRange,
    Space,
    StoredLatent,
    StyleOffset,
    Tap,
    Truncation,
)
from gpu_backend.request import RenderRequest, StoredPart, StoredParts, check_edit_counts, seed_count, spend_blend

_MAX_BITS = 1000
"""Integers with more bits do not fit a float, and are too long to print."""


def request_to_json(request: RenderRequest) -> dict[str, Any]:
    """Return the recipe of a picture as JSON-able data, without fields that do not affect the picture.

    Raises
    ------
    RequestError
        If the recipes or edits exceed the limits of one picture, so that reading would refuse them.
    """
    budget = RecipeBudget()
    spend_blend(request.blend, budget)
    data: dict[str, Any] = {
        "model": request.model_id,
        "blend": [[recipe_to_json(recipe), weight] for recipe, weight in request.blend],
        "noise": noise_to_json(request.noise),
    }
    if request.transform is not None:
        data["transform"] = list(request.transform)
    if request.resolution is not None:
        data["resolution"] = request.resolution
    if request.tap is not None:
        data["tap"] = tap_to_json(request.tap)
    if request.edits != NO_EDITS:
        data["edits"] = edits_to_json(request.edits, budget)
    return data


def request_from_json(data: object, stored: StoredParts | None = None) -> RenderRequest:
    """Read what `request_to_json` wrote; `stored` has the stored parts of the same file, by digest.

    Raises
    ------
    RequestError
        If a field is missing, of the wrong type or out of range; the sentence names the field.
    """
    fields = _mapping(data, "request")
    model_id = fields.get("model")
    if not isinstance(model_id, str):
        raise RequestError(f"The request's model must be a text, but is {_kind(model_id)}.")
    budget = RecipeBudget()
    blend = tuple(
        (recipe_from_json(recipe, budget, stored), _number(weight, "blend weight"))
        for recipe, weight in _pairs(fields.get("blend"), "blend")
    )
    if not blend:
        raise RequestError("The request's blend must hold at least one recipe, but is empty.")
    transform = None
    if fields.get("transform") is not None:
        transform = tuple(_number(item, "transform") for item in _list(fields["transform"], "transform"))
        if len(transform) != 9:
            raise RequestError(f"The request's transform must have nine numbers, but has {len(transform)}.")
    resolution = fields.get("resolution")
    return RenderRequest(
        model_id=model_id,
        blend=blend,
        noise=noise_from_json(fields.get("noise", {})),
        transform=transform,
        resolution=None if resolution is None else _integer(resolution, "resolution", 1, 1 << 16),
        tap=None if fields.get("tap") is None else tap_from_json(fields["tap"]),
        edits=edits_from_json(fields.get("edits", {}), budget, stored),
    )


def recipe_to_json(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as JSON-able data."""
    return {
        "latent": latent_to_json(recipe.latent),
        "psi": recipe.truncation.psi,
        "cutoff": recipe.truncation.cutoff,
    }


def recipe_from_json(data: object, budget: RecipeBudget | None = None, stored: StoredParts | None = None) -> Recipe:
    """Read what `recipe_to_json` wrote; recipes of one picture share a budget. Raises RequestError."""
    fields = _mapping(data, "recipe")
    cutoff = fields.get("cutoff")
    return Recipe(
        latent=latent_from_json(fields.get("latent", {}), budget, 0, stored),
        truncation=Truncation(
            psi=_number(fields.get("psi", 1.0), "psi"),
            cutoff=None if cutoff is None else _integer(cutoff, "cutoff", 0, MAX_ITEMS),
        ),
    )


def latent_to_json(latent: Latent) -> dict[str, Any]:
    """Return a latent as JSON-able data; empty parts are left out.

    A stored latent is named by its digest; `stored_to_json` writes its rows.
    """
    data: dict[str, Any]
    if isinstance(latent.point, StoredLatent):
        data = {"stored": latent.point.digest}
    elif isinstance(latent.point, Arc):
        arc = latent.point
        data = {"arc": [_point_to_json(arc.first), _point_to_json(arc.second), arc.fraction]}
    else:
        data = _point_to_json(latent.point)
    if latent.classes:
        data["classes"] = [list(pair) for pair in latent.classes]
    if latent.mix:
        data["mix"] = [[latent_to_json(source.latent), list(source.strengths)] for source in latent.mix]
    if latent.directions:
        data["directions"] = [_direction_to_json(item) for item in latent.directions]
    return data


def _direction_to_json(item: DirectionAmount) -> list[Any]:
    return [item.name, item.amount, item.rows.first, item.rows.last, *((True,) if item.within_own else ())]


def _point_to_json(point: Point) -> dict[str, Any]:
    data: dict[str, Any] = {"seeds": [list(pair) for pair in point.seeds]}
    if point.space != "w":
        data["space"] = point.space
    return data


def latent_from_json(
    data: object, budget: RecipeBudget | None = None, depth: int = 0, stored: StoredParts | None = None
) -> Latent:
    """Read what `latent_to_json` wrote.

    Parameters
    ----------
    budget
        Remaining budget of the picture that contains the latent; None for a full one.
    depth
        Nesting depth of the latent in mix sources.
    stored
        The stored latents of the same file, by digest.

    Raises
    ------
    RequestError
        If a field is of the wrong type or out of range, or the budget is spent.
    """
    budget = budget or RecipeBudget()
    fields = _mapping(data, "latent")
    point = _latent_point(fields, stored)
    mix = _pairs(fields.get("mix", []), "mix")
    directions = _list(fields.get("directions", []), "directions")
    budget.spend(seeds=seed_count(point), sources=len(mix), directions=len(directions), depth=depth)
    return Latent(
        point=point,
        classes=tuple(
            (_integer(index, "class", 0, 1 << 20), _number(weight, "class weight"))
            for index, weight in _pairs(fields.get("classes", []), "classes")
        ),
        mix=tuple(
            MixSource(
                latent=latent_from_json(source, budget, depth + 1, stored),
                strengths=tuple(_number(item, "strength") for item in _list(strengths, "strengths")),
            )
            for source, strengths in mix
        ),
        directions=tuple(_direction(item) for item in directions),
    )


def _latent_point(fields: Mapping[str, Any], stored: StoredParts | None) -> Point | Arc | StoredLatent:
    if "stored" in fields:
        return _stored_point(fields["stored"], stored)
    if "arc" not in fields:
        return _point(fields)
    items = _list(fields["arc"], "arc")
    if len(items) != 3:
        raise RequestError(f"An arc must be two points and a fraction, but has {len(items)} items.")
    first, second = (_point(_mapping(item, "point")) for item in items[:2])
    return Arc(first, second, _number(items[2], "arc's fraction"))


def _point(fields: Mapping[str, Any]) -> Point:
    seeds, space = _pairs(fields.get("seeds", [[0, 1.0]]), "seeds"), fields.get("space", "w")
    if space not in get_args(Space):
        raise RequestError(f"A point's space must be 'w' or 'z', but is {_kind(space)}.")
    return Point(
        tuple((_integer(seed, "seed", 0, SEED_COUNT - 1), _number(weight, "seed weight")) for seed, weight in seeds),
        space,
    )


def _stored_point(digest: object, stored: StoredParts | None) -> StoredLatent:
    latent = stored.get(digest) if stored is not None and isinstance(digest, str) else None
    if not isinstance(latent, StoredLatent):
        raise RequestError(f"The rows of a stored latent must be in the same file, but {_kind(digest)} is not there.")
    return latent


def stored_to_json(stored: StoredParts) -> dict[str, Any]:
    """Return stored parts as JSON-able data.

    Digest -> [rows, numbers in a row, base64 of the bytes] of a latent, ["mask", its text] of a mask.
    """
    return {
        digest: ["mask", mask_to_text(part)]
        if isinstance(part, PictureMask)
        else [part.num_ws, part.w_dim, base64.b64encode(part.rows).decode("ascii")]
        for digest, part in stored.items()
    }


def stored_from_json(data: object) -> dict[str, StoredPart]:
    """Read what `stored_to_json` wrote.

    Raises
    ------
    RequestError
        If a shape is out of range, or the bytes do not match their digest.
    """
    found: dict[str, StoredPart] = {}
    for digest, value in _mapping(data, "stored latents").items():
        items = _list(value, "stored latent")
        if len(items) == 2 and items[0] == "mask":
            found[digest] = _stored_mask(items[1], digest)
            continue
        if len(items) != 3 or not isinstance(items[2], str):
            raise RequestError("A stored latent must be [rows, numbers in a row, base64], but is something else.")
        try:
            rows = base64.b64decode(items[2], validate=True)
        except ValueError as error:
            raise RequestError("A stored latent is damaged: its rows are not base64.", str(error)) from error
        num_ws = _integer(items[0], "number of rows", 1, MAX_STORED_ROWS)
        latent = StoredLatent(rows, num_ws, _integer(items[1], "length of a row", 1, MAX_STORED_DIM))
        if latent.digest != digest:
            raise RequestError("A stored latent is damaged: its rows do not match their SHA-256.")
        found[digest] = latent
    return found


def _stored_mask(text: object, digest: str) -> PictureMask:
    try:
        mask = mask_from_text(text)
    except MaskError as error:
        raise RequestError(error.sentence, error.details) from error
    if mask is None or mask.digest != digest:
        raise RequestError("A stored mask is damaged: it does not match its SHA-256.")
    return mask


def noise_to_json(noise: Noise) -> dict[str, Any]:
    """Return noise settings as JSON-able data; a phase of 0 is left out."""
    data: dict[str, Any] = {
        "mode": noise.mode,
        "seed": noise.seed,
        "gain": noise.gain,
        "layer_gains": list(noise.layer_gains),
    }
    if noise.phase:
        data["phase"] = noise.phase
    return data


def noise_from_json(data: object) -> Noise:
    """Read what `noise_to_json` wrote. Raises RequestError."""
    fields = _mapping(data, "noise")
    mode = fields.get("mode", "const")
    if mode not in get_args(NoiseMode):
        raise RequestError(f"The noise mode must be 'none', 'const' or 'random', but is {_kind(mode)}.")
    return Noise(
        mode=mode,
        seed=_integer(fields.get("seed", 0), "noise seed", 0, SEED_COUNT - 1),
        gain=_number(fields.get("gain", 1.0), "noise gain"),
        layer_gains=tuple(_number(item, "noise gain") for item in _list(fields.get("layer_gains", []), "layer_gains")),
        phase=_number(fields.get("phase", 0.0), "noise phase"),
    )


def tap_to_json(tap: Tap) -> dict[str, Any]:
    """Return a tap as JSON-able data."""
    return {
        "layer": tap.layer,
        "channels": list(tap.channels),
        "gain_db": tap.gain_db,
        "normalized": tap.is_normalized,
    }


def tap_from_json(data: object) -> Tap:
    """Read what `tap_to_json` wrote. Raises RequestError."""
    fields = _mapping(data, "tap")
    layer, is_normalized = fields.get("layer"), fields.get("normalized", True)
    if not isinstance(layer, str) or not isinstance(is_normalized, bool):
        raise RequestError("A tap must name a layer and say whether it is normalised, but does not.")
    return Tap(
        layer=layer,
        channels=tuple(
            _integer(item, "channel", 0, 1 << 20) for item in _list(fields.get("channels", [0]), "channels")
        ),
        gain_db=_number(fields.get("gain_db", 0.0), "gain"),
        is_normalized=is_normalized,
    )


def edits_to_json(edits: LocalEdits, budget: RecipeBudget | None = None) -> dict[str, Any]:
    """Return local edits as JSON-able data; empty parts are left out. Masks and stored latents are named by digest.

    `budget` is the remaining one of the picture; None for a full one.

    Raises
    ------
    RequestError
        If there are more than `edits_from_json` reads.
    """
    check_edit_counts(edits)
    spend_blend([(blend.recipe, 1.0) for blend in edits.blends], budget or RecipeBudget())
    data: dict[str, Any] = {}
    if edits.bends:
        data["bends"] = [
            [item.layer, item.kind, item.amount, list(item.channels), *([item.down] if item.down else [])]
            for item in edits.bends
        ]
    if edits.style_offsets:
        data["styles"] = [[item.layer, item.channel, item.amount] for item in edits.style_offsets]
    if edits.blends:
        data["blends"] = [
            [
                recipe_to_json(item.recipe),
                item.mask.digest,
                item.rows.first,
                item.rows.last,
                item.strength,
                item.softness,
            ]
            for item in edits.blends
        ]
    return data


def edits_from_json(data: object, budget: RecipeBudget | None = None, stored: StoredParts | None = None) -> LocalEdits:
    """Read what `edits_to_json` wrote; `stored` has the masks and latents of the same file. Raises RequestError."""
    fields, budget = _mapping(data, "edits"), budget or RecipeBudget()
    edits = LocalEdits(
        bends=tuple(bend_from_json(item) for item in _list(fields.get("bends", []), "bends")),
        style_offsets=tuple(_style_offset(item) for item in _list(fields.get("styles", []), "style offsets")),
        blends=tuple(_masked_blend(item, budget, stored) for item in _list(fields.get("blends", []), "blends")),
    )
    check_edit_counts(edits)
    return edits


def bend_from_json(data: object) -> Bend:
    """Read [layer, kind, amount, channels] with the way down of a move at the end. Raises RequestError."""
    items = _list(data, "bend")
    if len(items) not in (4, 5) or not isinstance(items[0], str) or items[1] not in get_args(BendKind):
        raise RequestError("A bend must be [layer, kind, amount, channels], but is something else.")
    return Bend(
        layer=items[0],
        kind=items[1],
        amount=_number(items[2], "bend's amount"),
        channels=tuple(_integer(item, "channel", 0, 1 << 20) for item in _list(items[3], "channels")),
        down=_number(items[4], "bend's way down") if len(items) == 5 else 0.0,
    )


def _style_offset(data: object) -> StyleOffset:
    items = _list(data, "style offset")
    if len(items) != 3 or not isinstance(items[0], str):
        raise RequestError("A style offset must be [layer, channel, amount], but is something else.")
    return StyleOffset(items[0], _integer(items[1], "channel", 0, 1 << 20), _number(items[2], "style offset"))


def _masked_blend(data: object, budget: RecipeBudget, stored: StoredParts | None) -> MaskedBlend:
    items = _list(data, "blend")
    if len(items) != 6:
        raise RequestError("A blend must be [recipe, mask, first row, last row, strength, soft edge], but is not.")
    return MaskedBlend(
        recipe=recipe_from_json(items[0], budget, stored),
        mask=mask_of(items[1], stored),
        rows=_row_range(items[2], items[3]),
        strength=_number(items[4], "blend's strength"),
        softness=_number(items[5], "blend's soft edge"),
    )


def mask_of(digest: object, stored: StoredParts | None) -> PictureMask:
    """Return the mask of a digest from the stored parts of a file. Raises RequestError if it is not there."""
    mask = stored.get(digest) if stored is not None and isinstance(digest, str) else None
    if not isinstance(mask, PictureMask):
        raise RequestError(f"The mask of a blend must be in the same file, but {_kind(digest)} is not there.")
    return mask


def _row_range(first: object, last: object) -> RowRange:
    """Read a range of rows of w; `last` None means up to the end. Raises RequestError."""
    return RowRange(
        _integer(first, "first row", 0, MAX_ITEMS), None if last is None else _integer(last, "last row", 0, MAX_ITEMS)
    )


def _direction(data: object) -> DirectionAmount:
    items = _list(data, "direction")
    if len(items) not in (4, 5) or not isinstance(items[0], str) or items[4:] not in ([], [True]):
        raise RequestError("A direction must be [name, amount, first row, last row], but is something else.")
    return DirectionAmount(
        name=items[0],
        amount=_number(items[1], "amount"),
        rows=_row_range(items[2], items[3]),
        within_own=len(items) == 5,
    )


def _mapping(data: object, what: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise RequestError(f"The {what} must be a set of named fields, but is {_kind(data)}.")
    return data


def _list(data: object, what: str) -> Sequence[Any]:
    if not isinstance(data, list | tuple):
        raise RequestError(f"The {what} must be a list, but is {_kind(data)}.")
    if len(data) > MAX_ITEMS:
        raise RequestError(f"The {what} may have {MAX_ITEMS} items, but has {len(data)}.")
    return data


def _pairs(data: object, what: str) -> list[tuple[Any, Any]]:
    pairs = []
    for item in _list(data, what):
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise RequestError(f"Each item of {what} must be a pair, but one is {_kind(item)}.")
        pairs.append((item[0], item[1]))
    return pairs


def _number(data: object, what: str) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise RequestError(f"The {what} must be a finite number, but is {_kind(data)}.")
    if isinstance(data, int) and data.bit_length() > _MAX_BITS:
        raise RequestError(f"The {what} must be a finite number, but is a whole number of {data.bit_length()} bits.")
    if not math.isfinite(data):
        raise RequestError(f"The {what} must be a finite number, but is {_kind(data)}.")
    return float(data)


def _integer(data: object, what: str, low: int, high: int) -> int:
    if isinstance(data, bool) or not isinstance(data, int) or not low <= data <= high:
        raise RequestError(f"The {what} must be a whole number in {low}..{high}, but is {_kind(data)}.")
    return data


def _kind(data: object) -> str:
    """Describe a value in a few words. Long texts and numbers are shortened before formatting."""
    if isinstance(data, str):
        return repr(data[:40])
    if isinstance(data, int) and data.bit_length() > _MAX_BITS:
        return f"a whole number of {data.bit_length()} bits"
    return repr(data) if isinstance(data, int | float) else type(data).__name__
