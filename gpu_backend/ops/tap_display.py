"""A layer as a picture: one channel as grey, or three as R, G, B, in `to_display`'s order of bytes.

    x     = x / clip(max |x|, 1e-8, 1e8)                                   each channel by itself, if asked for
    byte  = trunc(clamp(gain x * 127.5 + 128, 0, 255))

`tap` holds five numbers that a hand may change without a new plan: the channels that R, G and B take, the gain, and 1
for normalised or 0.

Beside the bytes there are figures of x itself: mean, standard deviation of the population, least and largest, one row
each for what R, G and B show and one for all channels; and the numbers of the channel that R shows. Where a number is
not finite, the figures are not either.
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
        """Shape of the bytes."""
        return (batch, self.resolution, self.resolution, 4)

    def statistics_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the figures: what R, G and B show, all channels; mean, standard deviation, least, largest."""
        return (batch, 4, 4)

    def values_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the channel's numbers."""
        return (batch, self.resolution, self.resolution)

    def flops(self, batch: int) -> int:
        """Six a number for the figures, three a number that is shown for its byte."""
        return batch * self.resolution**2 * (6 * self.channels + 9)

    def nbytes(self, batch: int) -> int:
        """All channels in for the figures, three once more for the bytes; bytes and one channel out."""
        return 4 * batch * self.resolution**2 * (self.channels + 5)
