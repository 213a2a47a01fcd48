"""Launches of convolutions whose blocks do a tile of 16 x 16 pixels: gradient_patch_conv and gradient_up_adjoint."""

from __future__ import annotations

from gpu_backend.cuda.driver.arguments import EncodeMap, Value
from gpu_backend.cuda.schedule import Address, TensorMap
from gpu_backend.gradients.gpu.convs.launch import (
    DEPTH,
    HOPPER_THREADS,
    ROW_NBYTES,
    ConvLaunch,
    channels_of,
    columns_and_stages,
    no_end,
    weight_map,
)
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.ops.kernels.conv_tile import ALIGNMENT, aligned
from gpu_backend.ops.kernels.recipe import KernelRecipe

_TILE_SIDE = 16
_PATCH_SIDE, _PLANE_SIDE = _TILE_SIDE + 2, _TILE_SIDE + 1
"""Of the pixels that a tile of gradient_patch_conv and one of gradient_up_adjoint need."""
_PATCHES, _PLANES = 2, 3
"""In shared memory at once."""


def tile_launch(
    kernel: KernelRecipe, layer: PlacedConv, samples: int, slices: int, encode: EncodeMap, *, is_backward: bool
) -> ConvLaunch:
    """Return the launch of gradient_patch_conv or gradient_up_adjoint with so many slices of K."""
    inputs, outputs = channels_of(layer, is_backward=is_backward)
    columns, stages = columns_and_stages(kernel)
    own: dict[str, Value] = {} if layer.is_up else {"is_adjoint": int(is_backward)}
    side = 2 * layer.source + 1 if layer.is_up else layer.source
    box, step = (_PLANE_SIDE, 2) if layer.is_up else (_PATCH_SIDE, 1)
    pixels = TensorMap(Address("x", "region"), (inputs, side, side, samples), (DEPTH, box, box), step=step)
    weights = weight_map(layer, inputs, outputs, columns)
    boxes, taps = (_PLANES, stages) if layer.is_up else (_PATCHES, 3 * stages)
    space = aligned(box**2 * ROW_NBYTES)
    return ConvLaunch(
        kernel,
        (samples * tiles_of(layer.source), -(-outputs // columns), slices),
        HOPPER_THREADS,
        slices,
        {
            **no_end(kernel),
            "side": layer.source,
            "cin": inputs,
            "cout": outputs,
            "slices": slices,
            **own,
        },
        ALIGNMENT + taps * columns * ROW_NBYTES + (boxes - 1) * space + box**2 * ROW_NBYTES,
        encode,
        {"x_map": pixels, "weight_map": weights},
        tiles_of(layer.source) * slices,
    )


def tiles_of(side: int) -> int:
    """Return the tiles of gradient_patch_conv and gradient_up_adjoint along the pixels."""
    return (-(-side // _TILE_SIDE)) ** 2
