"""How a fused convolution is cut into blocks of threads: the choices that differ from GPU to GPU.

A block computes `rows` x `columns` positions of one picture (of the output for a convolution; of the input, halo not
counted, for an up-convolution, so four times as many output pixels) for `channels` output channels. It walks through
the input channels `depth` at a time, `stages` steps ahead of the arithmetic, and `split` blocks share the walk of one
such tile, the last to finish adding what the others found. `warps_m` x `warps_n` warps share positions and channels.

The sizes below are those of the macros of ``modulated_conv.cu`` and ``modulated_up_conv.cu``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ConvKind = Literal["conv", "up_conv"]
Instruction = Literal["mma", "wgmma"]

FRAGMENT = 16
"""Positions of one matrix fragment."""

_ALIGNMENT = 1024


@dataclass(frozen=True, slots=True)
class ConvShape:
    """What there is to compute: `side` of the output, padded channels, pictures."""

    kind: ConvKind
    side: int
    cin: int
    cout: int
    batch: int

    @property
    def positions_side(self) -> int:
        """Side of the picture that is cut into tiles."""
        return self.side // 2 if self.kind == "up_conv" else self.side


@dataclass(frozen=True, slots=True)
class ConvTile:
    """One way to cut it. `blocks` is how many a multiprocessor is meant to hold, which bounds a thread's registers."""

    rows: int
    columns: int
    channels: int
    depth: int
    stages: int
    warps_m: int
    warps_n: int
    split: int = 1
    mma: Instruction = "mma"
    blocks: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps_m * self.warps_n


@dataclass(frozen=True, slots=True)
class ConvGeometry:
    """A tile on a shape.

    Attributes
    ----------
    kernel
        Side of the kernel: 3, or 1 for resnet's skip.
    taps
        Length of the FIR filter that follows an up-convolution.
    picture_channels
        Channels of the picture that rides along; 0 for none.
    """

    shape: ConvShape
    tile: ConvTile
    kernel: int = 3
    taps: int = 4
    picture_channels: int = 0

    @property
    def halo(self) -> int:
        """Rows (and columns) of positions that an up-convolution's filter needs besides the tile's own."""
        if self.shape.kind == "conv":
            return 0
        left = 1 + (self.taps + 1) // 2 - 2
        return (left + 1) // 2 + (self.taps - left) // 2

    @property
    def positions(self) -> int:
        """Positions that a block computes, halo included."""
        return (self.tile.rows + self.halo) * (self.tile.columns + self.halo)

    @property
    def fragments_per_warp(self) -> int:
        """Fragments of positions that one warp has."""
        fragments = -(-self.positions // FRAGMENT)
        return -(-fragments // self.tile.warps_m)

    @property
    def sums_per_thread(self) -> int:
        """Registers that a thread sums in."""
        phases = 4 if self.shape.kind == "up_conv" else 1
        return phases * self.fragments_per_warp * (self.tile.channels // 8 // self.tile.warps_n) * 4

    @property
    def steps(self) -> int:
        """Steps through the input channels."""
        return -(-self.shape.cin // self.tile.depth)

    @property
    def weight_nbytes(self) -> int:
        """Packed weights of one step and one block."""
        return self.kernel**2 * self.tile.channels * self.tile.depth * 2

    @property
    def channel_blocks(self) -> int:
        """Blocks along the output channels."""
        return -(-self.shape.cout // self.tile.channels)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks: tiles of the picture, output channels, pictures times shares."""
        side = self.shape.positions_side
        tiles = -(-side // self.tile.rows) * -(-side // self.tile.columns)
        return tiles, self.channel_blocks, self.shape.batch * self.tile.split

    @property
    def counters(self) -> int:
        """Words that count the shares of each tile; 0 where nothing is shared."""
        across, channels, _ = self.grid
        return across * channels * self.shape.batch if self.tile.split > 1 else 0

    @property
    def workspace_nbytes(self) -> int:
        """Memory for what the shares of each tile found."""
        return self.counters * self.tile.split * self.sums_per_thread * self.tile.threads * 4

    @property
    def dynamic_nbytes(self) -> int:
        """Shared memory that a launch asks for."""
        tile = self.tile
        edge = self.halo + (self.kernel - 1 if self.shape.kind == "conv" else 1)
        patch = _aligned((tile.rows + edge) * (tile.columns + edge) * tile.depth * 2)
        walk = tile.stages * (patch + _aligned(self.weight_nbytes))
        if self.shape.kind == "up_conv":
            end = 4 * self.positions * tile.channels * 2
        else:
            end = self.positions * max(tile.channels * 2 + 16, tile.warps_n * self.picture_channels * 4)
        return max(walk, end) + _ALIGNMENT

    @property
    def static_nbytes(self) -> int:
        """Shared memory that the kernel itself declares."""
        pixels = self.tile.rows * self.tile.columns * (4 if self.shape.kind == "up_conv" else 1)
        return 4 * (self.tile.channels * (3 + self.picture_channels) + pixels) + 16

    def fits(self, architecture: str, shared_nbytes_per_block: int) -> bool:
        """Whether the kernel can be compiled and launched so."""
        tile, side = self.tile, self.shape.positions_side
        warp_channels = tile.channels // tile.warps_n
        if (
            tile.depth not in (16, 32, 64)
            or tile.channels not in (16, 32, 64, 128)
            or tile.stages < 2
            or tile.split < 1
        ):
            return False
        if warp_channels * tile.warps_n != tile.channels or warp_channels % 16 or tile.threads > 1024:
            return False
        if self.shape.kind == "conv":
            if side % tile.rows or side % tile.columns or (tile.columns >= 16 and tile.columns % 16):
                return False
            if self.positions % (FRAGMENT * tile.warps_m):
                return False
            if tile.columns >= 16 and self.kernel == 3 and tile.rows % self.fragments_per_warp:
                return False
        elif tile.rows > side or tile.columns > side:
            return False
        if tile.mma == "wgmma" and (architecture != "sm_90a" or tile.warps_m % 4 or warp_channels > 128):
            return False
        if architecture == "sm_75" and tile.blocks * tile.threads > 1024:
            return False
        registers = 65536 // (tile.threads * tile.blocks)
        if self.sums_per_thread + 40 > min(registers, 255):
            return False
        return self.dynamic_nbytes + self.static_nbytes <= shared_nbytes_per_block


def default_tile(
    shape: ConvShape,
    architecture: str,
    multiprocessors: int,
    *,
    kernel: int = 3,
    taps: int = 4,
    shared_nbytes: int = 65536,
) -> ConvTile:
    """Return a tile by rule of thumb, for shapes that no table knows: blocks as large as still fill the GPU.

    Raises
    ------
    ValueError
        If no tile fits, which `plain` kernels need not care about: an FIR filter too long for shared memory.
    """
    side = shape.positions_side
    channels = 64 if shape.cout > 32 else 32 if shape.cout > 16 else 16
    choices = []
    for edge in (16, 8, 4):
        if edge > side:
            continue
        for width in sorted({channels, min(channels, 32), 16}, reverse=True):
            for warps_m, warps_n in ((4, 2), (4, 1), (2, 2), (2, 1), (1, 4), (1, 2), (1, 1)):
                for depth in (32, 16):
                    tile = ConvTile(edge, edge, width, depth, 2, warps_m, warps_n)
                    if ConvGeometry(shape, tile, kernel, taps, 4).fits(architecture, min(shared_nbytes, 65536)):
                        choices.append(tile)
    if not choices:
        raise ValueError(f"no tile of a fused convolution fits {shape} with {taps} taps")
    full = [tile for tile in choices if _blocks(shape, tile) >= multiprocessors]
    tile = (
        full[0] if full else max(choices, key=lambda tile: (min(_blocks(shape, tile), multiprocessors), tile.threads))
    )
    split = 1
    while _blocks(shape, tile) * split * 2 <= multiprocessors and split * 2 * tile.depth <= shape.cin:
        split *= 2
    return ConvTile(tile.rows, tile.columns, tile.channels, tile.depth, tile.stages, tile.warps_m, tile.warps_n, split)


def _blocks(shape: ConvShape, tile: ConvTile) -> int:
    across, channels, pictures = ConvGeometry(shape, tile).grid
    return across * channels * pictures


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT
