"""How a fused filtered activation is cut into blocks of threads. The sizes are those of ``filtered_lrelu.cu``."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

TAPS = 6
"""Of a phase of the filter before the activation; the one after it has twice as many."""

_WIDE = 2
"""Words of a thread."""

_BLOCKS = {2: 4, 4: 3}
"""How many a multiprocessor is meant to hold, by `up`, which bounds a thread's registers."""

_WIDTHS = ((32, 8), (64, 4))
"""Groups of columns and words of channels of a block."""

_SHORT_READS = 1.25
"""What 16 bytes of a pixel at a time cost more than 32: half of every sector is somebody else's."""

_LONGEST_SEGMENT = 256
"""Rows of output. Blocks of one strip drift apart as they walk; what one wrote of a pixel has to be at hand still."""

_WAITS = 0.5
"""What a block that is alone on its multiprocessor waits, as a share of its work; of several, by their square less."""

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
    groups
        Groups of columns of a strip, `up` activated samples each.
    words
        Words of two channels.
    segment
        Rows of output of a block, even.
    blocks
        How many a multiprocessor is meant to hold.
    """

    groups: int
    words: int
    segment: int
    blocks: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.groups * self.words // _WIDE


@dataclass(frozen=True, slots=True)
class FilterGeometry:
    """A tile on a shape."""

    shape: FilterShape
    tile: FilterTile

    @property
    def width(self) -> int:
        """Columns of output of a strip."""
        outputs = self.shape.up // 2
        samples = self.shape.up * self.tile.groups - 2 * TAPS - self.shape.phase
        return (samples // 2 + 1) // outputs * outputs

    @property
    def steps(self) -> int:
        """Steps of a block, each with one barrier."""
        shape = self.shape
        groups = -(-(2 * self.tile.segment + 2 * TAPS - 2 + shape.phase) // shape.up)
        return -(-(groups + TAPS - 1) * shape.up // 4)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: of channels, strips times segments, pictures."""
        side = self.shape.out_size
        across = -(-side // self.width) * -(-side // self.tile.segment)
        return -(-self.shape.channels // (2 * self.tile.words)), across, self.shape.batch


@functools.cache
def choose_filter_tile(shape: FilterShape, multiprocessors: int) -> FilterGeometry:
    """Return the tile that gives a multiprocessor the fewest steps, and enough blocks at a time to hide their waits."""

    def cost(geometry: FilterGeometry) -> tuple[float, int]:
        channels, across, pictures = geometry.grid
        blocks = -(-across * channels * pictures // multiprocessors)
        waits = 1.0 + _WAITS / min(blocks, geometry.tile.blocks) ** 2
        reads = 1.0 if geometry.tile.words == 8 else _SHORT_READS
        return blocks * geometry.steps * waits * reads, -geometry.tile.segment

    return min(_geometries(shape), key=cost)


def _geometries(shape: FilterShape) -> Iterator[FilterGeometry]:
    fewest = -(-shape.out_size // _LONGEST_SEGMENT)
    segments = {-(-shape.out_size // count) for count in range(fewest, _MOST_SEGMENTS + 1)}
    for groups, words in _WIDTHS:
        for segment in sorted({rows + rows % 2 for rows in segments}):
            yield FilterGeometry(shape, FilterTile(groups, words, segment, _BLOCKS[shape.up]))
