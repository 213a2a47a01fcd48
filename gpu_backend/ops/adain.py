"""Adaptive instance normalisation: the end of every layer of StyleGAN1 (Karras et al. 2019, section 2).

    x    = act(x + strength[c] * gain * noise + b[c])
    x    = (x - mean) * rsqrt(var + epsilon)                               mean and variance over the picture
    y    = scale[c] * x + shift[c]

The style has a layer's scales, which vary about one, followed by its shifts. Noise has one strength per channel.
"""

from __future__ import annotations

import math

SUMMING_FLOPS, SCALING_FLOPS = 3, 2
NORMAL_FLOPS = 3 + SUMMING_FLOPS + SCALING_FLOPS
"""Operations per value: noise, bias and activation; sums for mean and variance; scale and shift."""


def weight_gain(in_channels: int, kernel: int = 3) -> float:
    """Return the scale of a convolution's weights, sqrt(2 / inputs) (He et al. 2015, equation 10)."""
    return math.sqrt(2.0 / (in_channels * kernel**2))
