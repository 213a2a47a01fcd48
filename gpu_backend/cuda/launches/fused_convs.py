"""Launches of the fused convolutions on tensor cores: fp16, tf32, bf16 or e4m3 products, sums in fp32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    rgb_arguments,
    skip_arguments,
    strengths_argument,
    taps_constant,
    weight_of,
)
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.gpu_op import Refused
from gpu_backend.cuda.launches.packed_weights import (
    pack_weight,
    pack_weight_bf16x3,
    pack_weight_fp8,
    pack_weight_tf32,
)
from gpu_backend.cuda.launches.picture_beside import picture_beside, picture_defines
from gpu_backend.cuda.schedule import Built, Constant, Launch, Region, TensorMap
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.adain import SCALING_FLOPS, SUMMING_FLOPS
from gpu_backend.ops.kernels import e4m3
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvKind, ConvShape, ConvTile, NoTileError, Operands
from gpu_backend.ops.kernels.recipe import KernelRecipe

WORKSPACE = "conv/workspace"
COUNTERS = "conv/counters"
"""Regions of all convolutions with split-K: each needs them only while it runs."""

WITH_TMA = ("sm_90a",)
"""Architectures whose convolutions use TMA. Later architectures have it too, but it was not measured there."""

WITHOUT_TF32 = ("sm_75",)
"""Architectures whose tensor cores multiply neither tf32 nor bf16."""

_PACKERS: Mapping[Operands, Callable[..., NDArray[Any]]] = {
    "fp16": pack_weight,
    "tf32": pack_weight_tf32,
    "bf16x3": pack_weight_bf16x3,
    "fp8": pack_weight_fp8,
}

_MOST_NUMBERS = 2**31 - 1
"""Of one picture's activations: within a picture the kernels count in 32 bits."""


def conv_geometry(work: ConvWork, site: ConvSite, target: Target) -> ConvGeometry | Refused:
    """Return the tile that a convolution runs with on a GPU, on its shape; or why no fused kernel computes it."""
    if work.kernel not in (1, 3) or (work.is_up and work.kernel != 3):
        return Refused(f"fused convolutions have kernels of 3 x 3, this layer's is {work.kernel} x {work.kernel}")
    if max(work.side_in**2 * work.cin, work.side**2 * work.cout) > _MOST_NUMBERS:
        return Refused(f"its activations of {work.side} x {work.side} have more numbers than fused kernels count")
    if not site.half and target.architecture in WITHOUT_TF32:
        return Refused(f"the tensor cores of this GPU have no {'bf16' if site.is_bf16x3 else 'tf32'}")
    if site.blend is not None and (work.is_up or not site.half):
        return Refused("no fused kernel of such a convolution blends second latents")
    if (site.reads_fp8 or site.stores_fp8) and not e4m3.multiplies_e4m3(target.architecture):
        return Refused(e4m3.NEEDS)
    kind: ConvKind = "up_conv" if work.is_up else "conv1x1" if work.kernel == 1 else "conv"
    shape = ConvShape(kind, work.side, work.cin, work.cout, site.batch, site.operands)
    taps = len(work.taps) or 1
    pictures = 0 if site.rgb is None else site.rgb.channels
    has_moments = site.moments is not None
    try:
        tile = target.tiles.choose(shape, taps=taps, picture_channels=pictures, has_moments=has_moments)
    except NoTileError as error:
        return Refused(str(error))
    uses_tma = target.architecture in WITH_TMA
    geometry = ConvGeometry(shape, tile, taps, pictures, has_moments, uses_tma, site.folded is not None)
    if not geometry.fits(target.architecture, target.shared_nbytes_per_block):
        return Refused(f"no fused kernel fits this GPU for a picture of {pictures} channels")
    return geometry


def fused_conv(
    work: ConvWork, site: ConvSite, weights: Weights, geometry: ConvGeometry, multiprocessors: int = 1
) -> Built:
    """Build a convolution, up-convolution or skip convolution with its whole epilogue.

    Reads ``site.x``, ``styles``, ``demod``, ``noise_gain``, ``noise_source`` and the skip's region; writes and declares
    ``site.y``, ``site.y_raw``, the region of toRGB's parts, one per block of channels, and ``site.moments``, one
    per block of pixels. With split-K it also declares `WORKSPACE` and `COUNTERS`. Where an up-convolution has a picture
    beside it, blocks for that use what of the `multiprocessors` idles, and its image is declared too.
    """
    tile = geometry.tile
    operands = geometry.shape.operands
    form = site.weight_exponent if operands == "fp16" else operands
    key = f"fused/{work.weight}/{tile.channels}x{tile.depth}/{form}"
    weight = Constant(key, partial(_packed, weights, work, tile, site))
    arguments, constants, regions = conv_arguments(work, site, weights, weight)
    extra_regions: list[Region] = []
    rgb = site.rgb
    if rgb is not None:
        arguments |= rgb_arguments(rgb, weights, constants)
        shape = (geometry.channel_blocks, site.batch, work.side, work.side, rgb.channels)
        extra_regions.append(Region(rgb.region, shape, "float32", "scratch"))
    if geometry.counters:
        extra_regions.append(Region(WORKSPACE, (geometry.workspace_nbytes // 4,), "float32", "scratch"))
        extra_regions.append(Region(COUNTERS, (geometry.counters,), "uint32", "zeroed"))
        arguments |= {"workspace": region(WORKSPACE), "counters": region(COUNTERS)}
    flops = work.flops
    if site.moments is not None:
        flops += SUMMING_FLOPS * work.side**2 * work.out_channels
        arguments["strengths"] = strengths_argument(work, weights, constants)
        arguments["moments"] = None if site.epsilon is not None else region(site.moments)
    if site.epsilon is not None:
        flops += SCALING_FLOPS * work.side**2 * work.out_channels
        arguments |= {"channels": np.int32(work.out_channels), "epsilon": np.float32(site.epsilon)}
    elif site.moments is not None:
        extra_regions.append(Region(site.moments, (site.batch, geometry.grid[0], work.cout, 2), "float32", "scratch"))
    if site.folded is not None:
        constants = [item for item in constants if item is not weight]
        arguments |= {
            "weight": region(site.folded.weight),
            "tap_sums": region(site.folded.tap_sums),
            "tap_sum_parts": np.int32(site.folded.parts),
        }
    if site.skip is not None:
        arguments |= skip_arguments(site.skip, constants)
    if geometry.uses_tma:
        extents = site.cin(work), work.side_in, work.side_in, site.batch
        arguments["tma_map"] = TensorMap(region(site.x), extents, geometry.patch, itemsize=geometry.shape.itemsize)
    grid, pictures = geometry.grid, tuple[str, ...]()
    if work.is_up:
        at_once = multiprocessors * tile.min_blocks
        beside = picture_beside(site.picture, weights, site.batch, grid, tile.threads, at_once)
        grid, pictures = beside.grid, beside.layers
        arguments |= {"grid_columns": np.int32(geometry.grid[0]), "grid_rows": np.int32(geometry.grid[1])}
        arguments |= beside.arguments
        if not work.has_binomial_filter:
            arguments["taps"] = taps_constant(constants, work.taps, 2.0)
        constants += beside.constants
        extra_regions += beside.regions
    launch = Launch(
        layer=work.layer,
        label="modulated_up_conv" if work.is_up else "modulated_conv",
        stands_for=work.plain_stem,
        recipe=fused_recipe(work, site, geometry),
        grid=grid,
        block=(tile.threads, 1, 1),
        shared_nbytes=geometry.dynamic_nbytes,
        arguments=arguments,
        flops=site.batch * flops,
        nbytes=site.nbytes(work),
        pictures=pictures,
        observed=_observed(work, site),
    )
    return Built((launch,), tuple(constants), (*regions, *extra_regions))


def _observed(work: ConvWork, site: ConvSite) -> str:
    """Return the argument that gets the layer's output: that of a StyleGAN1's layer is normalised."""
    if work.is_normalised:
        return "" if site.epsilon is None else "y"
    return "y" if work.is_up else "y_raw"


def has_whole_picture(geometry: ConvGeometry) -> bool:
    """Return whether a block has all pixels of its channels, so that it can normalise a StyleGAN1's layer itself."""
    return geometry.grid[0] == 1 and geometry.tile.row_tiles == 1 and geometry.tile.channels <= geometry.tile.threads


def fused_recipe(work: ConvWork, site: ConvSite, geometry: ConvGeometry) -> KernelRecipe:
    """Return the kernel of a convolution."""
    tile = geometry.tile
    defines = {
        "HALF": int(site.half),
        "BF16X3": int(site.operands == "bf16x3"),
        **fp8_macros(site),
        "ROWS": tile.rows,
        "COLUMNS": tile.columns,
        "CHANNELS": tile.channels,
        "DEPTH": tile.depth,
        "STAGES": tile.stages,
        "WARPS_M": tile.warps_m,
        "WARPS_N": tile.warps_n,
        "SPLIT_K": tile.split_k,
        "USE_WGMMA": int(tile.mma == "wgmma"),
        "MIN_BLOCKS": tile.min_blocks,
        "ROW_TILES": tile.row_tiles,
        "WEIGHTS_IN_SMEM": int(tile.weights_in_smem),
        "USE_TMA": int(geometry.uses_tma),
        "DECOUPLED": int(geometry.is_decoupled),
        "LOOP_NBYTES": geometry.loop_nbytes,
        "ACTIVATION": ACTIVATION_NUMBERS[work.act.activation],
        "HAS_MOMENTS": int(site.moments is not None),
        "NORMALISES": int(site.epsilon is not None),
    }
    if work.is_up:
        defines["TAPS"] = len(work.taps)
        defines["BINOMIAL"] = int(work.has_binomial_filter)
        defines["ODD_BORDER"] = int(work.has_odd_border)
        defines["BLURS_BIAS"] = int(work.blurs_bias)
        defines["HAS_Y"] = int(site.y is not None)
        defines["HAS_RAW"] = int(site.y_raw is not None)
        defines.update(picture_defines(site.picture))
    else:
        defines["KERNEL"] = work.kernel
        defines["PADDING"] = work.padding
        defines["FOLDED"] = int(site.folded is not None)
        defines["HAS_PARTIAL_TILES"] = int(geometry.has_partial_tiles)
        defines["HAS_RGB"] = int(site.rgb is not None)
        defines["IMG_CHANNELS"] = 1 if site.rgb is None else site.rgb.channels
        defines["HAS_BLEND"] = int(site.blend is not None)
        defines["HAS_SKIP"] = int(site.skip is not None)
        defines["TAPS"] = 1 if site.skip is None else len(site.skip.taps)
    stem = "modulated_up_conv" if work.is_up else "modulated_conv"
    return KernelRecipe.of(stem, **defines)


def _packed(weights: Weights, work: ConvWork, tile: ConvTile, site: ConvSite) -> NDArray[Any]:
    return _PACKERS[site.operands](
        weight_of(work, weights), tile.channels, tile.depth, site.weight_exponent, work.weight_scale
    )
