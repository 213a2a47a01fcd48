"""The manifest beside a sequence: what each frame is, and how far the writing came.

It holds no times and no random names, so that an export that was interrupted and gone on with ends with the same
bytes as one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from explorer_app.exporting.sequence import Blend, Sequence
from explorer_app.version import __version__
from gpu_backend import Recipe, noise_to_json, recipe_to_json

FORMAT = "latent-loom-sequence"
VERSION = 1

State = Literal["unfinished", "cancelled", "complete"]

_MAX_NBYTES = 256 << 20


def manifest_bytes(sequence: Sequence, state: State, frames_written: int | None) -> bytes:
    """Return the manifest's file content.

    Each frame is a list of [index into recipes, weight]; `state` stays "unfinished" until the last frame is there, or
    until the person cancels.
    """
    table: dict[Recipe, int] = {}
    frames = [
        {"file": sequence.file_name(index), "blend": _indexed(blend, table)}
        for index, blend in enumerate(sequence.blends)
    ]
    lines = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"Latent Loom {__version__}",
        "state": state,
        "frames_written": frames_written,
        "frames_total": len(sequence),
        "model": {"name": sequence.settings.model.name, "path": sequence.settings.model.path},
        "plan": _plan(sequence),
    }
    body = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in lines.items()]
    body.append('"recipes": ' + _list([recipe_to_json(recipe) for recipe in table]))
    body.append('"frames": ' + _list(frames))
    return ("{\n" + ",\n".join(body) + "\n}\n").encode("ascii")


@dataclass(frozen=True, slots=True)
class FoundManifest:
    """A manifest that lies in the folder already. `plan` None: it is not one of ours, or damaged."""

    data: bytes
    plan: object
    frames_total: int

    def is_of(self, sequence: Sequence) -> bool:
        """Tell whether the manifest describes this very sequence."""
        return self.plan is not None and self.plan == json.loads(json.dumps(_plan(sequence)))


def find_manifest(sequence: Sequence) -> FoundManifest | None:
    """Return the manifest that lies where the sequence's would go, None if there is none."""
    data = _read(sequence.manifest_path)
    if data is None:
        return None
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, Mapping) or fields.get("format") != FORMAT or fields.get("version") != VERSION:
        return FoundManifest(data, None, 0)
    total = fields.get("frames_total")
    return FoundManifest(data, fields.get("plan"), total if isinstance(total, int) else 0)


def _plan(sequence: Sequence) -> dict[str, Any]:
    """Return what decides every pixel of the sequence: two sequences are the same if this is."""
    settings = sequence.settings
    transform = {} if settings.transform is None else {"transform": list(settings.transform)}
    return {
        **transform,
        "name": settings.name,
        "sha256": settings.model.model_id,
        "path": settings.kind,
        "frames_per_step": settings.frames_per_step,
        "loop": settings.loop,
        "z_dim": settings.z_dim,
        "resolution": settings.resolution,
        "noise": noise_to_json(settings.noise),
        "keys": [[[recipe_to_json(recipe), weight] for recipe, weight in key] for key in settings.keys],
    }


def _indexed(blend: Blend, table: dict[Recipe, int]) -> list[list[float]]:
    return [[table.setdefault(recipe, len(table)), weight] for recipe, weight in blend]


def _list(items: list[Any]) -> str:
    """Return a JSON list with an item a line."""
    return "[\n" + ",\n".join(json.dumps(item) for item in items) + "\n]"


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_NBYTES)
    except FileNotFoundError:
        return None
    except OSError:
        return b""
