"""The residual sum of a resnet block."""

from __future__ import annotations

import math

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Add:
    """Parameters: `shape` of one sample."""

    shape: tuple[int, ...]

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, *self.shape)

    def flops(self, batch: int) -> int:
        """One addition for each value."""
        return batch * math.prod(self.shape)

    def nbytes(self, batch: int) -> int:
        """Two reads and a write for each value."""
        return 12 * batch * math.prod(self.shape)
