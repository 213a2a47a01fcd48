"""A model as a farm gets it."""

from __future__ import annotations

import tempfile
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import gpu_backend
from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import Model, ModelFacts, NamedDirections


@dataclass(frozen=True, slots=True)
class FarmModel:
    """A model's files.

    Attributes
    ----------
    path, name, model_id
        The file, the model's name, and the file's SHA-256.
    directions
        A file of directions; empty for none.
    changed
        Path and SHA-256 of the model that a tuned one changes; None for any other.
    """

    path: Path
    name: str
    model_id: str
    directions: bytes = field(default=b"", repr=False)
    changed: tuple[Path, str] | None = None

    @property
    def files(self) -> tuple[tuple[Path, str], ...]:
        """What a worker needs to open it: paths and SHA-256s; the model itself comes last."""
        own = self.path, self.model_id
        return (own,) if self.changed is None else (self.changed, own)


def farm_model_of(model: Model) -> FarmModel:
    """Return a model as a farm gets it. Raises LoomError if its directions cannot be written."""
    return farm_model(model.facts, model.directions)


def farm_model(facts: ModelFacts, named: NamedDirections | None) -> FarmModel:
    """Return a model with its named directions. Raises LoomError if the directions cannot be written."""
    directions = b""
    if named is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.directions.safetensors"
            gpu_backend.write_directions(named, path, facts.model_id)
            directions = path.read_bytes()
    base = gpu_backend.changed_model(facts.path)
    changed = None if base is None else (base.path, base.model_id)
    return FarmModel(Path(facts.path).absolute(), facts.name, facts.model_id, directions, changed)
