"""The first layer of StyleGAN1: `adain` of the learned constant, without a convolution."""

from __future__ import annotations

from gpu_backend.ops.adain import NORMAL_FLOPS
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AdainInput:
    """Parameters as in AdainConv."""

    out_channels: int
    resolution: int
    style_offset: int
    noise_index: int
    act: BiasAct
    epsilon: float

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.out_channels)

    def flops(self, batch: int) -> int:
        """The normalisation."""
        return batch * self.resolution**2 * self.out_channels * NORMAL_FLOPS

    def nbytes(self, batch: int) -> int:
        """Activations and noise, each once."""
        area = self.resolution**2
        return 4 * (2 * batch * area * self.out_channels + (area if self.noise_index >= 0 else 0))
