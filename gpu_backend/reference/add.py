"""The residual sum of a resnet block."""

from __future__ import annotations

from torch import Tensor


def add(x: Tensor, y: Tensor) -> Tensor:
    """Sum of two tensors of one shape."""
    return x + y
