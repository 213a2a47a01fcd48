"""Launches of the up-convolution whose FIR filter stays in registers: wide pictures, few channels, Hopper."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import (
    ACTIVATION_NUMBERS,
    Weights,
    conv_arguments,
    fp8_macros,
    region,
    strengths_argument,
    weight_of,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.packed_weights import lane_order, pack_reordered
from gpu_backend.cuda.launches.picture_beside import picture_beside, picture_defines
from gpu_backend.cuda.schedule import Built, Constant, Launch, Region, TensorMap
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.adain import SUMMING_FLOPS
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.kernels.streaming_tile import StreamingGeometry, streaming_geometry
from gpu_backend.ops.modulated_up_conv import BINOMIAL_TAPS

_ARCHITECTURE = "sm_90a"
_TAP_ORDER = (0, 1, 3, 4, 8, 6, 7, 2, 5)
"""Taps 3 ky + kx as the kernel's products take them: of (m, n), (m - 1, n - 1), (m - 1, n) and (m, n - 1)."""

_LEAST_POSITIONS = 256 * 256
"""Positions of all pictures. One picture of 256 x 256 leaves half of an H200 idle: 29 us, where the tiles take 13."""


def streaming_choice(work: ConvWork, site: ConvSite, target: Target) -> StreamingGeometry | None:
    """Return how the streaming kernel divides an up-convolution; None where another kernel computes it."""
    has_moments = site.moments is not None
    has_filter = work.taps == BINOMIAL_TAPS and work.has_odd_border if has_moments else work.has_binomial_filter
    if not target.streams or target.architecture != _ARCHITECTURE or not has_filter:
        return None
    if not site.half or site.skip is not None or site.rgb is not None:
        return None
    shape = ConvShape("up_conv", work.side, site.cin(work), work.cout, site.batch, site.operands)
    divided = replace(shape, batch=target.batch or site.batch)
    if divided.positions_side**2 * divided.batch < _LEAST_POSITIONS:
        return None
    geometry = streaming_geometry(
        divided, target.multiprocessors, target.shared_nbytes_per_block, has_moments=has_moments
    )
    return None if geometry is None else replace(geometry, shape=shape)


def streaming_up_conv(
    work: ConvWork, site: ConvSite, weights: Weights, geometry: StreamingGeometry, multiprocessors: int = 1
) -> Built:
    """Build an up-convolution with its whole epilogue.

    Reads ``site.x``, ``styles``, ``demod``, ``noise_gain`` and ``noise_source``; writes and declares ``site.y``,
    ``site.y_raw`` and ``site.moments``, one per block of pixels. Blocks for a picture beside it use what of the
    `multiprocessors` idles.
    """
    channels, depth = geometry.channels, geometry.depth
    key = f"streaming/{work.weight}/{channels}x{depth}/{site.operands}/{site.weight_exponent}"
    weight = Constant(key, partial(_packed, weights, work, site, channels, depth))
    arguments, constants, regions = conv_arguments(work, site, weights, weight)
    del arguments["cin"]  # the kernel is compiled for it
    flops = work.flops
    if site.moments is not None:
        regions += (Region(site.moments, (site.batch, geometry.grid[0], work.cout, 2), "float32", "scratch"),)
        flops += SUMMING_FLOPS * work.side**2 * work.out_channels
        arguments |= {"strengths": strengths_argument(work, weights, constants), "moments": region(site.moments)}
    extents = (site.cin(work), work.side_in, work.side_in, site.batch)
    box = depth, geometry.pairs, 1
    at_once = multiprocessors * geometry.min_blocks
    beside = picture_beside(site.picture, weights, site.batch, geometry.grid, geometry.threads, at_once)
    tma_map = TensorMap(region(site.x), extents, box, splits_columns=True, itemsize=geometry.shape.itemsize)
    launch = Launch(
        layer=work.layer,
        label="streaming_up_conv",
        stands_for=work.plain_stem,
        recipe=streaming_recipe(work, site, geometry),
        grid=beside.grid,
        block=(geometry.threads, 1, 1),
        shared_nbytes=geometry.dynamic_nbytes,
        arguments={**arguments, **beside.arguments, "tma_map": tma_map},
        flops=site.batch * flops,
        nbytes=site.nbytes(work),
        pictures=beside.layers,
        observed="" if work.is_normalised else "y",
    )
    return Built((launch,), (*constants, *beside.constants), (*regions, *beside.regions))


def streaming_recipe(work: ConvWork, site: ConvSite, geometry: StreamingGeometry) -> KernelRecipe:
    """Return the kernel of an up-convolution."""
    defines = {
        "HALF": 1,
        **fp8_macros(site),
        "USE_WGMMA": 1,
        **geometry.macros,
        "BLURS_BIAS": int(work.blurs_bias),
        "ACTIVATION": ACTIVATION_NUMBERS[work.act.activation],
        "HAS_Y": int(site.y is not None),
        "HAS_RAW": int(site.y_raw is not None),
        "HAS_BLEND": int(site.blend is not None),
        **picture_defines(site.picture),
    }
    return KernelRecipe.of("streaming_up_conv", **defines)


def channel_order(channels: int) -> NDArray[np.int64]:
    """Return the order of a block's output channels, as `lane_order`: a lane stores all of its own at once."""
    return lane_order(channels, channels // 8)


def _packed(weights: Weights, work: ConvWork, site: ConvSite, channels: int, depth: int) -> NDArray[Any]:
    weight, order = weight_of(work, weights), channel_order(channels)
    exponent, scale = site.weight_exponent, work.weight_scale
    return pack_reordered(weight, order, _TAP_ORDER, depth, exponent, scale, is_fp8=site.reads_fp8)
