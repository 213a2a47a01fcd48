"""Bent channels (`gpu_backend.ops.bend_channels`)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.bend_channels import AT_REST


def bend_channels(x: Tensor, table: Tensor) -> Tensor:
    """Bend (batch, channels, side, side) by `table`, (channels, 8)."""
    matrices, which = torch.unique(table[:, :6], dim=0, return_inverse=True)
    for index, matrix in enumerate(matrices):
        if matrix.tolist() != list(AT_REST[:6]):  # what is at rest is not interpolated
            chosen = (which == index).nonzero()[:, 0]
            moved = _moved(x.index_select(1, chosen), matrix)
            x = moved if len(matrices) == 1 else x.index_copy(1, chosen, moved)
    threshold, gain = table[:, 6, None, None], table[:, 7, None, None]
    return torch.where(x.abs() >= threshold, x, torch.zeros_like(x)) * gain


def _moved(planes: Tensor, matrix: Tensor) -> Tensor:
    """Sample (batch, channels, side, side) by a matrix, row by row."""
    # torch counts positions from -1 to 1, which are two units a width.
    theta = matrix.view(2, 3) * matrix.new_tensor([1.0, 1.0, 2.0])
    grid = functional.affine_grid(theta.expand(len(planes), 2, 3), list(planes.shape), align_corners=False)
    return functional.grid_sample(planes, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
