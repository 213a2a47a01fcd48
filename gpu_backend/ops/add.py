"""The sum at the end of a resnet block."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Add:
    """Settings. `shape` is that of one sample."""

    shape: tuple[int, ...]

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, *self.shape)

    def flops(self, batch: int) -> int:
        """One addition a value."""
        return batch * math.prod(self.shape)

    def nbytes(self, batch: int) -> int:
        """Two reads and a write a value."""
        return 12 * batch * math.prod(self.shape)
