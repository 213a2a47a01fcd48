"""The convolution of StyleGAN1 (Karras et al. 2019, section 2)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.adain import weight_gain
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.reference.adain import adain


def adain_conv(
    x: Tensor, weight: Tensor, bias: Tensor, noise: Tensor | None, style: Tensor, attributes: AdainConv
) -> Tensor:
    """Return adain(conv(x, W)), (batch, out_channels, side, side).

    Parameters
    ----------
    x
        (batch, in_channels, side, side).
    weight
        (out_channels, in_channels, 3, 3), a correlation.
    bias, noise, style
        As in `adain`.
    """
    y = functional.conv2d(x, weight * weight_gain(attributes.in_channels), padding=1)
    return adain(y, bias, noise, attributes.act, style, attributes.epsilon)
