"""Floats to bytes in Qt's order."""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.ops.to_display import OPAQUE, ToDisplay


def to_display(image: Tensor, attributes: ToDisplay) -> Tensor:
    """trunc(clamp(x * 127.5 + middle, 0, 255)): (batch, channels, height, width) to (batch, height, width, 4) uint8."""
    scaled = (image * 127.5 + attributes.middle).clamp(0, 255).to(torch.uint8)
    opaque = torch.full_like(scaled[:, 0], OPAQUE)
    return torch.stack([opaque if c is None else scaled[:, c] for c in attributes.sources], dim=-1)
