"""toRGB: a styled 1 x 1 convolution without demodulation, clamp, and the upsampled picture of the previous block.

image = U(previous) + gain clamp(sum_i W[o, i] s[i] x[i] + b[o])     s includes 1 / sqrt(in_channels)

In StyleGAN1 there is no style: s = 1 / sqrt(in_channels).
"""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

UNSTYLED = -1
"""Style offset of a layer without a style."""


@dataclass(frozen=True, slots=True)
class ToRgb:
    """Parameters. With `adds_image` the last input is the picture of half the side, upsampled with `taps`."""

    in_channels: int
    out_channels: int
    resolution: int
    style_offset: int
    clamp: float | None
    taps: tuple[float, ...]
    adds_image: bool
    gain: float = 1.0

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, self.out_channels)

    def flops(self, batch: int) -> int:
        """The 1 x 1 convolution and the doubling."""
        doubling = len(self.taps) if self.adds_image else 0
        return 2 * batch * self.resolution**2 * self.out_channels * (self.in_channels + doubling)

    def nbytes(self, batch: int) -> int:
        """Activations and both pictures, each once."""
        area = self.resolution**2
        pictures = self.out_channels * (area + (area // 4 if self.adds_image else 0))
        return 4 * (batch * (area * self.in_channels + pictures) + self.in_channels * self.out_channels)
