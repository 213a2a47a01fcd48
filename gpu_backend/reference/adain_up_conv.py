"""The up-convolution of StyleGAN1 (Karras et al. 2019, appendix C)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.adain import weight_gain
from gpu_backend.ops.adain_up_conv import BLUR, AdainUpConv
from gpu_backend.reference.adain import adain


def adain_up_conv(
    x: Tensor, weight: Tensor, bias: Tensor, noise: Tensor | None, style: Tensor, attributes: AdainUpConv
) -> Tensor:
    """Return adain(blur(conv(doubled x, flipped W))), twice the side.

    `weight` (out_channels, in_channels, 3, 3) is that of a transposed convolution. The other parameters are as
    in `adain_conv`.
    """
    doubled = functional.interpolate(x, scale_factor=2, mode="nearest")
    y = functional.conv2d(doubled, weight.flip(2, 3) * weight_gain(attributes.in_channels), padding=1)
    if attributes.blurs_bias:
        y = y + bias[:, None, None]
    taps = torch.tensor(BLUR, dtype=x.dtype, device=x.device)
    kernel = (taps[:, None] * taps).expand(attributes.out_channels, 1, -1, -1)
    y = functional.conv2d(y, kernel, padding=1, groups=attributes.out_channels)
    return adain(y, None if attributes.blurs_bias else bias, noise, attributes.act, style, attributes.epsilon)
