"""Embedding lookup by label (Sauer et al. 2022): the row of a class, or the weighted sum of several rows.

y = sum_k c[k] table[k]
"""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Embedding:
    """Parameters: length of a label, and width of a table row. Table rows beyond the label are unused."""

    c_dim: int
    width: int

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.width)

    def flops(self, batch: int) -> int:
        """Two for each value of a row, for one class per sample."""
        return 2 * batch * self.width

    def nbytes(self, batch: int) -> int:
        """The label, and one row per sample, read and written."""
        return 4 * batch * (self.c_dim + 2 * self.width)
