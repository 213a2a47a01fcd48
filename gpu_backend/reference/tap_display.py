"""A layer as a picture."""

from __future__ import annotations

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
