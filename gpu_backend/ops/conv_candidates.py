"""Tiles worth measuring for a convolution."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_backend.ops.conv_tile import ConvGeometry, ConvShape, ConvTile, Instruction

_EDGES = ((4, 4), (8, 8), (4, 16), (8, 16), (16, 16), (8, 32), (16, 32))
_UP_EDGES = ((4, 4), (8, 8), (6, 14), (8, 16), (14, 14), (16, 16), (8, 32))
_WARPS = ((1, 2), (1, 4), (2, 1), (2, 2), (4, 1), (2, 4), (4, 2), (8, 1))
_UP_WARPS = ((3, 1), (3, 2), (4, 1), (4, 2), (6, 1), (6, 2), (8, 1), (12, 1))
_WGMMA_WARPS = ((4, 1), (8, 1), (4, 2))


def candidates(
    shape: ConvShape,
    architecture: str,
    multiprocessors: int,
    shared_nbytes_per_block: int,
    *,
    kernel: int = 3,
    taps: int = 4,
    picture_channels: int = 3,
) -> tuple[ConvTile, ...]:
    """Return tiles that fit, each with a split that fills the GPU; the likeliest first."""
    found: dict[ConvTile, float] = {}
    for tile in _tiles(shape, architecture):
        geometry = ConvGeometry(shape, tile, kernel, taps, picture_channels)
        if not geometry.fits(architecture, shared_nbytes_per_block) or not 8 <= geometry.sums_per_thread <= 144:
            continue
        across, channels, pictures = geometry.grid
        blocks = across * channels * pictures
        for split in _splits(blocks, geometry.steps, multiprocessors):
            if (tile.stages == 1) != (geometry.steps <= split):
                continue  # one stage is for walks of one step, which need no other
            chosen = ConvTile(
                tile.rows,
                tile.columns,
                tile.channels,
                tile.depth,
                tile.stages,
                tile.warps_m,
                tile.warps_n,
                split,
                tile.mma,
                tile.blocks,
            )
            found[chosen] = _promise(ConvGeometry(shape, chosen, kernel, taps, picture_channels), multiprocessors)
    return tuple(sorted(found, key=lambda tile: -found[tile]))


def _tiles(shape: ConvShape, architecture: str) -> Iterator[ConvTile]:
    side = shape.positions_side
    up = shape.kind == "up_conv"
    instructions: tuple[Instruction, ...] = ("mma", "wgmma") if architecture == "sm_90a" else ("mma",)
    for rows, columns in _UP_EDGES if up else _EDGES:
        if rows > side or columns > side:
            continue
        for channels in (16, 32, 64, 128):
            if channels > 16 and channels >= 2 * shape.cout:
                continue
            for depth in (16, 32, 64):
                if depth > 16 and depth >= 2 * shape.cin:
                    continue
                for mma in instructions:
                    for warps_m, warps_n in _WGMMA_WARPS if mma == "wgmma" else _UP_WARPS if up else _WARPS:
                        for blocks in (1, 2, 3, 4):
                            for stages in (1, 2, 3, 4):
                                yield ConvTile(rows, columns, channels, depth, stages, warps_m, warps_n, 1, mma, blocks)


def _splits(blocks: int, steps: int, multiprocessors: int) -> tuple[int, ...]:
    if blocks >= multiprocessors * 3 // 4:
        return (1,)
    wanted = -(-multiprocessors // blocks)
    near = {wanted, max(1, wanted // 2), wanted - 1}
    return tuple(sorted({-(-steps // -(-steps // min(split, steps))) for split in near if split > 0}))


def _promise(geometry: ConvGeometry, multiprocessors: int) -> float:
    """Rough share of the tensor cores' rate: products wanted over the time they would take, 0 .. 1."""
    shape, tile = geometry.shape, geometry.tile
    across, channels, pictures = geometry.grid
    side = shape.positions_side
    computed = across * geometry.fragments_per_warp * tile.warps_m * 16 * channels * tile.channels
    useful = side * side * shape.cout / computed
    blocks_at_once = max(1, min(tile.blocks, 227 * 1024 // geometry.dynamic_nbytes))
    waves = across * channels * pictures / (multiprocessors * blocks_at_once)
    filled = waves / -(-across * channels * pictures // (multiprocessors * blocks_at_once))
    warps = min(tile.warps_m * tile.warps_n * blocks_at_once, 16) / 16
    work = geometry.sums_per_thread / (geometry.sums_per_thread + 24)
    walk = geometry.steps / tile.split
    overlap = 1.0 if walk > 1 or blocks_at_once > 1 else 0.6
    if tile.blocks > blocks_at_once:
        return 0.0
    return useful * filled * (0.5 + 0.5 * warps) * work * overlap * (1.15 if tile.mma == "wgmma" else 1.0)
