"""toRGB: styled 1 x 1 convolution, clamp, and the upsampled picture of the previous block."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from gpu_backend.reference.upfirdn import double


def to_rgb(x: Tensor, weight: Tensor, bias: Tensor, style: Tensor | None, clamp: float | None) -> Tensor:
    """Return the layer's own picture, (batch, img_channels, side, side).

    `style` (batch, in_channels) already has its 1 / sqrt(in_channels), which replaces it where it is None.
    """
    x = x / math.sqrt(x.shape[1]) if style is None else x * style[:, :, None, None]
    y = functional.conv2d(x, weight, bias)
    return y if clamp is None else y.clamp(-clamp, clamp)


def add_doubled(image: Tensor, y: Tensor, taps: Sequence[float]) -> Tensor:
    """U(image) + y: the skip architecture's sum."""
    return double(image, taps) + y
