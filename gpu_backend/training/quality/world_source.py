"""Interface of a procedural world: named factors, and pictures of them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.training import world
from gpu_backend.training.world.drawer import COMPILING_PAYS_FROM, Drawer, from_bytes, to_bytes

_PICTURES_OF_A_PROCESS = 16
"""A process takes as long to start as to draw a few pictures."""


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
    """The world that comes with the trainer.

    As a context manager, it stops its processes on exit.

    Parameters
    ----------
    compiles
        Whether a GPU draws with compiled parts; see `Drawer`.
    processes
        That draw on the CPU, each with one thread. With 1, the calling thread draws.
    """

    def __init__(self, *, compiles: bool = True, processes: int = 1) -> None:
        self._compiles, self._processes = compiles, processes
        self._drawers: dict[tuple[int, torch.device], Drawer] = {}
        self._pool: ProcessPoolExecutor | None = None

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of its factors."""
        return tuple(factor.name for factor in world.FACTORS)

    def sample_factors(self, count: int, generator: torch.Generator) -> Tensor:
        """Return random factors."""
        return world.sample_factors(count, generator)

    def draw(self, factors: Tensor, seeds: Tensor, resolution: int, device: torch.device) -> Tensor:
        """Return their pictures, quantised as for a screen, in steps of 1 / 127.5."""
        if device.type != "cuda":
            return from_bytes(self._drawn_here(factors, seeds, resolution)).to(device)
        if (resolution, device) not in self._drawers:
            self._drawers[resolution, device] = Drawer(resolution, device, compiles=self._compiles)
        return from_bytes(self._drawers[resolution, device].draw(factors, seeds))

    def close(self) -> None:
        """Stop the processes. May be called twice."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> ProceduralWorld:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _drawn_here(self, factors: Tensor, seeds: Tensor, resolution: int) -> Tensor:
        """Draw one picture at a time: the intermediates of many leave the cache, and take half as long again."""
        jobs = [
            (one.numpy(), int(seed), resolution) for one, seed in zip(factors.split(1), seeds.tolist(), strict=True)
        ]
        if self._processes == 1:
            return torch.from_numpy(np.concatenate([_drawn_bytes(*job) for job in jobs]))
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")  # a fork of torch's threads may hang
            self._pool = ProcessPoolExecutor(self._processes, spawn, torch.set_num_threads, (1,))
        return torch.from_numpy(np.concatenate(list(self._pool.map(_drawn_bytes, *zip(*jobs, strict=True)))))


def world_for(count: int, device: torch.device) -> ProceduralWorld:
    """Return a world that draws about `count` pictures in the least time."""
    processes = 1 if device.type == "cuda" else max(1, min(torch.get_num_threads(), count // _PICTURES_OF_A_PROCESS))
    return ProceduralWorld(compiles=count >= COMPILING_PAYS_FROM, processes=processes)


def _drawn_bytes(factors: NDArray[np.float32], seed: int, resolution: int) -> NDArray[np.uint8]:
    """Return one picture (1, 3, resolution, resolution) of factors (1, factors)."""
    cpu = torch.device("cpu")
    drawn = to_bytes(world.draw(torch.from_numpy(factors), torch.tensor([seed]), resolution, device=cpu))
    picture: NDArray[np.uint8] = drawn.numpy()
    return picture


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
