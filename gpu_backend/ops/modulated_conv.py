"""A 3 x 3 (or any odd) convolution whose input is scaled by the style and whose output is demodulated.

    y[o] = act(d[o] * sum_i conv(s[i] x[i], W[o, i]) + strength * gain * noise + b[o])

Scaling activations instead of weights (Karras et al. 2020b, section 2.2) keeps W constant, so that it is
packed once.
"""

from __future__ import annotations

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ModulatedConv:
    """Parameters of the operation.

    Attributes
    ----------
    resolution
        Side of the output, and of the input unless `padding` is given.
    style_offset, demod_offset
        Offsets of this layer in the rows of the ``styles`` and ``demod`` buffers.
    noise_index
        Index in ``noise_gain``; -1 for a layer without noise.
    padding
        Zeros around the input. None keeps the side; StyleGAN3 uses full padding (kernel - 1).
    """

    in_channels: int
    out_channels: int
    kernel: int
    resolution: int
    style_offset: int
    demod_offset: int
    noise_index: int
    act: BiasAct
    padding: int | None = None

    @property
    def pad(self) -> int:
        """Zeros around the input."""
        return self.kernel // 2 if self.padding is None else self.padding

    @property
    def in_resolution(self) -> int:
        """Side of the input."""
        return self.resolution + self.kernel - 1 - 2 * self.pad

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.out_channels)

    def flops(self, batch: int) -> int:
        """Two for each multiply-add of the direct convolution."""
        return 2 * batch * self.resolution**2 * self.kernel**2 * self.in_channels * self.out_channels

    def nbytes(self, batch: int) -> int:
        """Activations, noise and weights, each once."""
        area = self.resolution**2
        noise = area if self.noise_index >= 0 else 0
        weights = self.kernel**2 * self.in_channels * self.out_channels
        return 4 * (batch * (self.in_resolution**2 * self.in_channels + area * self.out_channels + noise) + weights)
