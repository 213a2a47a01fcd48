"""Noise, bias, activation, instance normalisation and style (Karras et al. 2019, section 2)."""

from __future__ import annotations

from torch import Tensor

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.reference.bias_act import bias_act


def adain(x: Tensor, bias: Tensor | None, noise: Tensor | None, act: BiasAct, style: Tensor, epsilon: float) -> Tensor:
    """Return a layer's output, (batch, channels, side, side).

    Parameters
    ----------
    x
        (batch, channels, side, side), output of the convolution.
    bias
        (channels,); None if already added.
    noise
        (batch or 1, channels, side, side), already times strength and gain; None for none.
    style
        (batch, 2 channels): scales, then shifts.
    """
    if noise is not None:
        x = x + noise
    x = bias_act(x, bias, act)
    x = x - x.mean((2, 3), keepdim=True)
    x = x * (x.square().mean((2, 3), keepdim=True) + epsilon).rsqrt()
    scale, shift = style[:, :, None, None].chunk(2, dim=1)
    return x * scale + shift
