"""A layer as a picture: one channel as grey, or three as R, G, B, in `to_display`'s order of bytes.

    x     = x / clip(max |x|, 1e-8, 1e8)                                   each channel by itself, if asked for
    byte  = trunc(clamp(gain x * 127.5 + 128, 0, 255))

`tap` holds five numbers that a hand may change without a new plan: the channels that R, G and B take, the gain, and 1
for normalised or 0.
"""

from __future__ import annotations

from dataclasses import dataclass

TAP_NUMBERS = 5
LEAST, MOST = 1e-8, 1e8
"""Bounds of what a channel is divided by."""


@dataclass(frozen=True, slots=True)
class TapDisplay:
    """Settings."""

    channels: int
    resolution: int

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (batch, self.resolution, self.resolution, 4)

    def flops(self, batch: int) -> int:
        """A maximum, a product and a sum a value of three channels."""
        return 9 * batch * self.resolution**2

    def nbytes(self, batch: int) -> int:
        """Three channels in, bytes out."""
        return 16 * batch * self.resolution**2
