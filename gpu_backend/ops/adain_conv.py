"""A 3 x 3 convolution of StyleGAN1 without modulation, followed by `adain`.

x[o] = sqrt(2 / (9 in_channels)) sum_i conv(x[i], W[o, i])
"""

from __future__ import annotations

from gpu_backend.ops.adain import NORMAL_FLOPS
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AdainConv:
    """Parameters of the operation.

    Attributes
    ----------
    resolution
        Side of input and output.
    style_offset
        Offset of this layer's scales, followed by its shifts, in the rows of the ``styles`` buffer.
    noise_index
        Index in ``noise_gain``; -1 for a layer without noise.
    epsilon
        Added to the variance.
    """

    in_channels: int
    out_channels: int
    resolution: int
    style_offset: int
    noise_index: int
    act: BiasAct
    epsilon: float

    @property
    def kernel(self) -> int:
        """Side of the kernel."""
        return 3

    @property
    def pad(self) -> int:
        """Zeros around the input."""
        return 1

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.out_channels)

    def flops(self, batch: int) -> int:
        """Two for each multiply-add of the direct convolution, and those of the normalisation."""
        return batch * self.resolution**2 * self.out_channels * (18 * self.in_channels + NORMAL_FLOPS)

    def nbytes(self, batch: int) -> int:
        """Activations, noise and weights, each once."""
        area, channels = self.resolution**2, self.in_channels + self.out_channels
        noise = area if self.noise_index >= 0 else 0
        return 4 * (batch * area * channels + noise + 9 * self.in_channels * self.out_channels)
