"""Distance of a picture from a target, without a trained network: Laplacian pyramid and structural similarity."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_C1, _C2 = 0.01**2, 0.03**2
"""Of structural similarity, for values in 0..1 (Wang et al. 2004)."""
_WINDOW = 7
_LEAST_SIDE = 8


def laplacian_l1(one: Tensor, other: Tensor) -> Tensor:
    """Return the mean absolute difference of the Laplacian pyramids (Burt and Adelson 1983), each level weighted alike.

    Pictures are (batch, channels, side, side); the result is one number a sample. Every level is divided by its number
    of values, so that coarse levels, which say where things are, count as much as fine ones.
    """
    difference = one - other
    total = difference.new_zeros(len(one))
    while difference.shape[-1] >= 2 * _LEAST_SIDE:
        small = functional.avg_pool2d(difference, 2)
        band = difference - functional.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
        total = total + band.abs().mean((1, 2, 3))
        difference = small
    return total + difference.abs().mean((1, 2, 3))


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
    """Return the loss of projection, one number a sample: Laplacian L1 plus half of 1 - SSIM."""
    wanted = wanted.expand_as(found)
    return laplacian_l1(found, wanted) + 0.5 * (1.0 - ssim(found, wanted))


@torch.no_grad()
def psnr(found: Tensor, wanted: Tensor) -> float:
    """Return the peak signal-to-noise ratio in dB of pictures in -1..1, clamped as they are shown."""
    error = float((found.clamp(-1, 1) - wanted).square().mean())
    return 10.0 * float(torch.log10(torch.tensor(4.0 / max(error, 1e-12))))
