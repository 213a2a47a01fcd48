"""Bilinear samples of feature maps around points, and where a map has texture enough to hold on to."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def patch_offsets(radius: int, like: Tensor) -> Tensor:
    """Return the offsets (x, y) of a patch of (2 radius + 1)^2 samples around a point, (n, 2)."""
    line = torch.arange(-radius, radius + 1, dtype=like.dtype, device=like.device)
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], 1)


def sample(features: Tensor, points: Tensor) -> Tensor:
    """Return (n, channels) bilinear samples; beyond the border the outermost samples repeat.

    Parameters
    ----------
    features
        (1, channels, height, width).
    points
        (n, 2): x, y in samples; whole numbers are centres.
    """
    size = points.new_tensor([features.shape[3] - 1, features.shape[2] - 1]).clamp(min=1)
    grid = (points / size * 2 - 1)[None, None]
    found = functional.grid_sample(features, grid, mode="bilinear", padding_mode="border", align_corners=True)
    return found[0, :, 0].t()


def feature_scale(features: Tensor) -> float:
    """Return the mean distance of the samples of (1, channels, height, width) from their channel's mean."""
    return float((features - features.mean((2, 3), keepdim=True)).abs().mean().clamp(min=1e-12))


def structure_tensor(features: Tensor, patch: Tensor) -> Tensor:
    """Return the structure tensor (2, 2) of a patch, a mean over its samples and all channels.

    J = mean of [Fx Fx, Fx Fy; Fx Fy, Fy Fy], with central differences (Foerstner and Guelch 1987); dT J d is how much
    the features change along a direction d. `patch` has the positions (n, 2) in samples.
    """
    step = patch.new_tensor([[1.0, 0.0], [0.0, 1.0]])
    along = [(sample(features, patch + axis) - sample(features, patch - axis)) * 0.5 for axis in step]
    return torch.stack([torch.stack([(a * b).mean() for b in along]) for a in along])


def mean_texture(features: Tensor) -> float:
    """Return the mean over a whole map of what `structure_tensor` measures along one axis."""
    x = (features[:, :, :, 2:] - features[:, :, :, :-2]) * 0.5
    y = (features[:, :, 2:] - features[:, :, :-2]) * 0.5
    return float((x.square().mean() + y.square().mean()) * 0.5)
