"""Zero insertion, padding and an FIR filter: the formula of `gpu_backend.ops.upfirdn`, on both axes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.upfirdn import doubling_left_pad


def upfirdn(x: Tensor, taps: Sequence[float], *, up: int, pads: tuple[int, int], gain: float) -> Tensor:
    """Upsample by zero insertion, pad (negative crops), convolve with the outer product of `taps`, scale.

    Parameters
    ----------
    x
        (batch, channels, height, width).
    pads
        Zeros before and after, on both axes, counted in upsampled samples.
    gain
        Factor of the whole, both axes together.
    """
    batch, channels, height, width = x.shape
    if up > 1:
        spread = x.new_zeros(batch, channels, height, up, width, up)
        spread[:, :, :, 0, :, 0] = x
        x = spread.reshape(batch, channels, height * up, width * up)
    x = functional.pad(x, (pads[0], pads[1], pads[0], pads[1]))
    f = torch.tensor(list(taps), dtype=x.dtype, device=x.device).flip(0)  # conv2d correlates
    rows, columns = f.reshape(1, 1, -1, 1), f.reshape(1, 1, 1, -1)
    x = functional.conv2d(x, rows.expand(channels, 1, -1, 1), groups=channels)
    return functional.conv2d(x, columns.expand(channels, 1, 1, -1), groups=channels) * gain


def double(x: Tensor, taps: Sequence[float]) -> Tensor:
    """U(x): twice the side, gain 4."""
    left = doubling_left_pad(len(taps))
    # 2 H + left + right - (n - 1) = 2 H
    return upfirdn(x, taps, up=2, pads=(left, len(taps) - 1 - left), gain=4.0)
