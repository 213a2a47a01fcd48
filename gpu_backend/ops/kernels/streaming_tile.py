"""How a streaming up-convolution is divided among warps and blocks; the sizes are those of ``streaming_up_conv.cu``.

A warp goes down a strip of 14 columns of positions. A warpgroup of four warps has `strips` strips side by side and
4 / `strips` segments of `rows` rows, one below the other; a block has `warpgroups` warpgroups, one below the other.
"""

from __future__ import annotations

from gpu_backend.ops.kernels.conv_tile import ALIGNMENT, ROW_NBYTES, ConvShape, aligned
from gpu_backend.quick_dataclass import dataclass

STRIP_COLUMNS = 14
"""Columns of positions whose outputs a fragment of sixteen yields: the FIR filter reads one more on either side."""

MOST_CHANNELS = 128
"""With more input channels, the weights of a block leave no shared memory for its rows of activations."""

MOST_CHANNELS_WITH_MOMENTS = 64
"""The same where a block sums moments; more were not measured."""

_DIVISIONS = ((1, 3, 4), (1, 3, 3), (3, 1, 4), (3, 1, 3))
_WITH_MOMENTS = {16: ((1, 4, 4), (1, 4, 3)), 32: ((1, 2, 4), (1, 2, 3))}
"""Warpgroups, blocks a multiprocessor and stages; the first that fit. With moments, by output channels of a block: they
take registers."""

_TAPS = 9
_LEAST_SIDE = 64
_MOST_ROWS = 64
_PROLOGUE_ROWS = 2
"""Start-up cost of a block (weights and first rows), in rows of positions."""
_BLOCK_NBYTES = 1024
"""Shared memory that the system takes of each block."""


@dataclass(frozen=True, slots=True)
class StreamingGeometry:
    """A division of a shape.

    Attributes
    ----------
    shape
        Of an up-convolution.
    channels
        Output channels of a block: 16 or 32.
    depth
        Input channels of a box of activations: 32, 64 or 128 bytes.
    strips
        Strips of a warpgroup side by side: 1, 2 or 4.
    rows
        Rows of positions of a segment.
    stages
        Rows of activations in shared memory for each segment.
    min_blocks
        Blocks that a multiprocessor is to hold at once.
    has_moments
        Whether a block sums moments of its outputs, for a StyleGAN1.
    """

    shape: ConvShape
    channels: int
    depth: int
    strips: int
    rows: int
    warpgroups: int
    stages: int
    min_blocks: int
    has_moments: bool = False

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128 * self.warpgroups

    @property
    def steps(self) -> int:
        """Boxes of input channels."""
        return -(-self.shape.cin // self.depth)

    @property
    def pairs(self) -> int:
        """Pairs of columns of a box of activations."""
        return 7 * self.strips + 2

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: columns times rows, output channels, pictures."""
        side = self.shape.positions_side
        across = -(-side // (self.strips * STRIP_COLUMNS))
        down = -(-side // (self.warpgroups * (4 // self.strips) * self.rows))
        return across * down, -(-self.shape.cout // self.channels), self.shape.batch

    @property
    def part(self) -> tuple[int, int]:
        """Rows and columns of outputs of a block."""
        return 2 * self.warpgroups * (4 // self.strips) * self.rows, 2 * self.strips * STRIP_COLUMNS

    @property
    def dynamic_nbytes(self) -> int:
        """Shared memory that a launch asks for."""
        row_nbytes = self.depth * self.shape.itemsize
        weights = self.steps * aligned(_TAPS * self.channels * row_nbytes)
        row = (4 // self.strips) * self.steps * aligned(2 * self.pairs * row_nbytes)
        return weights + self.warpgroups * self.stages * row + ALIGNMENT

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares, at most."""
        moments = 48 * self.channels if self.has_moments else 0
        return 10 * self.channels + 16 * (self.warpgroups * self.stages + 1) + 64 + moments

    @property
    def macros(self) -> dict[str, int]:
        """Macros of the kernel for these choices."""
        return {
            "CHANNELS": self.channels,
            "DEPTH": self.depth,
            "STEPS": self.steps,
            "STRIPS": self.strips,
            "ROWS": self.rows,
            "WARPGROUPS": self.warpgroups,
            "STAGES": self.stages,
            "MIN_BLOCKS": self.min_blocks,
            "SHARED_NBYTES": self.dynamic_nbytes,
            "HAS_MOMENTS": int(self.has_moments),
        }


def streaming_geometry(
    shape: ConvShape, multiprocessors: int, shared_nbytes_per_block: int, *, has_moments: bool = False
) -> StreamingGeometry | None:
    """Return how to divide an up-convolution; None for shapes that another kernel computes faster."""
    side, most = shape.positions_side, MOST_CHANNELS_WITH_MOMENTS if has_moments else MOST_CHANNELS
    if shape.kind != "up_conv" or shape.cin > most or side < _LEAST_SIDE or side % 2:
        return None
    channels = 32 if shape.cout > 16 else 16
    depths = [nbytes // shape.itemsize for nbytes in ROW_NBYTES]
    depth = next(depth for depth in depths if depth >= min(shape.cin, depths[-1]))
    best: tuple[float, StreamingGeometry] | None = None
    for warpgroups, blocks, stages in _WITH_MOMENTS[channels] if has_moments else _DIVISIONS:
        for rows in range(4, min(side, _MOST_ROWS) + 1):
            found = StreamingGeometry(shape, channels, depth, 2, rows, warpgroups, stages, blocks, has_moments)
            block_nbytes = found.dynamic_nbytes + found.static_nbytes
            if block_nbytes * blocks + (blocks - 1) * _BLOCK_NBYTES > shared_nbytes_per_block:
                break
            across, channel_blocks, pictures = found.grid
            waves = -(-across * channel_blocks * pictures // (multiprocessors * blocks))
            cost = float(waves * (rows + 2 + _PROLOGUE_ROWS))
            if best is None or cost < best[0]:
                best = cost, found
        if best is not None:
            return best[1]
    return None
