"""Tiles worth measuring for a convolution."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace

from gpu_backend.ops.kernels.conv_rules import MOST_ROW_TILES, fitting_channels
from gpu_backend.ops.kernels.conv_tile import (
    BLOCK_CHANNELS,
    ROW_NBYTES,
    WIDEST_BLOCK,
    ConvGeometry,
    ConvShape,
    ConvTile,
    Instruction,
)

_EDGES = ((4, 4), (8, 8), (4, 16), (8, 16), (16, 16), (4, 32), (8, 32), (16, 32))
_UP_EDGES = ((6, 4), (10, 8), (8, 14), (12, 14), (8, 16), (10, 16), (18, 16), (4, 30), (6, 30), (8, 30), (4, 32))
_WARPS = ((1, 2), (1, 4), (2, 1), (2, 2), (4, 1), (2, 4), (4, 2), (8, 1))
_UP_WARPS = ((3, 1), (3, 2), (4, 1), (4, 2), (6, 1), (6, 2), (8, 1), (12, 1))
_WGMMA_WARPS = ((4, 1), (8, 1), (4, 2), (12, 1))
_ROW_TILES = (1, 4, 8, 16, 32)
_ROUNDS = 4
_SYSTEM_NBYTES = 1024
_TILES_A_STEP = 128
"""Tiles that are judged in a few milliseconds."""
_LEAST_SUMS, _MOST_SUMS, _MOST_WIDE_SUMS = 8, 144, 208
"""Of a thread, in tiles that are worth measuring; wide blocks are fastest with most registers."""


def candidates(
    shape: ConvShape,
    architecture: str,
    multiprocessors: int,
    shared_nbytes_per_block: int,
    *,
    taps: int = 4,
    picture_channels: int = 3,
) -> tuple[ConvTile, ...]:
    """Return tiles that fit, each with the split-K that fills the GPU; the likeliest first."""
    steps = candidate_steps(
        shape, architecture, multiprocessors, shared_nbytes_per_block, taps=taps, picture_channels=picture_channels
    )
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: tuple[ConvTile, ...] = end.value
            return found


def candidate_steps(
    shape: ConvShape,
    architecture: str,
    multiprocessors: int,
    shared_nbytes_per_block: int,
    *,
    taps: int = 4,
    picture_channels: int = 3,
) -> Generator[None, None, tuple[ConvTile, ...]]:
    """Return what `candidates` returns, in bounded steps: large shapes have thirty thousand tiles."""
    found: dict[ConvTile, float] = {}
    for count, tile in enumerate(_tiles(shape, architecture, multiprocessors, taps), 1):
        if count % _TILES_A_STEP == 0:
            yield
        geometry = ConvGeometry(shape, tile, taps, picture_channels)
        if not geometry.fits(architecture, shared_nbytes_per_block):
            continue
        for split_k in _split_ks(geometry.blocks, geometry.steps, multiprocessors):
            if (tile.stages == 1) != (tile.row_tiles == 1 and geometry.steps <= split_k):
                continue  # one stage is for blocks of one step, which need no other
            chosen = geometry
            if split_k != tile.split_k:
                chosen = ConvGeometry(shape, replace(tile, split_k=split_k), taps, picture_channels)
            if chosen is geometry or chosen.fits(architecture, shared_nbytes_per_block):
                found[chosen.tile] = _promise(chosen, multiprocessors, shared_nbytes_per_block)
    return tuple(sorted(found, key=lambda tile: -found[tile]))


def _tiles(shape: ConvShape, architecture: str, multiprocessors: int, taps: int) -> Iterator[ConvTile]:
    up = shape.kind == "up_conv"
    instructions: tuple[Instruction, ...] = ("mma", "wgmma") if architecture == "sm_90a" else ("mma",)
    if shape.operands == "fp8" and architecture == "sm_90a":
        instructions = ("wgmma",)
    usual = [channels for channels in BLOCK_CHANNELS if channels == 16 or channels < 2 * shape.cout]
    fitting = () if up else (*fitting_channels(shape.cout), *fitting_channels(shape.cout, WIDEST_BLOCK))
    widths = dict.fromkeys((*usual, *fitting))
    possible = [nbytes // shape.itemsize for nbytes in ROW_NBYTES]
    depths = [depth for depth in possible if depth == possible[0] or depth < 2 * shape.cin]
    edges = [edge for edge in (_UP_EDGES if up else _EDGES) if edge[1] <= shape.positions_side]
    for (rows, columns), channels, depth, mma in itertools.product(edges, widths, depths, instructions):
        warps = _WGMMA_WARPS if mma == "wgmma" else _UP_WARPS if up else _WARPS
        for warps_m, warps_n in warps:
            least = ConvTile(rows, columns, channels, depth, 1, warps_m, warps_n, 1, mma)
            most_sums = _MOST_SUMS if channels <= BLOCK_CHANNELS[-1] else _MOST_WIDE_SUMS
            if not _LEAST_SUMS <= ConvGeometry(shape, least, taps).sums_per_thread <= most_sums:
                continue
            for blocks in (1, 2, 3, 4):
                counts = _row_tiles(shape, replace(least, min_blocks=blocks), multiprocessors)
                for stages, row_tiles, weights_in_smem in itertools.product((1, 2, 3, 4), counts, (False, True)):
                    if row_tiles > 1 or not weights_in_smem:
                        sizes = rows, columns, channels, depth, stages, warps_m, warps_n
                        yield ConvTile(*sizes, 1, mma, blocks, row_tiles, weights_in_smem)


def _row_tiles(shape: ConvShape, tile: ConvTile, multiprocessors: int) -> Iterable[int]:
    """Return how far blocks may go: where no usual tile divides the side, so that full rounds of blocks do it all."""
    most = -(-shape.positions_side // tile.rows)
    if not shape.may_have_partial_tiles:
        return [count for count in _ROW_TILES if count == 1 or count <= max(most // 2, 1)]
    across, channels, pictures = ConvGeometry(shape, replace(tile, row_tiles=most)).grid
    at_once = multiprocessors * tile.min_blocks
    segments = (rounds * at_once // (across * channels * pictures) for rounds in range(1, _ROUNDS + 1))
    filling = (-(-most // count) for count in segments if count > 0)
    return dict.fromkeys((1, *(row_tiles for row_tiles in filling if row_tiles <= MOST_ROW_TILES)))


def _split_ks(blocks: int, steps: int, multiprocessors: int) -> tuple[int, ...]:
    if blocks >= multiprocessors * 3 // 4:
        return (1,)
    wanted = -(-multiprocessors // blocks)
    near = {wanted, max(1, wanted // 2), wanted - 1}
    return tuple(sorted({-(-steps // -(-steps // min(split_k, steps))) for split_k in near if split_k > 0}))


def _promise(geometry: ConvGeometry, multiprocessors: int, shared_nbytes_per_block: int) -> float:
    """Estimated utilisation of the tensor cores, 0 .. 1."""
    shape, tile = geometry.shape, geometry.tile
    # A multiprocessor has the shared memory of its largest block, plus what the system reserves per block.
    shared_nbytes = shared_nbytes_per_block + _SYSTEM_NBYTES
    blocks_at_once = min(
        tile.min_blocks, shared_nbytes // (geometry.dynamic_nbytes + geometry.static_nbytes + _SYSTEM_NBYTES)
    )
    if blocks_at_once < tile.min_blocks:
        return 0.0
    computed = (
        geometry.blocks
        // tile.split_k
        * tile.row_tiles
        * geometry.fragments_per_warp
        * tile.warps_m
        * 16
        * tile.channels
    )
    useful = shape.batch * shape.positions_side**2 * shape.cout / computed
    wave = multiprocessors * blocks_at_once
    filled = geometry.blocks / (-(-geometry.blocks // wave) * wave)
    warps = min(tile.warps_m * tile.warps_n * blocks_at_once, 16) / 16
    work = geometry.sums_per_thread / (geometry.sums_per_thread + 24)
    steps = geometry.steps * tile.row_tiles / tile.split_k
    overlap = steps / (steps + 2 / blocks_at_once)
    return useful * filled * (0.5 + 0.5 * warps) * work * overlap * (1.3 if tile.mma == "wgmma" else 1.0)
