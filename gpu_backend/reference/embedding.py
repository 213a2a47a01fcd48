"""y = sum_k c[k] table[k]."""

from __future__ import annotations

from torch import Tensor


def embedding(c: Tensor, table: Tensor) -> Tensor:
    """(batch, c_dim) and (rows, width), of which the first c_dim rows count, to (batch, width)."""
    return c @ table[: c.shape[1]]
