"""The last convolution of a single picture with toRGB's whole picture, whose bytes it writes to the host itself.

A copy by the driver begins when the last kernel has ended; this kernel's bytes cross PCIe while it computes. For a
batch, or while the next picture is computed, a copy beside the kernels costs less.
"""

from __future__ import annotations

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.schedule import Launch, Region
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.kernels.streaming_conv_tile import STRIP_COLUMNS, StreamingConvGeometry, streaming_conv_geometry
from gpu_backend.plan.arena import ALIGNMENT

HOST_SLOT = "host_slot"
"""Region with the address of the host memory that gets pixels and flags, as they lie in the schedule's own memory."""

_CHANNELS, _TAPS, _PIXELS = 3, 4, 4
"""Of the picture; of the filter that doubles the one before; of a thread of ``to_rgb``, which with one pixel rounds
otherwise."""

_ROW_NBYTES = 4 * 4 * STRIP_COLUMNS
"""Shared memory of a warpgroup's rows of bytes."""

_MOST_WARPGROUPS, _MOST_STAGES = 4, 6
"""Of a block: while stores wait for PCIe, four warpgroups of more registers lose less time than five."""


def host_slot() -> Region:
    """Return the region, an input of the schedule."""
    return Region(HOST_SLOT, (1,), "uint64", "input")


def zero_copy(launches: tuple[Launch, ...], target: Target) -> Launch | None:
    """Return the launch that does what the last two of a picture do, with its bytes on the host; None if there is none.

    It reads `HOST_SLOT`, and writes ``image`` if a run requests it.
    """
    if not launches[1:]:
        return None
    conv, rgb = launches[-2:]
    if conv.label != "streaming_conv" or rgb.label != "to_rgb" or conv.arguments.get("rgb_parts") is None:
        return None
    given, macros = rgb.arguments, dict(rgb.recipe.defines)
    is_usual = (
        given["parts"] == conv.arguments["rgb_parts"]
        and not int(dict(conv.recipe.defines)["HAS_BLEND"])
        and given["previous"] is not None
        and given["pixels"] is not None
        and given["batch"] == given["part_count"] == np.int32(1)
        and given["gain"] == np.float32(1)
        and (int(macros["IMG_CHANNELS"]), int(macros["TAPS"]), int(macros["PIXELS"])) == (_CHANNELS, _TAPS, _PIXELS)
        and not {"MIDDLE_TWICE", "HAS_BLEND"} & macros.keys()
    )
    side = int(conv.arguments["side"])  # type: ignore[arg-type]
    if not is_usual or side % STRIP_COLUMNS or conv.arguments["y"] or conv.arguments["y_raw"]:
        return None
    geometry = _geometry(conv, side, target)
    if geometry is None:
        return None
    macros = {**dict(conv.recipe.defines), **{name: str(value) for name, value in geometry.macros.items()}}
    return Launch(
        layer=conv.layer,
        label="streaming_conv",
        stands_for=conv.stands_for,
        recipe=KernelRecipe(conv.recipe.stem, tuple({**macros, "HAS_PICTURE": "1"}.items())),
        grid=geometry.grid,
        block=(geometry.threads, 1, 1),
        shared_nbytes=geometry.dynamic_nbytes,
        arguments={
            **conv.arguments,
            "rgb_parts": None,
            "picture_bias": given["bias"],
            "picture_clamp": given["clamp"],
            "picture_previous": given["previous"],
            "picture_taps": given["taps"],
            "image": given["image"],
            "host_slot": region(HOST_SLOT),
            "flag_at": np.uint32(-(-4 * side * side // ALIGNMENT) * ALIGNMENT),
        },
        flops=conv.flops + rgb.flops,
        nbytes=conv.nbytes + rgb.nbytes,
        op=conv.op,
        optional=("image",),
    )


def _geometry(conv: Launch, side: int, target: Target) -> StreamingConvGeometry | None:
    """Return how the kernel divides the convolution, from the same weights; None if it does not fit."""
    macros = dict(conv.recipe.defines)
    inputs, outputs = int(macros["STEPS"]) * int(macros["DEPTH"]), int(macros["CHANNELS"])
    shape = ConvShape("conv", side, inputs, outputs, 1, "fp8" if int(macros["FP8_X"]) else "fp16")
    room = target.shared_nbytes_per_block - _MOST_WARPGROUPS * _ROW_NBYTES
    return streaming_conv_geometry(
        shape, target.multiprocessors, room, most_warpgroups=_MOST_WARPGROUPS, most_stages=_MOST_STAGES
    )
