"""A source of pictures made of random numbers, each of which depends on seed and position only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

SIZES: dict[str, Any] = {
    "resolution": 32,
    "channel_base": 256,
    "channel_max": 16,
    "z_dim": 16,
    "w_dim": 16,
    "batch": 4,
    "log_kimg": 0.008,
    "snapshot_kimg": 1.0,
}
"""Options of a small, quick training."""


class FakeSource:
    """Random pictures; `at_batch` is called with the number of each batch before it is given out."""

    name = "random pictures"
    is_on_device = True  # no thread, so that a batch is made when its step begins

    def __init__(self, resolution: int = 32, at_batch: Any = None) -> None:
        self.resolution, self._at_batch = resolution, at_batch
        self.is_closed = False

    def batches(self, size: int, seed: int, start: int) -> Iterator[Tensor]:
        """Yield batches."""
        while True:
            if self._at_batch is not None:
                self._at_batch(start // size)
            made = [torch.Generator().manual_seed(seed * 7919 + place) for place in range(start, start + size)]
            shape = (3, self.resolution, self.resolution)
            yield torch.stack([torch.randint(0, 256, shape, generator=one, dtype=torch.uint8) for one in made])
            start += size

    def close(self) -> None:
        """Note it."""
        self.is_closed = True
