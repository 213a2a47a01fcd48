"""The learned constant that the synthesis network starts from, the same for every sample."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Constant:
    """Parameters of the operation."""

    channels: int
    resolution: int = 4

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.channels)

    def flops(self, batch: int) -> int:
        """Zero: nothing is computed."""
        return 0

    def nbytes(self, batch: int) -> int:
        """One read, and a write for each sample."""
        return 4 * (batch + 1) * self.channels * self.resolution**2
