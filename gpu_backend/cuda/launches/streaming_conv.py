"""Launches of the 3 x 3 convolution whose sums of three rows stay in registers: wide pictures, few channels, Hopper."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import (
    ACTIVATION_NUMBERS,
    Weights,
    conv_arguments,
    fp8_macros,
    region,
    rgb_arguments,
    weight_of,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.packed_weights import lane_order, pack_reordered
from gpu_backend.cuda.schedule import Built, Constant, Launch, Region, TensorMap
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import HOMOGENEOUS
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.kernels.streaming_conv_tile import (
    MOST_WARPGROUPS,
    StreamingConvGeometry,
    streaming_conv_geometry,
)

_ARCHITECTURE = "sm_90a"

_NOT_TAKEN = ("x", "batch", "cin")
"""Of the arguments of all convolutions: copies know the input, and the kernel is compiled for its channels."""

_TAP_ORDER = tuple(3 * ky + kx for kx in range(3) for ky in (0, 2, 1, 0, 2))
"""Taps 3 ky + kx as the kernel's products take them: three successive rows of a column are those of any turn."""

_MOST_PICTURE_CHANNELS = 8

_FEW_CHANNELS = 32
_MOST_WITH_BLEND, _MOST_OF_MANY_WITH_BLEND = 4, 3
"""Warpgroups of a block that blends a second latent, which takes registers: of few channels, and of more."""


def streaming_conv_choice(work: ConvWork, site: ConvSite, target: Target) -> StreamingConvGeometry | None:
    """Return how the streaming kernel divides a convolution; None where another kernel computes it."""
    if not target.streams or not target.fuses_epilogues or target.architecture != _ARCHITECTURE:
        return None
    if not site.half or site.skip is not None or site.moments is not None or work.kernel != 3 or work.is_up:
        return None
    if work.act.activation not in HOMOGENEOUS or (site.rgb is not None and site.rgb.channels > _MOST_PICTURE_CHANNELS):
        return None
    shape = ConvShape("conv", work.side, site.cin(work), work.cout, site.batch, site.operands)
    divided = replace(shape, batch=target.batch or site.batch)
    most = MOST_WARPGROUPS
    if site.blend is not None:
        most = _MOST_WITH_BLEND if work.cout <= _FEW_CHANNELS else _MOST_OF_MANY_WITH_BLEND
    geometry = streaming_conv_geometry(
        divided, target.multiprocessors, target.shared_nbytes_per_block, most_warpgroups=most
    )
    return None if geometry is None else replace(geometry, shape=shape)


def streaming_conv(work: ConvWork, site: ConvSite, weights: Weights, geometry: StreamingConvGeometry) -> Built:
    """Build a convolution with its whole epilogue.

    Reads ``site.x``, ``styles``, ``demod``, ``noise_gain`` and ``noise_source``; writes and declares ``site.y``,
    ``site.y_raw`` and the region of toRGB's one part.
    """
    channels, depth = geometry.channels, geometry.depth
    key = f"streaming/{work.weight}/{channels}x{depth}/{site.operands}/{site.weight_exponent}"
    weight = Constant(key, partial(_packed, weights, work, site, channels, depth))
    arguments, constants, regions = conv_arguments(work, site, weights, weight)
    rgb = site.rgb
    if rgb is not None:
        arguments |= rgb_arguments(rgb, weights, constants)
        regions += (Region(rgb.region, (1, site.batch, work.side, work.side, rgb.channels), "float32", "scratch"),)
    extents = (site.cin(work), work.side_in, work.side_in, site.batch)
    arguments["tma_map"] = TensorMap(region(site.x), extents, geometry.box, itemsize=geometry.shape.itemsize)
    launch = Launch(
        layer=work.layer,
        label="streaming_conv",
        stands_for=work.plain_stem,
        recipe=streaming_conv_recipe(work, site, geometry),
        grid=geometry.grid,
        block=(geometry.threads, 1, 1),
        shared_nbytes=geometry.dynamic_nbytes,
        arguments={name: value for name, value in arguments.items() if name not in _NOT_TAKEN},
        flops=site.batch * work.flops,
        nbytes=site.nbytes(work),
        observed="y_raw",
    )
    return Built((launch,), tuple(constants), regions)


def streaming_conv_recipe(work: ConvWork, site: ConvSite, geometry: StreamingConvGeometry) -> KernelRecipe:
    """Return the kernel of a convolution."""
    defines = {
        "HALF": 1,
        **fp8_macros(site),
        "USE_WGMMA": 1,
        **geometry.macros,
        "PADDING": work.padding,
        "ACTIVATION": ACTIVATION_NUMBERS[work.act.activation],
        "HAS_RGB": int(site.rgb is not None),
        "IMG_CHANNELS": 1 if site.rgb is None else site.rgb.channels,
        "HAS_BLEND": int(site.blend is not None),
        "HAS_PICTURE": 0,
    }
    return KernelRecipe.of("streaming_conv", **defines)


def _packed(weights: Weights, work: ConvWork, site: ConvSite, channels: int, depth: int) -> NDArray[Any]:
    stored = next(count for count in (4, 2, 1) if channels % (8 * count) == 0)  # fragments
    weight, order = weight_of(work, weights), lane_order(channels, stored)
    exponent, scale = site.weight_exponent, work.weight_scale
    return pack_reordered(weight, order, _TAP_ORDER, depth, exponent, scale, is_fp8=site.reads_fp8)
