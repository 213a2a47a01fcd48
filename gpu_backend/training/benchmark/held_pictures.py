"""Pictures in the host's memory, so that reading files does not count."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.training.data.source import shuffled

_COUNT = 512
_BLOBS = 8


class HeldPictures:
    """A set of made-up pictures in ordinary, pageable memory: blobs of colours."""

    name = "made-up pictures"
    is_on_device = False

    def __init__(self, resolution: int, count: int = _COUNT) -> None:
        self.resolution = resolution
        drawn = torch.Generator().manual_seed(0)
        blobs = torch.randint(0, 256, (count, 3, _BLOBS, _BLOBS), generator=drawn, dtype=torch.uint8)
        self._pictures = functional.interpolate(blobs, size=resolution, mode="nearest")

    def batches(self, size: int, seed: int, start: int) -> Iterator[Tensor]:
        """Yield (size, 3, R, R) uint8 without end."""
        indices = shuffled(len(self._pictures), seed, start)
        while True:
            yield self._pictures[torch.tensor(list(itertools.islice(indices, size)))]

    def close(self) -> None:
        """Nothing is held open."""
