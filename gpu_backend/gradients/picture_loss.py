"""Distance of a picture from a target, without a trained network: mean square and structural similarity."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_C1, _C2 = 0.01**2, 0.03**2
"""Of structural similarity, for values in 0..1 (Wang et al. 2004)."""
_WINDOW = 7
_SQUARE, _STRUCTURE = 10.0, 0.1
"""Weights: at 20 dB the mean square counts more, from 35 dB on both count alike."""


def ssim(one: Tensor, other: Tensor) -> Tensor:
    """Return the structural similarity of pictures in -1..1, one number a sample; the window is at most 7 x 7."""
    one, other = (one + 1) * 0.5, (other + 1) * 0.5
    window = min(_WINDOW, one.shape[-1])

    def mean(x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, window, stride=1)

    a, b = mean(one), mean(other)
    aa, bb, ab = mean(one * one) - a * a, mean(other * other) - b * b, mean(one * other) - a * b
    luminance = (2 * a * b + _C1) / (a * a + b * b + _C1)
    structure = (2 * ab + _C2) / (aa + bb + _C2)
    return (luminance * structure).mean((1, 2, 3))


def picture_loss(found: Tensor, wanted: Tensor) -> Tensor:
    """Return the loss of projection, one number a sample: 10 times the mean square plus a tenth of 1 - SSIM.

    Both are smooth, so that L-BFGS finds their curvature; an absolute difference has a kink where pictures agree.
    """
    wanted = wanted.expand_as(found)
    return _SQUARE * (found - wanted).square().mean((1, 2, 3)) + _STRUCTURE * (1.0 - ssim(found, wanted))


@torch.no_grad()
def psnr(found: Tensor, wanted: Tensor) -> float:
    """Return the peak signal-to-noise ratio in dB of pictures in -1..1, clamped as they are shown."""
    error = float((found.clamp(-1, 1) - wanted).square().mean())
    return 10.0 * float(torch.log10(torch.tensor(4.0 / max(error, 1e-12))))
