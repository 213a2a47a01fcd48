"""Adaptive instance normalisation: the end of every layer of StyleGAN1 (Karras et al. 2019, section 2).

    x    = act(x + strength[c] * gain * noise + b[c])
    x    = (x - mean) * rsqrt(var + epsilon)                               mean and variance over the picture
    y    = scale[c] * x + shift[c]

The style holds a layer's scales, which vary about one, and then its shifts. Its noise has a strength a channel.
"""

from __future__ import annotations

import math

SUMMING_FLOPS, SCALING_FLOPS = 3, 2
NORMAL_FLOPS = 3 + SUMMING_FLOPS + SCALING_FLOPS
"""Operations a value: noise, bias and activation; sums for mean and variance; scale and shift."""


def weight_gain(in_channels: int, kernel: int = 3) -> float:
    """What a convolution's weights are multiplied with: sqrt(2 / inputs) (He et al. 2015, equation 10)."""
    return math.sqrt(2.0 / (in_channels * kernel**2))
