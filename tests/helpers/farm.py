"""What tests of the farm share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.session.session import ModelReference
from gpu_backend import Latent, ModelFacts, Noise, Point, Recipe, Truncation


def farm_settings(folder: Path, facts: ModelFacts, *, frames: int, **fields: Any) -> SequenceSettings:
    """Return a loop of three keys through a model, with about so many frames."""
    keys = tuple(
        Keyframe(((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),), Noise(), None) for seed in (1, 2, 3)
    )
    return SequenceSettings(
        keys=keys,
        folder=folder,
        name="walk",
        model=ModelReference("", facts.name, facts.model_id),
        kind="w-linear",
        frames_per_step=frames // 3,
        loop=True,
        z_dim=facts.z_dim,
        **fields,
    )
