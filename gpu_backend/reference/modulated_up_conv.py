"""The up-convolution: transposed convolution, FIR filter, noise, bias, activation (Karras et al. 2020b, appendix B)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.upfirdn import up_conv_left_pad
from gpu_backend.reference.bias_act import bias_act
from gpu_backend.reference.upfirdn import upfirdn


def modulated_up_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    style: Tensor,
    demod: Tensor,
    noise: Tensor | None,
    act: BiasAct,
    taps: Sequence[float],
) -> Tensor:
    """Return bias_act(d * FIR(conv_transpose(s * x, W)) + noise, b), twice the side.

    `weight` (out_channels, in_channels, k, k) is used as stored: tap (ky, kx) goes to pixel (2 i + ky, 2 j + kx). The
    other parameters are as in `modulated_conv`.
    """
    t = functional.conv_transpose2d(x * style[:, :, None, None], weight.transpose(0, 1), stride=2)
    side, kernel, count = 2 * x.shape[-1], weight.shape[-1], len(taps)
    left = up_conv_left_pad(count, kernel)
    right = side - t.shape[-1] - left + count - 1
    y = upfirdn(t, taps, up=1, pads=(left, right), gain=4.0) * demod[:, :, None, None]
    if noise is not None:
        y = y + noise[:, None]
    return bias_act(y, bias, act)
