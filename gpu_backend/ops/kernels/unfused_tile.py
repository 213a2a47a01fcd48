"""How the two kernels of an unfused up-convolution are divided.

The sizes are those of ``transposed_conv.cu`` and ``up_filter.cu``.
"""

from __future__ import annotations

import math

from gpu_backend.ops.kernels.conv_tile import ALIGNMENT, ConvShape, aligned
from gpu_backend.quick_dataclass import dataclass

_TAPS = 9
_GROUP = 8
"""Channels that a thread of the filter has."""

_CHANNELS = 64
"""Output channels of a tile: sums of four phases fill the registers of three warpgroups."""

_LEAST_SIDE = 32
"""Of the output: tiles of smaller pictures are mostly empty."""

_LEAST_CHANNELS, _MANY_CHANNELS = 256, 512
"""Of the input. With fewer, storing and filtering t takes longer than its products save."""

_LEAST_ROUNDS = 8
"""Tiles that a multiprocessor computes one after another, at least, where there are not many channels."""

_LEAST_SHARE = 0.7
"""Of the multiprocessors that are busy, on average over these rounds. One of 512 channels takes 24 us on an H200."""


_BLOCKS = 3
"""Of the filter for each multiprocessor, at least, where there is a choice."""


@dataclass(frozen=True, slots=True)
class TransposedGeometry:
    """A division of the products.

    Attributes
    ----------
    shape
        Of the up-convolution.
    rows, columns
        Positions of a tile, sixteen of each of `warps` warps at most.
    channels
        Output channels of a tile.
    depth
        Input channels of a step.
    stages
        Steps in shared memory.
    ahead
        Steps whose copies run ahead of the products.
    """

    shape: ConvShape
    rows: int
    columns: int
    channels: int
    depth: int
    stages: int
    warps: int
    ahead: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def tiles(self) -> int:
        """Tiles of all pictures."""
        positions = self.shape.positions_side + 1
        area = -(-positions // self.rows) * -(-positions // self.columns)
        return area * -(-self.shape.cout // self.channels) * self.shape.batch

    @property
    def patch(self) -> tuple[int, int, int]:
        """Channels, columns and rows of input of a step of a tile."""
        return self.depth, -(-(self.columns + 1) // 8) * 8, self.rows + 1

    @property
    def dynamic_nbytes(self) -> int:
        """Shared memory that a launch asks for."""
        depth, columns, rows = self.patch
        row_nbytes = depth * self.shape.itemsize
        stage = aligned(row_nbytes * columns * rows) + aligned(row_nbytes * _TAPS * self.channels)
        return self.stages * stage + ALIGNMENT

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares, at most."""
        return 4 * self.warps * self.channels + 16 * self.stages + 64

    @property
    def macros(self) -> dict[str, int]:
        """Macros of the kernel for these choices."""
        return {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "CHANNELS": self.channels,
            "DEPTH": self.depth,
            "STAGES": self.stages,
            "WARPS": self.warps,
            "AHEAD": self.ahead,
            "SHARED_NBYTES": self.dynamic_nbytes,
        }


@dataclass(frozen=True, slots=True)
class FilterGeometry:
    """A division of the filter and the epilogue.

    Attributes
    ----------
    shape
        Of the up-convolution.
    columns, rows
        Outputs of a thread.
    depth, width
        Channels and columns of outputs of a block.
    stages
        Pairs of rows in shared memory.
    min_blocks
        Blocks that a multiprocessor is to hold at once.
    """

    shape: ConvShape
    columns: int
    rows: int
    depth: int
    width: int
    stages: int
    min_blocks: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.width // self.columns * (self.depth // _GROUP)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: columns times rows, output channels, pictures."""
        side = self.shape.side
        across, down = -(-side // self.width), -(-side // self.rows)
        return across * down, -(-self.shape.cout // self.depth), self.shape.batch

    @property
    def box(self) -> tuple[int, int, int]:
        """Channels, columns and rows of a copy."""
        return self.depth, self.width + 3, 1

    @property
    def dynamic_nbytes(self) -> int:
        """Shared memory that a launch asks for."""
        depth, columns, _ = self.box
        return self.stages * 2 * aligned(self.shape.itemsize * depth * columns) + ALIGNMENT

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares, at most."""
        return 4 * self.rows * self.width + 16 * self.stages + 64

    @property
    def macros(self) -> dict[str, int]:
        """Macros of the kernel for these choices."""
        return {
            "COLUMNS": self.columns,
            "ROWS": self.rows,
            "DEPTH": self.depth,
            "WIDTH": self.width,
            "STAGES": self.stages,
            "MIN_BLOCKS": self.min_blocks,
            "SHARED_NBYTES": self.dynamic_nbytes,
        }


def unfused_geometries(
    shape: ConvShape, multiprocessors: int, shared_nbytes_per_block: int
) -> tuple[TransposedGeometry, FilterGeometry] | None:
    """Return how to divide an up-convolution; None for shapes that one kernel computes faster."""
    if shape.kind != "up_conv":
        return None
    if shape.operands == "fp8":
        return _of_e4m3(shape, multiprocessors, shared_nbytes_per_block)
    if shape.side < _LEAST_SIDE or shape.cin < _LEAST_CHANNELS or shape.cout % _CHANNELS:
        return None
    products = TransposedGeometry(shape, 11, 17, _CHANNELS, 32, 4, 12, ahead=3)
    rounds = -(-products.tiles // multiprocessors)
    # One picture has too few tiles: a third slower at 64 x 64 and 256 x 256, as fast at 128 x 128.
    if shape.batch == 1 or products.tiles < _LEAST_SHARE * rounds * multiprocessors:
        return None
    if shape.cin < _MANY_CHANNELS and rounds < _LEAST_ROUNDS:
        return None
    if products.dynamic_nbytes + products.static_nbytes > shared_nbytes_per_block:
        return None
    return products, FilterGeometry(shape, columns=1, rows=8, depth=64, width=16, stages=3, min_blocks=8)


def _of_e4m3(
    shape: ConvShape, multiprocessors: int, shared_nbytes_per_block: int
) -> tuple[TransposedGeometry, FilterGeometry] | None:
    """Return how to divide an up-convolution that reads e4m3, and between its kernels stores it."""
    small = TransposedGeometry(shape, 7, 17, _CHANNELS, 64, 4, 8, ahead=3)
    large = TransposedGeometry(shape, 11, 17, _CHANNELS, 64, 4, 12, ahead=3)
    products = small if small.tiles <= multiprocessors else large
    if products.dynamic_nbytes + products.static_nbytes > shared_nbytes_per_block:
        return None
    # Long strips read few rows of t twice, and pairs of columns convert fewer numbers; short ones give more blocks.
    filters = (
        FilterGeometry(shape, columns=2, rows=16, depth=64, width=32, stages=3, min_blocks=6),
        FilterGeometry(shape, columns=2, rows=8, depth=64, width=16, stages=3, min_blocks=8),
        FilterGeometry(shape, columns=1, rows=8, depth=64, width=16, stages=3, min_blocks=8),
    )
    enough = _BLOCKS * multiprocessors
    return products, next((found for found in filters if math.prod(found.grid) >= enough), filters[-1])
