"""Tiles for convolutions whose shape is in no table: by rule of thumb, or adapted from a measured similar shape."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace

from gpu_backend.ops.kernels.conv_tile import (
    BLOCK_CHANNELS,
    FRAGMENT,
    ROW_NBYTES,
    ConvGeometry,
    ConvShape,
    ConvTile,
    Instruction,
    NoTileError,
)

MOST_ROW_TILES = 32
"""Row tiles that a block computes at most."""

_EMPTY = 1.2
"""Ratio of computed to real channels from which another tile than the measured one of a similar shape is used."""

_AROUND_A_BLOCK = 16
"""Fixed cost of a channel block, in channels: every block loads the same activations."""

_MORE_BLOCKS = 3
"""How many numbers of blocks of channels are worth a look: the fewest that do, and those after it."""

_LOOP_OVERHEAD = 4
"""Cost of a block outside of its loop over row tiles, in steps through the input channels."""


@functools.lru_cache(maxsize=1024)  # layers of one shape come in several plans
def default_tile(
    shape: ConvShape,
    architecture: str,
    multiprocessors: int,
    *,
    taps: int = 4,
    shared_nbytes: int = 65536,
) -> ConvTile:
    """Return a tile by rule of thumb, for shapes that no table knows: blocks as large as still fill the GPU.

    Raises
    ------
    NoTileError
        If no tile fits: an FIR filter too long for shared memory.
    """
    channels = 64 if shape.cout > 32 else 32 if shape.cout > 16 else 16
    found = []
    for edge in (16, 8, 4):
        if edge > shape.positions_side:
            continue
        halo = ConvGeometry(shape, ConvTile(1, 1, 16, 16, 1, 1, 1), taps).halo
        for width in sorted({channels, min(channels, 32), 16}, reverse=True):
            for warps_m, warps_n in ((4, 2), (4, 1), (2, 2), (2, 1), (1, 4), (1, 2), (1, 1)):
                for nbytes in (64, 32):
                    depth = nbytes // shape.itemsize
                    tile = ConvTile(edge + halo, edge, width, depth, 2, warps_m, warps_n)
                    geometry = ConvGeometry(shape, tile, taps, 8)
                    if geometry.fits(architecture, min(shared_nbytes, 32768 * shape.itemsize)):
                        found.append(geometry)
    if not found:
        raise NoTileError(f"no fused kernel fits a block's shared memory with an FIR filter of {taps} taps")
    full = [geometry for geometry in found if geometry.blocks >= multiprocessors]
    most = max(found, key=lambda item: (min(item.blocks, multiprocessors), item.tile.threads))
    best = full[0] if full else most
    split_k = 1
    while best.blocks * split_k * 2 <= multiprocessors and split_k * 2 * best.tile.depth <= shape.cin:
        split_k *= 2
    return replace(best.tile, split_k=split_k)


def conv1x1_tile(shape: ConvShape, architecture: str, multiprocessors: int, shared_nbytes: int) -> ConvTile:
    """Return a tile for a 1 x 1 convolution of any side: deep steps, since there is one tap, and fitting row tiles.

    Raises
    ------
    NoTileError
        If no tile fits.
    """
    mma: Instruction = "wgmma" if architecture == "sm_90a" else "mma"
    usual = next(width for width in BLOCK_CHANNELS if width >= min(shape.cout, 64))
    channels = _fitting_width(shape.cout) if mma == "wgmma" else usual
    for nbytes, stages in ((128, 2), (64, 3), (64, 2), (32, 2)):
        tile = ConvTile(8, 16, channels, nbytes // shape.itemsize, stages, 4, 1, mma=mma, min_blocks=2)
        if ConvGeometry(shape, tile, 1).fits(architecture, shared_nbytes // tile.min_blocks):
            return with_fitting_row_tiles(shape, tile, multiprocessors)
    if shape.operands == "fp8":
        return fp8_tile(shape, architecture, multiprocessors, shared_nbytes)
    return default_tile(shape, architecture, multiprocessors, taps=1, shared_nbytes=shared_nbytes)


def fp8_tile(shape: ConvShape, architecture: str, multiprocessors: int, shared_nbytes: int) -> ConvTile:
    """Return a tile for e4m3: two blocks a multiprocessor, so that one multiplies during the other's epilogue.

    Of mma they have at most 32 channels: GPUs that multiply e4m3 so have 100 KiB of shared memory for both.

    Raises
    ------
    NoTileError
        If no tile fits.
    """
    mma: Instruction = "wgmma" if architecture == "sm_90a" else "mma"
    widest = 64 if mma == "wgmma" else 32
    most = next(width for width in BLOCK_CHANNELS if width >= min(shape.cout, widest))
    widths = [width for width in reversed(BLOCK_CHANNELS) if width <= most]
    for channels, (blocks, stages) in itertools.product(widths, ((2, 3), (2, 2), (1, 2))):
        warps = (2, 2) if mma == "mma" and channels == widest else (4, 1)
        tile = ConvTile(8, 16, channels, ROW_NBYTES[0], stages, *warps, mma=mma, min_blocks=blocks)

        def fits(tile: ConvTile) -> bool:
            return ConvGeometry(shape, tile, 1, 8).fits(architecture, shared_nbytes // tile.min_blocks)

        if fits(tile):
            tile = with_fitting_row_tiles(shape, tile, multiprocessors)
            lasting = replace(tile, weights_in_smem=True)
            return lasting if mma == "mma" and tile.row_tiles > 1 and fits(lasting) else tile
    raise NoTileError("no fused kernel of e4m3 fits a block's shared memory")


def fitting_channels(cout: int, most: int = BLOCK_CHANNELS[-1]) -> tuple[int, ...]:
    """Return block widths, multiples of 8, that leave next to nothing of the last block empty; fewer blocks first."""
    least = BLOCK_CHANNELS[0]
    fewest = -(-cout // most)
    widths = (-(-cout // (8 * blocks)) * 8 for blocks in range(fewest, fewest + _MORE_BLOCKS))
    return tuple(dict.fromkeys(max(width, least) for width in widths))


def with_fitting_channels(shape: ConvShape, tile: ConvTile) -> ConvTile:
    """Return a tile whose last channel block is clearly less empty; the tile itself where none is."""
    if tile.mma != "wgmma" or shape.kind == "up_conv":
        return tile
    width = _fitting_width(shape.cout)
    if _channels_cost(shape.cout, tile.channels) <= _EMPTY * _channels_cost(shape.cout, width):
        return tile
    return replace(
        tile,
        rows=8,
        columns=32,
        channels=width,
        depth=32 // shape.itemsize,
        stages=3,
        warps_m=8,
        warps_n=1,
        split_k=1,
        min_blocks=1,
        weights_in_smem=False,
    )


def for_operands(shape: ConvShape, other: ConvShape, tile: ConvTile) -> Iterator[ConvTile]:
    """Yield another shape's tile for this shape's operands: the same bytes per step, then also half of the outputs."""
    if shape.operands == other.operands:
        yield tile
        return
    same = replace(tile, depth=tile.depth * other.itemsize // shape.itemsize)
    if shape.operands == "bf16x3":
        same = replace(same, depth=max(same.depth, FRAGMENT))
    while same.depth > shape.cin and same.depth * shape.itemsize > ROW_NBYTES[0]:
        same = replace(same, depth=same.depth // 2)
    yield same
    if same.channels > BLOCK_CHANNELS[0]:
        yield replace(same, channels=same.channels // 2)
        yield replace(same, channels=same.channels // 2, min_blocks=1)


def filling(shape: ConvShape, tile: ConvTile, multiprocessors: int) -> ConvTile:
    """Return a tile with fewer row tiles or more split-K slices, so that less than half of the GPU idles."""

    def is_idle(tile: ConvTile) -> bool:
        return 2 * ConvGeometry(shape, tile).blocks <= multiprocessors

    while tile.row_tiles > 1 and is_idle(tile):
        row_tiles = tile.row_tiles // 2
        tile = replace(tile, row_tiles=row_tiles, weights_in_smem=tile.weights_in_smem and row_tiles > 1)
    while tile.row_tiles == 1 and tile.stages > 1 and is_idle(tile) and 2 * tile.split_k * tile.depth <= shape.cin:
        tile = replace(tile, split_k=2 * tile.split_k)
    return tile


def with_fewer_slices(shape: ConvShape, tile: ConvTile, multiprocessors: int) -> ConvTile:
    """Return the tile of a smaller batch with as few split-K slices as still give every multiprocessor a block."""
    while tile.split_k > 1 and tile.stages > 1:
        fewer = replace(tile, split_k=tile.split_k // 2)
        if ConvGeometry(shape, fewer).blocks < multiprocessors:
            break
        tile = fewer
    return tile


def with_fitting_row_tiles(shape: ConvShape, tile: ConvTile, multiprocessors: int) -> ConvTile:
    """Return a convolution's tile with the number of row tiles that gives the shortest makespan on all multiprocessors.

    A picture of any side is rarely cut into as many blocks as the GPU holds, or a multiple; a last round that is nearly
    empty takes as long as a full one.
    """
    if tile.stages == 1 or tile.split_k > 1:
        return tile
    most = -(-shape.side // tile.rows)
    at_once = multiprocessors * tile.min_blocks

    def cost(row_tiles: int) -> tuple[int, int]:
        geometry = ConvGeometry(shape, replace(tile, row_tiles=row_tiles))
        return -(-geometry.blocks // at_once) * (row_tiles * geometry.steps + _LOOP_OVERHEAD), -row_tiles

    return replace(tile, row_tiles=min(range(1, min(most, MOST_ROW_TILES) + 1), key=cost))


def _fitting_width(cout: int) -> int:
    return min(fitting_channels(cout), key=lambda width: _channels_cost(cout, width))


def _channels_cost(cout: int, width: int) -> int:
    return -(-cout // width) * (width + _AROUND_A_BLOCK)
