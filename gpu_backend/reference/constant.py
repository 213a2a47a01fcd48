"""The learned constant, repeated for every sample."""

from __future__ import annotations

from torch import Tensor


def constant(const: Tensor, batch: int) -> Tensor:
    """(channels, side, side) to (batch, channels, side, side)."""
    return const.unsqueeze(0).expand(batch, -1, -1, -1)
