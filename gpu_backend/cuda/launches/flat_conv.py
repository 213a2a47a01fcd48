"""Launches of a convolution as a flat matrix product. Hopper."""

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
    weight_of,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.packed_weights import pack_weight, pack_weight_fp8
from gpu_backend.cuda.schedule import Built, Constant, Launch, TensorMap
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.conv_tile import ConvKind, ConvShape
from gpu_backend.ops.kernels.flat_tile import FlatGeometry, flat_geometry
from gpu_backend.ops.kernels.recipe import KernelRecipe

_ARCHITECTURE = "sm_90a"

_ARGUMENTS = (
    "weight",
    "y",
    "demod",
    "next_style",
    "bias",
    "side",
    "cin",
    "cout",
    "demod_stride",
    "style_stride",
)


def flat_choice(work: ConvWork, site: ConvSite, target: Target) -> FlatGeometry | None:
    """Return how the kernel divides a convolution; None where another kernel computes it."""
    if target.architecture != _ARCHITECTURE or not (target.streams and target.fuses_epilogues and is_flat(work, site)):
        return None
    kind: ConvKind = "conv1x1" if work.kernel == 1 else "conv"
    shape = ConvShape(kind, work.side, site.cin(work), work.cout, site.batch, site.operands)
    divided = replace(shape, batch=target.batch or site.batch)
    found = flat_geometry(divided, target.multiprocessors, target.shared_nbytes_per_block)
    return None if found is None else replace(found, shape=shape)


def is_flat(work: ConvWork, site: ConvSite) -> bool:
    """Whether the kernel has all that a convolution needs: of an epilogue demodulation, bias and style."""
    is_product = (work.kernel == 3 or (work.kernel == 1 and not work.padding)) and not work.is_up
    is_linear = work.act == BiasAct() and not work.noise_const
    others = (site.y_raw, site.skip, site.rgb, site.blend, site.moments, site.folded)
    is_alone = site.y is not None and not site.stores_fp8 and all(other is None for other in others)
    return is_product and is_linear and is_alone and site.half


def flat_conv(work: ConvWork, site: ConvSite, weights: Weights, geometry: FlatGeometry) -> Built:
    """Build a convolution with its epilogue.

    Reads ``site.x``, ``demod`` and ``styles``; writes and declares ``site.y``.
    """
    channels, depth = geometry.channels, geometry.depth
    form = "fp8" if site.reads_fp8 else site.weight_exponent
    key = f"fused/{work.weight}/{channels}x{depth}/{form}"
    weight = Constant(key, partial(_packed, weights, work, geometry, site))
    arguments, constants, regions = conv_arguments(work, site, weights, weight)
    pixels = (work.side_in, work.side_in) if work.kernel > 1 else (1, work.side_in**2)
    corners = -work.padding, work.padding + 1 - work.kernel  # of the inputs of the first tap
    bounds = ((corners[0],) * 2, (corners[1],) * 2) if work.kernel > 1 else None
    extents, itemsize = (site.cin(work), *pixels, site.batch), geometry.shape.itemsize
    launch = Launch(
        layer=work.layer,
        label="flat_conv",
        stands_for=work.plain_stem,
        recipe=flat_recipe(work, site, geometry),
        grid=geometry.grid,
        block=(geometry.threads, 1, 1),
        shared_nbytes=geometry.dynamic_nbytes,
        arguments={
            **{name: arguments[name] for name in _ARGUMENTS},
            "tma_map": TensorMap(region(site.x), extents, geometry.box, itemsize=itemsize, bounds=bounds),
        },
        flops=site.batch * work.flops,
        nbytes=site.nbytes(work),
        observed="y",
    )
    return Built((launch,), tuple(constants), regions)


def flat_recipe(work: ConvWork, site: ConvSite, geometry: FlatGeometry) -> KernelRecipe:
    """Return the kernel of a convolution."""
    number = ACTIVATION_NUMBERS[work.act.activation]
    fp8 = fp8_macros(site)["FP8_X"]
    return KernelRecipe.of(
        "flat_conv", HALF=1, USE_WGMMA=1, ACTIVATION=number, FP8_X=fp8, PADDING=work.padding, **geometry.macros
    )


def _packed(weights: Weights, work: ConvWork, geometry: FlatGeometry, site: ConvSite) -> NDArray[Any]:
    pack = pack_weight_fp8 if site.reads_fp8 else pack_weight
    weight = weight_of(work, weights)
    return pack(weight, geometry.channels, geometry.depth, site.weight_exponent, work.weight_scale)
