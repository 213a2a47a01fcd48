"""Display of a tapped layer: one channel as grey, or three as R, G, B, in the byte order of `to_display`.

    x     = x / clip(max |x|, 1e-8, 1e8)                                   per channel, if the tap is normalised
    byte  = trunc(clamp(gain x * 127.5 + 128, 0, 255))

The input `tap` holds five numbers that may change without a new plan: the channels shown as R, G and B, the gain, and
1 for normalised or 0.

A second output holds statistics of x: mean, population standard deviation, minimum and maximum, one row for each of
R, G and B and one for all channels. A third output holds the values of the channel shown as R. Values that are not
finite make the statistics of their row not finite.
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
        """Shape of the statistics: what R, G and B show, all channels; mean, standard deviation, least, largest."""
        return (batch, 4, 4)

    def values_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the channel's numbers."""
        return (batch, self.resolution, self.resolution)

    def flops(self, batch: int) -> int:
        """Six a number for the statistics, three a number that is shown for its byte."""
        return batch * self.resolution**2 * (6 * self.channels + 9)

    def nbytes(self, batch: int) -> int:
        """All channels in for the statistics, three once more for the bytes; bytes and one channel out."""
        return 4 * batch * self.resolution**2 * (self.channels + 5)
