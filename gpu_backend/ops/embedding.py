"""The rows of a table that a label picks (Sauer et al. 2022): a class's own row, or the weighted sum of several.

y = sum_k c[k] table[k]
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Embedding:
    """Settings: how long a label is, and how many numbers a row of the table has. Further rows are never picked."""

    c_dim: int
    width: int

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.width)

    def flops(self, batch: int) -> int:
        """Of one class each: two a number."""
        return 2 * batch * self.width

    def nbytes(self, batch: int) -> int:
        """The label, and of one class each a row, read and written."""
        return 4 * batch * (self.c_dim + 2 * self.width)
