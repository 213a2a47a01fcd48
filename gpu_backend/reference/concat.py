"""Concatenation of features."""

from __future__ import annotations

import torch
from torch import Tensor


def concat(*parts: Tensor) -> Tensor:
    """Join (batch, n) tensors along their features."""
    return torch.cat(parts, dim=1)
