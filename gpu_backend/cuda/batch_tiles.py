"""The tiles of several pictures for a schedule of one: what checking a kernel on a small input needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_backend.cuda.target import Target
from gpu_backend.cuda.tiles import TileTable
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile


@dataclass(frozen=True, slots=True, eq=False)
class _BatchTiles(TileTable):
    """Answers for any batch as its table would for this one."""

    batch: int = 1

    def choose(
        self, shape: ConvShape, *, taps: int = 4, picture_channels: int = 0, has_moments: bool = False
    ) -> ConvTile:
        """Return the tile for a shape, given so many pictures of it."""
        asked = replace(shape, batch=self.batch)
        # Not super(): a dataclass with slots is another class than the one that is written here.
        return TileTable.choose(self, asked, taps=taps, picture_channels=picture_channels, has_moments=has_moments)


def target_of_batch(target: Target, batch: int) -> Target:
    """Return a target whose tiles are those that `batch` pictures at a time get."""
    table = target.tiles
    tiles = _BatchTiles(
        table.architecture, table.multiprocessors, table.tuned, table.shipped, table.shared_nbytes_per_block, batch
    )
    return replace(target, tiles=tiles)
