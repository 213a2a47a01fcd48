"""Interface of a procedural world: named factors, and pictures of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from gpu_backend.training import world
from gpu_backend.training.world.drawer import Drawer


class World(Protocol):
    """`gpu_backend.training.world`, or a substitute in tests."""

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors, in the order of the columns."""
        ...

    def sample_factors(self, count: int, generator: torch.Generator) -> Tensor:
        """Return random factors, (count, factors) float32, on the processor."""
        ...

    def draw(self, factors: Tensor, seeds: Tensor, resolution: int, device: torch.device) -> Tensor:
        """Return pictures (count, 3, resolution, resolution) float32 in -1..1, on the device."""
        ...


class ProceduralWorld:
    """The world that comes with the trainer."""

    def __init__(self) -> None:
        self._drawers: dict[tuple[int, torch.device], Drawer] = {}

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of its factors."""
        return tuple(factor.name for factor in world.FACTORS)

    def sample_factors(self, count: int, generator: torch.Generator) -> Tensor:
        """Return random factors."""
        return world.sample_factors(count, generator)

    def draw(self, factors: Tensor, seeds: Tensor, resolution: int, device: torch.device) -> Tensor:
        """Return their pictures; on a GPU quantised as for a screen, in steps of 1 / 127.5."""
        if device.type != "cuda":
            return world.draw(factors, seeds, resolution, device=device)
        if (resolution, device) not in self._drawers:
            self._drawers[resolution, device] = Drawer(resolution, device)
        return (self._drawers[resolution, device].draw(factors, seeds).float() - 128.0) / 127.5


def world_batches(
    world: World, count: int, batch: int, seed: int, resolution: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (factors, pictures) of `count` pictures of a world, the same ones for the same seed and batch.

    Factors come from the seed; a picture's own seed is its number, counted from seed * 2^20 so that two seeds share no
    picture before a million of them.
    """
    generator = torch.Generator().manual_seed(seed)
    for first in range(0, count, batch):
        size = min(batch, count - first)
        factors = world.sample_factors(size, generator)
        seeds = torch.arange(first, first + size, dtype=torch.int64) + (seed << 20)
        yield factors, world.draw(factors, seeds, resolution, device)
