"""Tap display: a layer as a picture, and its statistics."""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.ops.tap_display import LEAST, MOST
from gpu_backend.ops.to_display import ToDisplay
from gpu_backend.reference.to_display import to_display


def tap_display(x: Tensor, tap: Tensor) -> Tensor:
    """Turn (batch, channels, side, side) into (batch, side, side, 4) uint8.

    `tap` holds the three channels to show, the gain, and whether each channel is divided by its largest magnitude.
    """
    chosen = x[:, [int(place) for place in tap[:3]]]
    if float(tap[4]) != 0.0:
        chosen = chosen / chosen.abs().amax((2, 3), keepdim=True).clamp(LEAST, MOST)
    return to_display(chosen * tap[3], ToDisplay(3, x.shape[3]))


def tap_statistics(x: Tensor, tap: Tensor) -> Tensor:
    """Return (batch, 4, 4), the `statistics` of the three channels of `tap`, then of all channels."""
    chosen = x[:, [int(place) for place in tap[:3]]]
    return torch.cat((statistics(chosen, (2, 3)), statistics(x, (1, 2, 3))[:, None]), dim=1)


def statistics(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return mean, population standard deviation, minimum and maximum over `axes`, on a new last axis."""
    variance, mean = torch.var_mean(x, axes, correction=0)
    return torch.stack((mean, variance.sqrt(), x.amin(axes), x.amax(axes)), dim=-1)
