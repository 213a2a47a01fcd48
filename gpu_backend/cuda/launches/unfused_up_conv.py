"""Launches of an up-convolution in two kernels: the products, then the FIR filter with the epilogue. Hopper."""

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
    weight_of,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.packed_weights import lane_order, pack_reordered
from gpu_backend.cuda.launches.picture_beside import picture_beside, picture_defines
from gpu_backend.cuda.schedule import Built, Constant, Launch, Region, TensorMap
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.e4m3 import E4M3
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.kernels.unfused_tile import FilterGeometry, TransposedGeometry, unfused_geometries

TAP_ORDER = (0, 1, 3, 4, 6, 7, 2, 5, 8)
"""Taps 3 ky + kx in the order of the products: of a position itself, those above, on the left, above on the left."""

_ARCHITECTURE = "sm_90a"

_T_SCALE = 8
"""Of t in e4m3. Its demodulated numbers reach 2 in the bundled model, and they saturate beyond 56."""

_PRODUCT_ARGUMENTS = ("weight", "demod", "batch", "side", "cin", "cout", "demod_stride")
_NO_FILTER_ARGUMENTS = ("x", "weight", "demod", "cin", "demod_stride")


def unfused_choice(work: ConvWork, site: ConvSite, target: Target) -> tuple[TransposedGeometry, FilterGeometry] | None:
    """Return how the two kernels divide an up-convolution; None where another kernel computes it."""
    if not target.streams or target.architecture != _ARCHITECTURE or not work.has_binomial_filter:
        return None
    if not site.half or site.skip is not None or site.rgb is not None or site.blend is not None:
        return None
    shape = ConvShape("up_conv", work.side, site.cin(work), work.cout, site.batch, site.operands)
    divided = replace(shape, batch=target.batch or site.batch)
    found = unfused_geometries(divided, target.multiprocessors, target.shared_nbytes_per_block)
    return None if found is None else (replace(found[0], shape=shape), replace(found[1], shape=shape))


def unfused_up_conv(
    work: ConvWork,
    site: ConvSite,
    weights: Weights,
    products: TransposedGeometry,
    filtering: FilterGeometry,
    multiprocessors: int = 1,
) -> Built:
    """Build an up-convolution with its whole epilogue.

    Reads ``site.x``, ``styles``, ``demod``, ``noise_gain`` and ``noise_source``; writes and declares ``site.y``,
    ``site.y_raw`` and the transposed picture between the kernels. Blocks for a picture go with the second.
    """
    channels, depth = products.channels, products.depth
    key = f"transposed/{work.weight}/{channels}x{depth}/{site.operands}/{site.weight_exponent}"
    weight = Constant(key, partial(_packed, weights, work, site, channels, depth))
    arguments, constants, regions = conv_arguments(work, site, weights, weight)
    t_dtype, itemsize = (E4M3, 1) if site.reads_fp8 else ("float16", 2)
    t = Region(f"{site.y or site.y_raw}/t", (site.batch, work.side + 1, work.side + 1, work.cout), t_dtype, "scratch")
    extents = (site.cin(work), work.side_in, work.side_in, site.batch)
    t_extents = (work.cout, work.side + 1, work.side + 1, site.batch)
    read_numbers = (
        site.batch * work.side_in**2 * work.in_channels + work.kernel**2 * work.in_channels * work.out_channels
    )
    product_flops = 2 * site.batch * work.side_in**2 * work.kernel**2 * work.in_channels * work.out_channels
    first_recipe, second_recipe = unfused_recipes(work, site, products, filtering)
    first = Launch(
        layer=work.layer,
        label="transposed_conv",
        recipe=first_recipe,
        grid=(min(products.tiles, multiprocessors), 1, 1),
        block=(products.threads, 1, 1),
        shared_nbytes=products.dynamic_nbytes,
        arguments={
            **{name: arguments[name] for name in _PRODUCT_ARGUMENTS},
            "t": region(t.name),
            "tma_map": TensorMap(region(site.x), extents, products.patch, itemsize=itemsize),
        },
        flops=product_flops,
        nbytes=itemsize * read_numbers,
    )
    at_once = multiprocessors * filtering.min_blocks
    beside = picture_beside(site.picture, weights, site.batch, filtering.grid, filtering.threads, at_once)
    second = Launch(
        layer=work.layer,
        label="up_filter",
        stands_for=work.plain_stem,
        recipe=second_recipe,
        grid=beside.grid,
        block=(filtering.threads, 1, 1),
        shared_nbytes=filtering.dynamic_nbytes,
        arguments={
            **{name: argument for name, argument in arguments.items() if name not in _NO_FILTER_ARGUMENTS},
            **beside.arguments,
            "tma_map": TensorMap(region(t.name), t_extents, filtering.box, itemsize=itemsize),
        },
        flops=site.batch * work.flops - product_flops,
        nbytes=site.nbytes(work) - itemsize * read_numbers,
        pictures=beside.layers,
        observed="y",
    )
    return Built((first, second), (*constants, *beside.constants), (*regions, t, *beside.regions))


def unfused_recipes(
    work: ConvWork, site: ConvSite, products: TransposedGeometry, filtering: FilterGeometry
) -> tuple[KernelRecipe, KernelRecipe]:
    """Return the two kernels of an up-convolution."""
    macros, t_scale = fp8_macros(site), _T_SCALE if site.reads_fp8 else 0
    first_macros = {"FP8_X": macros["FP8_X"], "FP8_Y": t_scale, **products.macros}
    first = KernelRecipe.of("transposed_conv", HALF=1, USE_WGMMA=1, ACTIVATION=0, **first_macros)
    defines = {
        "HALF": 1,
        "FP8_X": t_scale,
        "FP8_Y": macros["FP8_Y"],
        **filtering.macros,
        "ACTIVATION": ACTIVATION_NUMBERS[work.act.activation],
        "HAS_Y": int(site.y is not None),
        "HAS_RAW": int(site.y_raw is not None),
        **picture_defines(site.picture),
    }
    return first, KernelRecipe.of("up_filter", **defines)


def channel_order(channels: int, *, is_fp8: bool = False) -> NDArray[np.int64]:
    """Return the order of a block's output channels, as `lane_order`: a lane stores 16 bytes, of 32 of e4m3 8 bytes."""
    return lane_order(channels, 8 if is_fp8 and channels % 64 == 0 else 4)


def _packed(weights: Weights, work: ConvWork, site: ConvSite, channels: int, depth: int) -> NDArray[Any]:
    weight, order = weight_of(work, weights), channel_order(channels, is_fp8=site.reads_fp8)
    exponent, scale = site.weight_exponent, work.weight_scale
    return pack_reordered(weight, order, TAP_ORDER, depth, exponent, scale, is_fp8=site.reads_fp8)
