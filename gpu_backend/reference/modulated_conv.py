"""The modulated convolution (Karras et al. 2020b, section 2.2) with noise, bias and activation."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.reference.bias_act import bias_act


def modulated_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    style: Tensor,
    demod: Tensor,
    noise: Tensor | None,
    act: BiasAct,
    padding: int | None = None,
) -> Tensor:
    """Return bias_act(d * conv(s * x, W) + noise, b).

    Parameters
    ----------
    x
        (batch, in_channels, side, side).
    weight
        (out_channels, in_channels, k, k), k odd; a correlation.
    style, demod
        (batch, in_channels) and (batch, out_channels).
    noise
        (batch, side, side), already times strength and gain; None for none.
    padding
        Zeros around the input; None keeps the side.
    """
    pad = weight.shape[-1] // 2 if padding is None else padding
    y = functional.conv2d(x * style[:, :, None, None], weight, padding=pad) * demod[:, :, None, None]
    if noise is not None:
        y = y + noise[:, None]
    return bias_act(y, bias, act)
