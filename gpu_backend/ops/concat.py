"""Concatenation of features."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Concat:
    """Parameters: `widths` of the inputs, in order."""

    widths: tuple[int, ...]

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, sum(self.widths))

    def flops(self, batch: int) -> int:
        """Zero: nothing is computed."""
        return 0

    def nbytes(self, batch: int) -> int:
        """A read and a write for each value."""
        return 8 * batch * sum(self.widths)
