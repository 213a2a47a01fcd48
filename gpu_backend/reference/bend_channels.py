"""Bent channels (`gpu_backend.ops.bend_channels`)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def bend_channels(x: Tensor, table: Tensor) -> Tensor:
    """Bend (batch, channels, side, side) by `table`, (channels, 8)."""
    bent = torch.stack([_moved(x[:, channel], table[channel, :6]) for channel in range(x.shape[1])], dim=1)
    threshold, gain = table[:, 6, None, None], table[:, 7, None, None]
    return torch.where(bent.abs() >= threshold, bent, torch.zeros_like(bent)) * gain


def _moved(plane: Tensor, matrix: Tensor) -> Tensor:
    """Sample (batch, side, side) by a matrix, row by row; what is at rest is not interpolated."""
    if matrix.tolist() == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]:
        return plane
    # torch counts positions from -1 to 1, which are two units a width.
    theta = matrix.view(2, 3) * torch.tensor([1.0, 1.0, 2.0])
    grid = functional.affine_grid(
        theta.expand(len(plane), 2, 3), [len(plane), 1, *plane.shape[1:]], align_corners=False
    )
    return functional.grid_sample(
        plane[:, None], grid, mode="bilinear", padding_mode="reflection", align_corners=False
    )[:, 0]
