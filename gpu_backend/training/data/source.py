"""The interface of picture sources, and the shuffled order of finite ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from torch import Tensor

from gpu_backend.errors import LoomError


class DataError(LoomError):
    """The training pictures are missing or unreadable."""


class PictureSource(Protocol):
    """Pictures in an endless order that depends on the seed only."""

    @property
    def resolution(self) -> int:
        """Side of the pictures in pixels."""
        ...

    @property
    def name(self) -> str:
        """Short description."""
        ...

    @property
    def is_on_device(self) -> bool:
        """Batches are made on the GPU and need neither a thread nor a copy."""
        ...

    def batches(self, size: int, seed: int, start: int) -> Iterator[Tensor]:
        """Yield (size, 3, R, R) uint8 without end.

        Parameters
        ----------
        start
            Position of the first picture: ``batches(n, s, k * n)`` leaves out k batches of ``batches(n, s, 0)``.
        """
        ...

    def close(self) -> None:
        """Release files and threads; may be called twice."""
        ...


def shuffled(count: int, seed: int, start: int) -> Iterator[int]:
    """Yield indices below `count` endlessly: a new permutation every epoch."""
    epoch, place = divmod(start, count)
    while True:
        order = np.random.Generator(np.random.PCG64([seed, epoch])).permutation(count)
        for index in order[place:]:
            yield int(index)
        epoch, place = epoch + 1, 0
