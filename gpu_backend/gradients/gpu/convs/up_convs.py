"""Launches of transposed convolutions on Hopper, and of their adjoints where there are few channels."""

from __future__ import annotations

from gpu_backend.cuda.driver.arguments import EncodeMap
from gpu_backend.cuda.schedule import Address, TensorMap
from gpu_backend.gradients.gpu.convs.launch import (
    DEPTH,
    HOPPER_THREADS,
    ROW_NBYTES,
    WARPGROUP,
    ConvLaunch,
    columns_and_stages,
    weight_map,
)
from gpu_backend.gradients.gpu.kernels import (
    NARROW_CHANNELS,
    NARROW_DEPTH,
    NARROW_GROUPS,
    UP_CLUSTERS,
    UP_COLUMNS,
    narrow_up_adjoint_kernel,
    narrow_up_conv_kernel,
    up_conv_kernel,
)
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.ops.kernels.conv_tile import ALIGNMENT, aligned

MOST_UP_SIDE = 256
"""Of a larger source, a block's positions do not fit in shared memory."""
PAIR_MARGIN = 2 * NARROW_CHANNELS
"""Bytes that gradient_narrow_up_adjoint may read after the end of what it reads."""
_UP_POSITIONS = 128
_MOST_RUN, _RUN_ALIGNMENT = 256, 8
"""Positions that TMA copies at once."""
_UP_PARITIES = 4
_UP_SUM_PITCH = UP_COLUMNS + 8
_CLUSTER_ROOM = {1: 1.0, 2: 1.0, 3: 0.875, 4: 0.875, 8: 0.75}
"""By blocks of a cluster: what part of the multiprocessors surely holds clusters, one block each. A cluster lies in one
GPC, of at most 18 multiprocessors."""
_NARROW_TILE = 9, 14
"""Rows and columns of positions of a tile of gradient_narrow_up_conv."""
_NARROW_TAPS, _NARROW_TEAMS, _NARROW_PATCHES = 9, 2, 2
"""Of it: taps, teams of a block, which do a tile each, and groups of pixels that a team holds at once."""
_LEAST_NARROW_WAVES = 4
"""Tiles for each multiprocessor from which on it is faster than gradient_up_conv, where that is there."""
_ADJOINT_TILE, _ADJOINT_GROUPS = (4, 16), 4
"""Rows and columns of pixels of a tile of gradient_narrow_up_adjoint, and warpgroups of a block, which do one each."""
_PAIR = 2 * NARROW_CHANNELS
"""Numbers of two neighbouring pixels, which TMA copies together."""


def is_narrow(layer: PlacedConv) -> bool:
    """Whether a transposed convolution has few channels."""
    return layer.is_up and layer.outputs == NARROW_CHANNELS and layer.inputs <= NARROW_DEPTH


def up_launch(layer: PlacedConv, samples: int, multiprocessors: int, encode: EncodeMap) -> ConvLaunch:
    """Return the launch of gradient_up_conv, of a source of at most `MOST_UP_SIDE`."""
    side, pitch, tiles = layer.source, layer.source + 1, _up_tiles(layer.source)
    cluster = _up_cluster(layer, samples, multiprocessors)
    kernel = up_conv_kernel(cluster)
    columns, stages = columns_and_stages(kernel)
    needed = _UP_POSITIONS + side + 2
    runs = -(-needed // _MOST_RUN)
    run = -(-needed // (runs * _RUN_ALIGNMENT)) * _RUN_ALIGNMENT
    # Rows from two above the picture on, so many that the last tile's runs stay within them.
    rows = -(-((tiles - 1) * _UP_POSITIONS + pitch - 1 + runs * run) // pitch)
    pixels = TensorMap(
        Address("x", "region"),
        (layer.inputs, side, side, samples),
        (DEPTH, 1, run),
        bounds=((0, -2), (1, rows - 2 - side)),
    )
    copies = 3 * stages * columns * ROW_NBYTES + 2 * runs * run * ROW_NBYTES
    sums = 4 * (_UP_PARITIES * _UP_POSITIONS * _UP_SUM_PITCH + UP_COLUMNS) if cluster > 1 else 0
    return ConvLaunch(
        kernel,
        (samples * tiles, -(-layer.outputs // columns), cluster),
        HOPPER_THREADS,
        1,
        {
            "side": side,
            "cin": layer.inputs,
            "cout": layer.outputs,
            "tiles": tiles,
            "run": run,
            "runs": runs,
        },
        ALIGNMENT + max(copies, sums),
        encode,
        {"x_map": pixels, "weight_map": weight_map(layer, layer.inputs, layer.outputs, columns)},
    )


def narrow_up_launch(layer: PlacedConv, samples: int, multiprocessors: int, encode: EncodeMap) -> ConvLaunch | None:
    """Return the launch of gradient_narrow_up_conv, if it is there for a layer and fast."""
    groups = -(-layer.inputs // NARROW_DEPTH)
    if groups not in NARROW_GROUPS or layer.outputs != groups * NARROW_CHANNELS:
        return None
    side, whole = layer.source, 2 * layer.source + 1
    rows, columns = _NARROW_TILE
    across = -(-(side + 1) // columns)
    tiles = across * -(-(side + 1) // rows)
    if groups > 1 and samples * tiles * groups < _LEAST_NARROW_WAVES * multiprocessors:
        return None
    blocks = min(-(-samples * tiles // _NARROW_TEAMS), max(1, multiprocessors // groups))
    # Of 32 channels, pairs of pixels fill the lines of the results in shared memory.
    is_paired = groups == 1
    results = TensorMap(
        Address("t", "region"),
        (_PAIR, side, whole, samples) if is_paired else (layer.outputs, whole, whole, samples),
        (_PAIR, columns, 2 * rows) if is_paired else (NARROW_CHANNELS, 2 * columns, 2 * rows),
        row=whole * layer.outputs,
    )
    box = DEPTH, columns + 1, rows + 1
    space = aligned((rows + 1) * (columns + 1) * ROW_NBYTES)
    room = _NARROW_PATCHES * space + aligned(4 * rows * columns * _PAIR)
    return ConvLaunch(
        narrow_up_conv_kernel(groups),
        (blocks, groups, 1),
        _NARROW_TEAMS * HOPPER_THREADS,
        1,
        {"side": side, "across": across, "tiles": tiles, "all_tiles": samples * tiles},
        ALIGNMENT + groups * _NARROW_TAPS * NARROW_CHANNELS * ROW_NBYTES + _NARROW_TEAMS * room,
        encode,
        {
            "x_map": TensorMap(Address("x", "region"), (layer.inputs, side, side, samples), box),
            "weight_map": weight_map(layer, layer.inputs, layer.outputs, NARROW_CHANNELS),
            "t_map": results,
        },
    )


def narrow_adjoint_launch(
    layer: PlacedConv, samples: int, multiprocessors: int, encode: EncodeMap, *, with_skip: bool
) -> ConvLaunch:
    """Return the launch of gradient_narrow_up_adjoint, of an `is_narrow` layer, with or without a block's skip."""
    kernel = narrow_up_adjoint_kernel(with_skip=with_skip)
    side, whole = layer.source, 2 * layer.source + 1
    rows, columns = _ADJOINT_TILE
    across = -(-side // columns)
    tiles = across * -(-side // rows)
    pixels = TensorMap(
        Address("x", "region"),
        (_PAIR, side + 1, whole, samples),
        (_PAIR, columns + 1, 2 * rows + 1),
        row=whole * NARROW_CHANNELS,
    )
    space = 2 * aligned((2 * rows + 1) * (columns + 1) * 2 * _PAIR)
    maps, taps = {"x_map": pixels}, _NARROW_TAPS
    if with_skip:
        extents = NARROW_CHANNELS, side, side, samples
        maps["halved_map"] = TensorMap(Address("halved", "region"), extents, (NARROW_CHANNELS, columns, rows))
        space, taps = space + rows * columns * _PAIR, taps + 1
    return ConvLaunch(
        kernel,
        (min(-(-samples * tiles // _ADJOINT_GROUPS), multiprocessors), 1, 1),
        WARPGROUP * _ADJOINT_GROUPS,
        1,
        {"side": side, "cout": layer.inputs, "across": across, "tiles": tiles, "all_tiles": samples * tiles},
        ALIGNMENT + taps * NARROW_DEPTH * _PAIR + _ADJOINT_GROUPS * space,
        encode,
        maps,
    )


def _up_cluster(layer: PlacedConv, samples: int, multiprocessors: int) -> int:
    """Return how many blocks of gradient_up_conv share K: the fewest of those that have least to do each."""
    groups = -(-layer.inputs // DEPTH)
    blocks = samples * _up_tiles(layer.source) * -(-layer.outputs // UP_COLUMNS)
    found = [
        size
        for size in UP_CLUSTERS
        if size == 1 or (size <= groups and size * blocks <= _CLUSTER_ROOM[size] * multiprocessors)
    ]
    return min(found, key=lambda size: (-(-groups // size), size))


def _up_tiles(side: int) -> int:
    """Return the blocks of gradient_up_conv along (side + 1)^2 positions, of which the last one may do one more."""
    return -(-side * (side + 2) // _UP_POSITIONS)
