"""The up-convolution of StyleGAN1: pixel doubling, a 3 x 3 convolution, a blur, then `adain`.

With W as the weight of a transposed convolution, and [1, 1] for pixel doubling::

    t[o, 2i + ky, 2j + kx] += W[o, c, ky, kx] x[c, i, j]                   (2H + 1) x (2W + 1)
    u[o, v, w]              = t[v, w] + t[v, w + 1] + t[v + 1, w] + t[v + 1, w + 1]
    x[o]                    = sqrt(2 / (9 in_channels)) blur(u[o])         [1, 2, 1] / 4 per axis, zeros around u

This is the convolution of doubled pixels with W flipped. Blur and sum together are [1, 3, 3, 1] / 4, the filter of
StyleGAN2's up-convolution, except at the border, where u ends: there that filter adds a quarter of t's edge too much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend.ops.adain import NORMAL_FLOPS
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.quick_dataclass import dataclass

BLUR = (0.25, 0.5, 0.25)
"""Taps of the blur along one axis."""


@dataclass(frozen=True, slots=True)
class AdainUpConv:
    """Parameters as in AdainConv; `resolution` is the side of the output, twice that of the input.

    With `blurs_bias` the bias is added to u.
    """

    in_channels: int
    out_channels: int
    resolution: int
    style_offset: int
    noise_index: int
    act: BiasAct
    epsilon: float
    blurs_bias: bool = False

    @property
    def kernel(self) -> int:
        """Side of the kernel."""
        return 3

    @property
    def taps(self) -> tuple[float, ...]:
        """Taps of sum and blur along one axis, halved, as they apply inside the picture."""
        return (0.125, 0.375, 0.375, 0.125)

    @property
    def edge_tap(self) -> float:
        """Excess weight of t's first and last sample at the border of a picture filtered with `taps`."""
        return BLUR[0]

    @property
    def transposed_size(self) -> int:
        """Side of t."""
        return self.resolution + 1

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.out_channels)

    def flops(self, batch: int) -> int:
        """Transposed convolution, separable filter and normalisation."""
        area = self.resolution**2
        convolution = area // 4 * 9 * self.in_channels
        return batch * self.out_channels * (2 * convolution + area * (16 + NORMAL_FLOPS))

    def nbytes(self, batch: int) -> int:
        """Activations, noise and weights, each once."""
        area = self.resolution**2
        noise = area if self.noise_index >= 0 else 0
        activations = area // 4 * self.in_channels + area * self.out_channels
        return 4 * (batch * activations + noise + 9 * self.in_channels * self.out_channels)


def blurred_sum_matrix(side: int) -> NDArray[np.float64]:
    """Return the (side, side + 1) matrix that takes t to the blurred u along one axis."""
    total = np.eye(side, side + 1) + np.eye(side, side + 1, 1)
    blur = sum(tap * np.eye(side, k=shift) for shift, tap in zip((-1, 0, 1), BLUR, strict=True))
    matrix: NDArray[np.float64] = blur @ total
    return matrix


def blurred_ones(side: int) -> NDArray[np.float64]:
    """Return (side,), the blur of ones with zero padding, along one axis."""
    ones = np.ones(side)
    ones[[0, -1]] -= BLUR[0]
    return ones
