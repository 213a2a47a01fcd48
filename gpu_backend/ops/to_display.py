"""Pixels in Qt's format: (batch, height, width, 4) uint8 with B, G, R, X (or A) in memory.

    byte = trunc(clamp(x * 127.5 + middle, 0, 255))            128 in the official tools, 127.5 in StyleGAN-XL's

One channel is replicated as grey; three are R, G, B; a fourth is alpha and becomes the fourth byte, which is 255
otherwise. With any other number of channels the first is shown as grey.
"""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

OPAQUE = 255
MIDDLE = 128.0
MIDDLE_XL = 127.5


@dataclass(frozen=True, slots=True)
class ToDisplay:
    """Parameters of the operation."""

    channels: int
    resolution: int
    middle: float = MIDDLE

    @property
    def sources(self) -> tuple[int, int, int, int | None]:
        """Channel that each of the bytes B, G, R, A takes; None for opaque."""
        if self.channels == 3:
            return (2, 1, 0, None)
        if self.channels == 4:
            return (2, 1, 0, 3)
        return (0, 0, 0, None)

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, 4)

    def flops(self, batch: int) -> int:
        """One multiply-add for each value."""
        return 2 * batch * self.resolution**2 * self.channels

    def nbytes(self, batch: int) -> int:
        """Floats in, bytes out."""
        return 4 * batch * self.resolution**2 * (self.channels + 1)
