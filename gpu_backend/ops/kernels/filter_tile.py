"""How a fused filtered activation is divided among thread blocks. The sizes are those of ``filtered_lrelu.cu``."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from gpu_backend.ops.kernels.conv_tile import NoTileError
from gpu_backend.quick_dataclass import dataclass

TAPS = 6
"""Of a phase of the filter before the activation; the one after it has twice as many."""

_EIGHT = 8
_CHANNELS = 2 * _EIGHT
_PIXEL = 2 * _CHANNELS
_ROWS = 8
"""Rows of output of a step."""

_RING_ROWS = 16
"""Of samples that a warp has filtered along the row."""

_TILES = range(3, 9)
_STAGES = {2: 1, 4: 2}
"""Steps that are copied ahead, by `up`: with few new rows per step, one would not do."""

_WARPS = {0: 16, 1: 16, 2: 12}
"""Of a multiprocessor, by `rank`: a thread has 128 registers, or with two products' sums 168."""

_RESERVED_NBYTES = 1024
"""Shared memory that the system takes of every block."""

_WAITS = 1.5
"""Idle time of a wave of blocks, relative to the work of a block that has one warp per scheduler."""

_MEETINGS = 0.5
"""Barrier waits of a single block of two passes, relative to its work; with more blocks, others run meanwhile."""

_SCHEDULERS = 4
_STEPS_TOGETHER = 10
_DRIFT = 0.05
"""Blocks that write halves of the same sectors stay in step for `_STEPS_TOGETHER`; each further one costs this much."""

_LONGEST_SEGMENT = 256
_MOST_SEGMENTS = 64


@dataclass(frozen=True, slots=True)
class FilterShape:
    """The work of a filtered activation.

    Attributes
    ----------
    out_size, channels, batch
        Side, channels with padding, pictures.
    phase
        The first sample's place among the `up` of its group.
    rank
        Of how many products of both axes the filter after the activation is the sum; 0: of more than two.
    picture_channels
        Of the picture if the kernel computes a part of toRGB; 0 if it does not.
    stores_fp8
        Whether the output is e4m3.
    """

    out_size: int
    channels: int
    batch: int
    up: int
    phase: int
    rank: int
    picture_channels: int = 0
    stores_fp8: bool = False


@dataclass(frozen=True, slots=True)
class FilterTile:
    """How a filtered activation is divided among thread blocks.

    Attributes
    ----------
    tiles
        Warps of a block, each with 16 activated columns of a column tile.
    segment
        Rows of output of a block, a multiple of 8.
    min_blocks
        Blocks that a multiprocessor is to hold at once.
    """

    tiles: int
    segment: int
    min_blocks: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.tiles


@dataclass(frozen=True, slots=True)
class FilterGeometry:
    """A tile on a shape."""

    shape: FilterShape
    tile: FilterTile

    @property
    def stages(self) -> int:
        """Steps whose samples are in shared memory at a time."""
        return _STAGES[self.shape.up]

    @property
    def width(self) -> int:
        """Columns of output of a column tile."""
        return 8 * (self.tile.tiles - 1)

    @property
    def channels(self) -> int:
        """Channels of a block."""
        return _CHANNELS

    @property
    def picture_parts(self) -> int:
        """Parts of toRGB, one for the channels of a block."""
        return -(-self.shape.channels // self.channels)

    @property
    def halves_sectors(self) -> bool:
        """Whether two blocks write halves of the same memory sectors, and writing limits the kernel."""
        return self.shape.rank == 1 and -(-self.shape.channels // _EIGHT) % 2 == 1

    @property
    def steps(self) -> int:
        """Steps of a block; those before the first that is activated count little."""
        return -(-self.tile.segment // _ROWS) + 1

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: pairs of eight channels of a column tile, segments, pictures."""
        side, shape = self.shape.out_size, self.shape
        # A block's part of toRGB sums channels of one column tile.
        eights = 2 * self.picture_parts if shape.picture_channels else -(-shape.channels // _EIGHT)
        return -(-(-(-side // self.width) * eights) // 2), -(-side // self.tile.segment), shape.batch

    @property
    def shared_nbytes(self) -> int:
        """Dynamic shared memory of a launch."""
        return _shared_nbytes(self.shape, self.tile.tiles)


@functools.cache
def choose_filter_tile(shape: FilterShape, multiprocessors: int, shared_nbytes: int) -> FilterGeometry:
    """Return the tile with which the busiest multiprocessor has the least to do.

    Raises
    ------
    NoTileError
        If none fits `shared_nbytes`.
    """

    def cost(geometry: FilterGeometry) -> tuple[float, int]:
        tile, blocks = geometry.tile, -(-math.prod(geometry.grid) // multiprocessors)

        def round_of(count: int) -> float:
            meetings = _MEETINGS / count if shape.rank == 0 else 0.0
            return (count + _WAITS * _SCHEDULERS / tile.tiles) * (1.0 + meetings)

        rounds = blocks // tile.min_blocks * round_of(tile.min_blocks)
        if rest := blocks % tile.min_blocks:
            rounds += round_of(rest)
        drift = max(0, geometry.steps - _STEPS_TOGETHER) if geometry.halves_sectors else 0
        return rounds * tile.tiles * (geometry.steps + 1) * (1.0 + _DRIFT * drift), tile.tiles

    found = list(_geometries(shape, shared_nbytes))
    if not found:
        raise NoTileError("no fused filter fits a block's shared memory")
    return min(found, key=cost)


def _geometries(shape: FilterShape, shared_nbytes: int) -> Iterator[FilterGeometry]:
    fewest = -(-shape.out_size // _LONGEST_SEGMENT)
    segments = {-(-shape.out_size // count) for count in range(fewest, _MOST_SEGMENTS + 1)}
    for tiles in _TILES:
        blocks = min(shared_nbytes // (_shared_nbytes(shape, tiles) + _RESERVED_NBYTES), _WARPS[shape.rank] // tiles)
        if blocks >= 1:
            for segment in sorted({-(-rows // _ROWS) * _ROWS for rows in segments}):
                yield FilterGeometry(shape, FilterTile(tiles, segment, blocks))


def _shared_nbytes(shape: FilterShape, tiles: int) -> int:
    new = 16 // shape.up
    window = TAPS + new
    stage = new * (new * (tiles - 1) + window) * _PIXEL
    kept = max(shape.rank, 1) * _ROWS * (tiles * 16 * _PIXEL + 16)
    ring = tiles * _RING_ROWS * (16 * _PIXEL + 16)
    return _STAGES[shape.up] * stage + kept + ring
