"""Pictures of the procedural world, drawn on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gpu_backend.training.world import draw, sample_factors
from gpu_backend.training.world.drawer import Drawer, at_once, to_bytes

_CHUNK = 64
"""Pictures whose factors come from one generator: content depends on the position in the stream alone."""
_SEED_MASK = (1 << 62) - 1
_SEED_PRIMES = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)


class WorldSource:
    """Endless: no picture comes twice.

    Parameters
    ----------
    say
        Receives a message if drawing is slower than it could be.
    """

    def __init__(self, resolution: int, device: torch.device, say: Callable[[str], None] = lambda _: None) -> None:
        self._resolution, self._device, self._say = resolution, device, say
        self._at_once = at_once(resolution)
        self._drawer: Drawer | None = None
        self._block: tuple[tuple[int, int], Tensor] | None = None

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
        """On a GPU, drawing is enqueued on the stream."""
        return self._device.type == "cuda"

    def batches(self, size: int, seed: int, start: int) -> Iterator[Tensor]:
        """Yield batches on the device."""
        position = start
        while True:
            yield self._drawn(seed, position, size) if self.is_on_device else self._painted(seed, position, size)
            position += size

    def close(self) -> None:
        """Release the GPU memory of the drawer."""
        self._drawer = self._block = None

    def _drawn(self, seed: int, first: int, count: int) -> Tensor:
        """Draws in blocks of one size, which a GPU captures as a graph."""
        start, end = first // self._at_once, (first + count - 1) // self._at_once + 1
        blocks = torch.cat([self._drawn_block(seed, index) for index in range(start, end)])
        return blocks[first - start * self._at_once :][:count]

    def _drawn_block(self, seed: int, index: int) -> Tensor:
        """Blocks may be larger than batches, so the last one is kept."""
        if self._block is None or self._block[0] != (seed, index):
            if self._drawer is None:
                self._drawer = Drawer(self._resolution, self._device, self._say)
            recipe = _recipes(seed, index * self._at_once, self._at_once)
            self._block = (seed, index), self._drawer.draw(*recipe)
        return self._block[1]

    def _painted(self, seed: int, first: int, count: int) -> Tensor:
        parts = []
        for start in range(first, first + count, self._at_once):
            recipe = _recipes(seed, start, min(self._at_once, first + count - start))
            parts.append(to_bytes(draw(*recipe, self._resolution, device=self._device)))
        return torch.cat(parts)


def _recipes(seed: int, first: int, count: int) -> tuple[Tensor, Tensor]:
    """Return factors (count, F) and seeds (count,) int64 of pictures, by their position."""
    chunks = range(first // _CHUNK, (first + count - 1) // _CHUNK + 1)
    factors = torch.cat([sample_factors(_CHUNK, _generator(seed, chunk)) for chunk in chunks])
    offset = first - chunks[0] * _CHUNK
    base = (seed * _SEED_PRIMES[0]) & (_SEED_MASK >> 31)
    return factors[offset : offset + count], torch.arange(base + first, base + first + count)


def _generator(seed: int, chunk: int) -> torch.Generator:
    mixed = (seed * _SEED_PRIMES[0] + (chunk + 1) * _SEED_PRIMES[1]) & _SEED_MASK
    return torch.Generator().manual_seed(mixed)
