"""Launches of discriminator_skip, the 1 x 1 convolution beside a discriminator's block, on Hopper."""

from __future__ import annotations

from gpu_backend.cuda.driver.arguments import EncodeMap
from gpu_backend.cuda.schedule import Address, TensorMap
from gpu_backend.gradients.gpu.convs.launch import (
    DEPTH,
    ROW_NBYTES,
    WARPGROUP,
    ConvLaunch,
    channels_of,
    columns_of,
)
from gpu_backend.gradients.gpu.kernels import SKIP_COLUMNS, skip_conv_kernel
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.ops.kernels.conv_tile import ALIGNMENT

_SKIP_PIXELS, _SKIP_GROUPS, _SKIP_STAGES = 64, 4, 4
"""Of a tile, which each warpgroup of a block does for itself, and tiles that it holds."""
_MOST_SKIP_WEIGHTS = 1 << 15


def skip_launch(
    layer: PlacedConv, samples: int, multiprocessors: int, encode: EncodeMap, *, is_backward: bool
) -> ConvLaunch | None:
    """Return the launch of a skip, or of its adjoint, with fp16 results; None where weights do not fit."""
    inputs, outputs = channels_of(layer, is_backward=is_backward)
    groups = -(-inputs // DEPTH)
    fitting = tuple(columns for columns in SKIP_COLUMNS if groups * DEPTH * columns <= _MOST_SKIP_WEIGHTS)
    if not fitting:
        return None
    columns, pixels = columns_of(outputs, fitting), samples * layer.source**2
    across = -(-outputs // columns)
    blocks = min(-(-pixels // (_SKIP_PIXELS * _SKIP_GROUPS)), max(1, multiprocessors // across))
    extents = inputs, pixels, 1, 1
    return ConvLaunch(
        skip_conv_kernel(columns),
        (blocks, across, 1),
        WARPGROUP * _SKIP_GROUPS,
        1,
        {"pixels": pixels, "cin": inputs, "cout": outputs},
        ALIGNMENT + (groups * columns + _SKIP_GROUPS * _SKIP_STAGES * _SKIP_PIXELS) * ROW_NBYTES,
        encode,
        {"x_map": TensorMap(Address("x", "region"), extents, (DEPTH, _SKIP_PIXELS, 1))},
    )
