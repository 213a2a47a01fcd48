"""Bending: some channels of a layer's output are moved, turned, scaled, cut off and multiplied.

    v      = x(M p)                          bilinear; beyond its edges x is mirrored
    y      = gain * (v if |v| >= threshold else 0)

p is a position in widths from the centre of the layer, right and down, and M the 2 x 3 matrix of its channel, which
maps a position of the output to one of the input. The input `bend/<layer>` holds `BEND_NUMBERS` numbers per channel:
the matrix, row by row, threshold, gain. They may change without a new plan.
"""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

BEND_NUMBERS = 8

AT_REST = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0)
"""Row of a channel that stays as it is."""

BEND_INPUT = "bend/"
"""Prefix of the inputs; the layer's name follows."""


@dataclass(frozen=True, slots=True)
class BendChannels:
    """Parameters of the operation."""

    channels: int
    resolution: int

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output, that of the input."""
        return (batch, self.resolution, self.resolution, self.channels)

    def flops(self, batch: int) -> int:
        """Four corners for each value, threshold and gain."""
        return 10 * batch * self.resolution**2 * self.channels

    def nbytes(self, batch: int) -> int:
        """A read and a write for each value."""
        return 8 * batch * self.resolution**2 * self.channels
