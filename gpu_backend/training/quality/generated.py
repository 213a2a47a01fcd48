"""Pictures of a model's random latents, in NumPy: any device that the renderer runs on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_backend.latent.seeds import seed_to_z
from gpu_backend.model import ModelFacts


class MapsAndRenders(Protocol):
    """The part of `gpu_backend.renderer.Renderer` that is used here."""

    @property
    def facts(self) -> ModelFacts:
        """Facts about the model."""
        ...

    def map(
        self, z: ArrayLike, c: ArrayLike | None = None, psi: float = 1.0, cutoff: int | None = None
    ) -> NDArray[np.float32]:
        """Return w rows (n, num_ws, w_dim)."""
        ...

    def synthesize(self, ws: ArrayLike) -> NDArray[np.float32]:
        """Return pictures (n, channels, R, R), nominally in -1..1."""
        ...


def rows_of_seeds(renderer: MapsAndRenders, seeds: Sequence[int], psi: float = 1.0) -> NDArray[np.float32]:
    """Return the w rows of seeds, (n, num_ws, w_dim). A conditional model gets the classes in turn."""
    facts = renderer.facts
    z = np.stack([seed_to_z(seed, facts.z_dim) for seed in seeds])
    labels = None
    if facts.c_dim:
        labels = np.eye(facts.c_dim, dtype=np.float32)[[seed % facts.c_dim for seed in seeds]]
    return renderer.map(z, labels, psi)


def generated_batches(
    renderer: MapsAndRenders, count: int, batch: int, first_seed: int, psi: float = 1.0
) -> Iterator[NDArray[np.float32]]:
    """Yield pictures (n, channels, R, R) of the seeds from `first_seed` on."""
    for start in range(0, count, batch):
        seeds = range(first_seed + start, first_seed + min(start + batch, count))
        yield renderer.synthesize(rows_of_seeds(renderer, seeds, psi))
