"""The resnet block's skip: 1 x 1 convolution without bias, doubled, times sqrt(1/2).

y = gain * U(sum_i W[o, i] / sqrt(in_channels) * x[i])
"""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SkipConv:
    """Settings; `resolution` is the side of the output, twice that of the input."""

    in_channels: int
    out_channels: int
    resolution: int
    gain: float
    taps: tuple[float, ...]

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.out_channels)

    def flops(self, batch: int) -> int:
        """The convolution at the low resolution (it commutes with U) and the doubling."""
        area = self.resolution**2
        return 2 * batch * self.out_channels * (area // 4 * self.in_channels + area * len(self.taps))

    def nbytes(self, batch: int) -> int:
        """Activations and weights, each once."""
        area = self.resolution**2
        activations = area // 4 * self.in_channels + area * self.out_channels
        return 4 * (batch * activations + self.in_channels * self.out_channels)
