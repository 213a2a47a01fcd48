"""Quality metrics of a model: distance of its pictures from real ones, and between two sets of real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.training.quality.frechet import frechet_distance, gaussian_of
from gpu_backend.training.quality.generated import MapsAndRenders, generated_batches
from gpu_backend.training.quality.precision_recall import NEIGHBOURS, precision_recall
from gpu_backend.training.quality.reading import FeatureReader
from gpu_backend.training.quality.world_source import World, world_batches

Told = Callable[[str, int], None]
"""Progress callback: name of the stage, and pictures done."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets of pictures: the Frechet distance of their features, precision and recall of the second."""

    frechet: float
    precision: float
    recall: float


@dataclass(frozen=True, slots=True)
class QualityMetrics:
    """Generated pictures against real ones, and other real ones against the same.

    The second is the value of the first for a perfect model: with finitely many pictures no distance is 0.
    """

    generated: Comparison
    real: Comparison
    count: int
    seed: int
    psi: float
    resolution: int
    neighbours: int = NEIGHBOURS

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as JSON-able data."""
        return asdict(self)

    def table(self) -> list[str]:
        """Return the metrics as lines of text."""
        rows = (("generated against real", self.generated), ("real against real", self.real))
        return [f"{'':<24}{'Frechet':>10}{'precision':>11}{'recall':>9}"] + [
            f"{name:<24}{item.frechet:>10.3f}{item.precision:>11.3f}{item.recall:>9.3f}" for name, item in rows
        ]


def quality_of(
    renderer: MapsAndRenders,
    world: World,
    reader: FeatureReader,
    *,
    count: int,
    seed: int,
    psi: float = 1.0,
    batch: int = 64,
    device: torch.device,
    told: Told | None = None,
) -> QualityMetrics:
    """Measure a model against a world. The same arguments give the same metrics on a device.

    Parameters
    ----------
    count
        Pictures in each of the three sets.
    seed
        Latents are the seeds seed * count and so on; the real sets have seeds of their own.
    """
    resolution = renderer.facts.resolution

    def real(number: int, name: str) -> NDArray[np.float64]:
        return features_of(reader, real_pictures(world, count, batch, number, resolution, device), name, told)

    reference, other = real(2 * seed + 1, "real"), real(2 * seed + 2, "more real")
    made = features_of(reader, generated_batches(renderer, count, batch, seed * count, psi), "generated", told)
    return QualityMetrics(
        generated=compare(reference, made),
        real=compare(reference, other),
        count=count,
        seed=seed,
        psi=psi,
        resolution=resolution,
    )


def compare(real: NDArray[np.float64], other: NDArray[np.float64]) -> Comparison:
    """Compare features (n, d) with the features of real pictures."""
    shares = precision_recall(real, other)
    return Comparison(frechet_distance(gaussian_of(real), gaussian_of(other)), shares.precision, shares.recall)


def real_pictures(
    world: World, count: int, batch: int, seed: int, resolution: int, device: torch.device
) -> Iterator[Tensor]:
    """Yield the pictures of `world_batches`."""
    return (drawn for _, drawn in world_batches(world, count, batch, seed, resolution, device))


def features_of(
    reader: FeatureReader, pictures: Iterable[NDArray[np.float32] | Tensor], name: str, told: Told | None = None
) -> NDArray[np.float64]:
    """Return the features (n, d) of batches of pictures; `name` is for the progress."""
    parts: list[NDArray[np.float64]] = []
    done = 0
    for batch in pictures:
        parts.append(reader.features(batch))
        done += len(batch)
        if told is not None:
            told(name, done)
    return np.concatenate(parts)
