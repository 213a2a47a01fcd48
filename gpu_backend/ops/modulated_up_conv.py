"""The up-convolution: stride-2 transposed 3 x 3 convolution, FIR filter, then as `modulated_conv`.

    t[o, 2i + ky, 2j + kx] += W[o, c, ky, kx] * s[c] x[c, i, j]          (2H + 1) x (2W + 1), weight as stored
    y = act(d * FIR(t) + strength * gain * noise + b)                    2H x 2W, FIR gain 4

(Karras et al. 2020b, appendix B; the padding rule is `up_conv_left_pad`.)
"""

from __future__ import annotations

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.quick_dataclass import dataclass

BINOMIAL_TAPS = (0.125, 0.375, 0.375, 0.125)
"""The usual filter: 1 1 with itself twice."""


@dataclass(frozen=True, slots=True)
class ModulatedUpConv:
    """Parameters as in ModulatedConv; `resolution` is the side of the output, twice that of the input."""

    in_channels: int
    out_channels: int
    kernel: int
    resolution: int
    style_offset: int
    demod_offset: int
    noise_index: int
    act: BiasAct
    taps: tuple[float, ...]

    @property
    def transposed_size(self) -> int:
        """Side of the transposed convolution's output, before the filter."""
        return self.resolution - 2 + self.kernel

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.out_channels)

    def flops(self, batch: int) -> int:
        """Transposed convolution and separable filter."""
        half = self.resolution // 2
        convolution = half**2 * self.kernel**2 * self.in_channels
        return 2 * batch * self.out_channels * (convolution + 2 * len(self.taps) * self.resolution**2)

    def nbytes(self, batch: int) -> int:
        """Activations, noise and weights, each once."""
        area = self.resolution**2
        noise = area if self.noise_index >= 0 else 0
        weights = self.kernel**2 * self.in_channels * self.out_channels
        return 4 * (batch * (area // 4 * self.in_channels + area * self.out_channels + noise) + weights)
