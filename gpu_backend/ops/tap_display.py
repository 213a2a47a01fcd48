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

from gpu_backend.quick_dataclass import dataclass

TAP_NUMBERS = 5
LEAST, MOST = 1e-8, 1e8
"""Bounds of a channel's divisor."""


@dataclass(frozen=True, slots=True)
class TapDisplay:
    """Parameters of the operation."""

    channels: int
    resolution: int

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the bytes."""
        return (batch, self.resolution, self.resolution, 4)

    def statistics_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the statistics: rows R, G, B, all channels; columns mean, standard deviation, minimum, maximum."""
        return (batch, 4, 4)

    def values_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the values of the first channel that is shown."""
        return (batch, self.resolution, self.resolution)

    def flops(self, batch: int) -> int:
        """Six for each value for the statistics, three for each displayed value."""
        return batch * self.resolution**2 * (6 * self.channels + 9)

    def nbytes(self, batch: int) -> int:
        """Reads all channels for the statistics and three again for the bytes; writes the bytes and one channel."""
        return 4 * batch * self.resolution**2 * (self.channels + 5)
