"""Pictures of the procedural world, drawn when they are needed."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gpu_backend.training.world import draw, sample_factors

_CHUNK = 64
"""Pictures whose factors come from one generator: what a picture shows depends on its position only."""
_MOST_AT_ONCE = 32
_SEED_MASK = (1 << 62) - 1
_SEED_PRIMES = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)


class WorldSource:
    """Endless: no picture comes twice."""

    def __init__(self, resolution: int, device: torch.device) -> None:
        self._resolution, self._device = resolution, device

    @property
    def resolution(self) -> int:
        """Side in pixels."""
        return self._resolution

    @property
    def name(self) -> str:
        """What it is."""
        return "the procedural world"

    @property
    def is_on_device(self) -> bool:
        """On a GPU, drawing takes its place in the queue of work there."""
        return self._device.type == "cuda"

    def batches(self, size: int, seed: int, start: int) -> Iterator[Tensor]:
        """Yield batches on the device."""
        position = start
        while True:
            parts = []
            for first in range(position, position + size, _MOST_AT_ONCE):
                parts.append(self._pictures(seed, first, min(_MOST_AT_ONCE, position + size - first)))
            yield torch.cat(parts)
            position += size

    def close(self) -> None:
        """Nothing is held."""

    @torch.no_grad()
    def _pictures(self, seed: int, first: int, count: int) -> Tensor:
        chunks = range(first // _CHUNK, (first + count - 1) // _CHUNK + 1)
        factors = torch.cat([sample_factors(_CHUNK, _generator(seed, chunk)) for chunk in chunks])
        offset = first - chunks[0] * _CHUNK
        base = (seed * _SEED_PRIMES[0]) & (_SEED_MASK >> 31)
        seeds = torch.arange(base + first, base + first + count)
        drawn = draw(factors[offset : offset + count], seeds, self._resolution, device=self._device)
        return (drawn * 127.5 + 128).clamp(0, 255).to(torch.uint8)


def _generator(seed: int, chunk: int) -> torch.Generator:
    mixed = (seed * _SEED_PRIMES[0] + (chunk + 1) * _SEED_PRIMES[1]) & _SEED_MASK
    return torch.Generator().manual_seed(mixed)
