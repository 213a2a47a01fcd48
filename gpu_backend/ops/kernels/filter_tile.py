"""How a fused filtered activation is cut into blocks of threads. The sizes are those of ``filtered_lrelu.cu``."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

TAPS = 6
"""Of a phase of the filter before the activation; the one after it has twice as many."""

_CHANNELS = 16
_PIXEL = 2 * _CHANNELS
_ROWS = 8
"""Rows of output of a step."""

_TILES = (3, 5, 7, 9)
_STAGES = {2: 1, 4: 2}
"""Steps that are copied ahead, by `up`: with few new rows a step, one would not do."""

_WARPS = 16
"""Of a multiprocessor: a thread has 128 registers."""

_RESERVED_NBYTES = 1024
"""Shared memory that the system takes of every block."""

_WAITS = 1.0
"""What a multiprocessor with a single warp a scheduler waits, as a share of its work."""

_SCHEDULERS = 4
_LONGEST_SEGMENT = 256
_MOST_SEGMENTS = 64


@dataclass(frozen=True, slots=True)
class FilterShape:
    """What there is to compute: sides, padded channels, pictures; `phase` is the first sample's place in its group."""

    out_size: int
    channels: int
    batch: int
    up: int
    phase: int
    is_radial: bool


@dataclass(frozen=True, slots=True)
class FilterTile:
    """One way to cut it.

    Attributes
    ----------
    tiles
        Warps of a block, each with 16 activated columns of a strip.
    segment
        Rows of output of a block, a multiple of 8.
    blocks
        How many a multiprocessor is meant to hold.
    """

    tiles: int
    segment: int
    blocks: int

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
        """Steps whose samples have a place in shared memory."""
        return _STAGES[self.shape.up]

    @property
    def width(self) -> int:
        """Columns of output of a strip."""
        return 8 * (self.tile.tiles - 1)

    @property
    def channels(self) -> int:
        """Channels of a block."""
        return _CHANNELS

    @property
    def steps(self) -> int:
        """Steps of a block; those before the first that is activated count little."""
        return -(-self.tile.segment // _ROWS) + 1

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: of channels, strips times segments, pictures."""
        side = self.shape.out_size
        across = -(-side // self.width) * -(-side // self.tile.segment)
        return -(-self.shape.channels // self.channels), across, self.shape.batch

    @property
    def shared_nbytes(self) -> int:
        """Shared memory that a launch asks for."""
        return _shared_nbytes(self.shape, self.tile.tiles)


@functools.cache
def choose_filter_tile(shape: FilterShape, multiprocessors: int, shared_nbytes: int) -> FilterGeometry:
    """Return the tile with which the busiest multiprocessor has the least to do.

    Raises
    ------
    ValueError
        If none fits `shared_nbytes`; the sentence says so, for people.
    """

    def cost(geometry: FilterGeometry) -> tuple[float, int]:
        channels, across, pictures = geometry.grid
        blocks = -(-channels * across * pictures // multiprocessors)
        at_once = min(blocks, geometry.tile.blocks) * geometry.tile.tiles / _SCHEDULERS
        return blocks * geometry.tile.tiles * (geometry.steps + 0.5) * (1.0 + _WAITS / at_once), geometry.tile.tiles

    found = list(_geometries(shape, shared_nbytes))
    if not found:
        raise ValueError("no fused filter fits a block's shared memory")
    return min(found, key=cost)


def _geometries(shape: FilterShape, shared_nbytes: int) -> Iterator[FilterGeometry]:
    fewest = -(-shape.out_size // _LONGEST_SEGMENT)
    segments = {-(-shape.out_size // count) for count in range(fewest, _MOST_SEGMENTS + 1)}
    for tiles in _TILES:
        blocks = min(shared_nbytes // (_shared_nbytes(shape, tiles) + _RESERVED_NBYTES), _WARPS // tiles)
        if blocks >= 1:
            for segment in sorted({-(-rows // _ROWS) * _ROWS for rows in segments}):
                yield FilterGeometry(shape, FilterTile(tiles, segment, blocks))


def _shared_nbytes(shape: FilterShape, tiles: int) -> int:
    new = 16 // shape.up
    window = TAPS + new
    stage = new * (new * (tiles - 1) + window) * _PIXEL
    kept = (2 if shape.is_radial else 1) * _ROWS * (tiles * 16 * _PIXEL + 16)
    ring = tiles * (8 + new) * (16 * _PIXEL + 16)
    return _STAGES[shape.up] * stage + kept + ring
