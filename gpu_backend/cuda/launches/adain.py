"""StyleGAN1's layers on a GPU: instance normalisation after a convolution, or of the learned constant.

A fused convolution accumulates per-block moments of every channel; the fused normalisation merges them. The plain
kernels compute the moments themselves, in two launches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import (
    ACTIVATION_NUMBERS,
    Weights,
    constant,
    padded,
    region,
    rgb_weight_constant,
)
from gpu_backend.cuda.launches.conv_op import conv_shape, conv_site
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, RgbPart
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv, fused_recipe
from gpu_backend.cuda.launches.gpu_op import (
    OBSERVED,
    Fused,
    GpuOp,
    LoweringContext,
    Observation,
    Refused,
    channels_first,
)
from gpu_backend.cuda.launches.plain_convs import plain_conv
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.to_rgb import with_plain_picture
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Address, Argument, Built, Constant, Launch, Region
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.adain import NORMAL_FLOPS, SCALING_FLOPS, SUMMING_FLOPS
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import AdainUpConv
from gpu_backend.ops.kernels.adain_tile import THREADS, AdainTile
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass

_PLAIN_QUADS = 256
_PLAIN_THREADS = 512
_INPUT_CHANNELS, _INPUT_THREADS = 16, 128
_LABELS = ("adain_input", "adain", "plain_adain")


@dataclass(frozen=True, slots=True)
class AdainSite:
    """The place of a normalisation in a schedule.

    Attributes
    ----------
    x
        Region of (batch, side, side, padded channels), past the activation.
    moments
        Region of the moments of the convolution's blocks; plain kernels do not use it.
    y
        Region that gets the layer.
    style_offset, style_stride
        The layer's scales in a sample's row of ``styles``, and the row's length, in floats. Shifts follow scales.
    rgb
        The toRGB that reads the layer, if nothing else does: its products are computed, and the layer is not stored.
    """

    batch: int
    half: bool
    x: str
    moments: str
    y: str
    style_offset: int
    style_stride: int
    rgb: RgbPart | None = None

    @property
    def dtype(self) -> str:
        """Of activations."""
        return "float16" if self.half else "float32"


class AdainInputOp(GpuOp):
    """The first layer: noise, bias, activation and normalisation of the learned constant, in one kernel."""

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        (constant,) = step.absorbed
        return adain_input(step.main, _site(step, context), context.weights, constant.weights["const"])

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        return _observed(step, launch, regions)


class AdainConvOp(GpuOp):
    """A convolution and its normalisation: both fused, since the convolution accumulates the moments, or both plain."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        if not context.half:
            return Refused("moments of a StyleGAN1's convolution are summed in fp16 alone")
        site = _site(step, context)
        work, conv = self._conv(step, site, context)
        with_moments = replace(conv, moments=site.moments)
        geometry = conv_geometry(work, with_moments, context.target)
        if isinstance(geometry, Refused):
            return geometry
        recipes = fused_recipe(work, with_moments, geometry), adain_recipe(step.main, site, context.target, geometry)
        return Fused(recipes, partial(self._fused, step, site, work, with_moments, geometry, context))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        site = _site(step, context)
        work, conv = self._conv(step, site, context)
        before = plain_conv(work, conv, context.weights, context.target, reason=reason)
        return Built.joined((before, plain_adain(step.main, site, context.weights, reason=reason)))

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        return _observed(step, launch, regions)

    def shape_for_tuning(self, step: Step, batch: int) -> ConvShape | None:
        return conv_shape(step, batch)

    def _conv(self, step: FusedStep, site: AdainSite, context: LoweringContext) -> tuple[ConvWork, ConvSite]:
        work = ConvWork.of_step(step.main)
        exponent = weight_exponent(context.weights[work.weight], work.weight_scale) if context.half else 0
        stored = replace(step, y=site.x, to_rgb=None)
        return work, replace(conv_site(stored, context), weight_exponent=exponent)

    def _fused(
        self,
        step: FusedStep,
        site: AdainSite,
        work: ConvWork,
        conv: ConvSite,
        geometry: ConvGeometry,
        context: LoweringContext,
    ) -> Built:
        normal = adain(step.main, site, context.weights, context.target, geometry)
        return Built.joined((fused_conv(work, conv, context.weights, geometry), normal))


def adain_input(step: Step, site: AdainSite, weights: Weights, const: str) -> Built:
    """Build the first layer: one kernel for all plans, of the weight `const`, (channels, side, side).

    Reads ``styles``, ``noise_gain`` and ``noise_source``; writes and declares ``site.y``.
    """
    settings: AdainInput = step.attributes
    names, index, cout = step.weights, settings.noise_index, pad8(settings.out_channels)
    constants: list[Constant] = []

    def held(key: str, make: Callable[[], NDArray[Any]]) -> Address:
        constants.append(Constant(key, make))
        return constant(key)

    def of_channels(role: str) -> Address:
        return held(f"padded/{names[role]}", lambda: padded(weights[names[role]], (0,)))

    def pixels() -> NDArray[Any]:
        return padded(weights[const].transpose(1, 2, 0), (2,)).astype(site.dtype)

    def picture() -> NDArray[Any]:
        return np.ascontiguousarray(weights[names["noise_const"]], np.float32)

    x, bias, strength = held(f"pixels/{const}/{site.dtype}", pixels), of_channels("bias"), None
    noise = noise_gain = noise_source = None
    if index >= 0:
        strength = of_channels("noise_strength")
        noise = held(f"flat/{names['noise_const']}", picture)
        noise_gain, noise_source = region("noise_gain", index), region("noise_source")
    act = settings.act
    numbers, side = site.batch * settings.resolution**2 * settings.out_channels, settings.resolution
    launch = Launch(
        layer=step.layer,
        label="adain_input",
        recipe=KernelRecipe.of("adain_input", HALF=site.half, ACTIVATION=ACTIVATION_NUMBERS[act.activation]),
        grid=(-(-cout // _INPUT_CHANNELS), site.batch, 1),
        block=(_INPUT_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": x,
            "y": region(site.y),
            "style": region("styles", site.style_offset),
            "bias": bias,
            "strength": strength,
            "noise": noise,
            "noise_gain": noise_gain,
            "noise_source": noise_source,
            "noise_layer": np.int32(max(index, 0)),
            "side": np.int32(side),
            "cout": np.int32(cout),
            "channels": np.int32(settings.out_channels),
            "style_stride": np.int32(site.style_stride),
            "gain": np.float32(act.gain),
            "clamp": np.float32(math.inf if act.clamp is None else act.clamp),
            "epsilon": np.float32(settings.epsilon),
        },
        flops=numbers * NORMAL_FLOPS,
        nbytes=2 * np.dtype(site.dtype).itemsize * numbers + (4 * side**2 if index >= 0 else 0),
    )
    return Built((launch,), tuple(constants), (_layer_region(site, side, cout),))


def adain(step: Step, site: AdainSite, weights: Weights, target: Target, geometry: ConvGeometry) -> Built:
    """Build one layer's normalisation, after a fused convolution of that geometry.

    Reads ``site.x``, ``site.moments`` and ``styles``; writes and declares ``site.y`` or, with a toRGB, the region of
    its parts, one per block of channels.
    """
    settings: AdainConv | AdainUpConv = step.attributes
    side, channels, cout, rgb = settings.resolution, settings.out_channels, pad8(settings.out_channels), site.rgb
    tile = _tile(step, site, target, geometry)
    constants: list[Constant] = []
    made, size = _layer_region(site, side, cout), np.dtype(site.dtype).itemsize
    nbytes = size * site.batch * side**2 * channels * (1 if rgb is not None else 2)
    if rgb is not None:
        constants.append(rgb_weight_constant(rgb.weight, weights))
        made = Region(rgb.region, (tile.channel_blocks, site.batch, side, side, rgb.channels), "float32", "scratch")
        nbytes += 4 * site.batch * side**2 * rgb.channels
    launch = Launch(
        layer=step.layer,
        label="adain",
        recipe=adain_recipe(step, site, target, geometry),
        grid=tile.grid,
        block=(THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(site.x),
            "y": region(site.y) if rgb is None else None,
            "moments": region(site.moments),
            "style": region("styles", site.style_offset),
            "rgb_weight": None if rgb is None else constant(constants[0].key),
            "rgb_parts": None if rgb is None else region(rgb.region),
            "parts": np.int32(geometry.grid[0]),
            "part_rows": np.int32(geometry.part[0]),
            "part_columns": np.int32(geometry.part[1]),
            "side": np.int32(side),
            "cout": np.int32(cout),
            "channels": np.int32(channels),
            "style_stride": np.int32(site.style_stride),
            "chunk": np.int32(tile.chunk),
            "epsilon": np.float32(settings.epsilon),
            "rgb_gain": np.float32(1.0 / math.sqrt(channels)),
        },
        flops=site.batch * side**2 * channels * SCALING_FLOPS,
        nbytes=nbytes,
    )
    return Built((launch,), tuple(constants), (made,))


def adain_recipe(step: Step, site: AdainSite, target: Target, geometry: ConvGeometry) -> KernelRecipe:
    """Return the kernel of a layer's normalisation, after a fused convolution of that geometry."""
    return KernelRecipe.of(
        "adain",
        HALF=1,
        GROUPS=_tile(step, site, target, geometry).groups,
        THREADS=THREADS,
        IMG_CHANNELS=0 if site.rgb is None else site.rgb.channels,
    )


def plain_adain(step: Step, site: AdainSite, weights: Weights, *, reason: str = "") -> Built:
    """Build one layer's normalisation of plain kernels, toRGB's too if there is one.

    Reads ``site.x`` and ``styles``; writes and declares ``site.y`` and the region of toRGB's one part.

    Parameters
    ----------
    reason
        Why they stand in for a fused kernel; "" in plans that are plain throughout.
    """
    settings: AdainConv | AdainUpConv = step.attributes
    side, channels, cout = settings.resolution, settings.out_channels, pad8(settings.out_channels)
    affine = f"{site.y}/affine"
    numbers, size = site.batch * side**2 * channels, np.dtype(site.dtype).itemsize

    def launch(
        stem: str, grid: tuple[int, int, int], threads: int, arguments: Mapping[str, Argument], flops: int, passes: int
    ) -> Launch:
        return Launch(
            layer=step.layer,
            label=stem,
            recipe=KernelRecipe.of(stem, HALF=site.half),
            grid=grid,
            block=(threads, 1, 1),
            shared_nbytes=0,
            arguments=arguments,
            flops=numbers * flops,
            nbytes=numbers * size * passes,
            is_fused=False,
            reason=reason,
        )

    moments = launch(
        "plain_adain_moments",
        (cout // 4, site.batch, 1),
        _PLAIN_THREADS,
        {
            "x": region(site.x),
            "affine": region(affine),
            "style": region("styles", site.style_offset),
            "side": np.int32(side),
            "cout": np.int32(cout),
            "channels": np.int32(channels),
            "style_stride": np.int32(site.style_stride),
            "epsilon": np.float32(settings.epsilon),
        },
        SUMMING_FLOPS,
        1,
    )
    normal = launch(
        "plain_adain",
        (-(-(side**2) * cout // 4 // _PLAIN_QUADS), site.batch, 1),
        _PLAIN_QUADS,
        {
            "x": region(site.x),
            "y": region(site.y),
            "affine": region(affine),
            "side": np.int32(side),
            "cout": np.int32(cout),
        },
        SCALING_FLOPS,
        2,
    )
    regions = (Region(affine, (site.batch, 3, cout), "float32", "scratch"), _layer_region(site, side, cout))
    layer = Built((moments, normal), (), regions)
    return with_plain_picture(layer, site, site.y, weights, side, channels, reason)


def _tile(step: Step, site: AdainSite, target: Target, geometry: ConvGeometry) -> AdainTile:
    settings: AdainConv | AdainUpConv = step.attributes
    cout = pad8(settings.out_channels)
    # With a picture, fewer channels per block would make more parts of toRGB.
    parts = geometry.grid[0] if site.rgb is None else 1
    return AdainTile.of(settings.resolution, cout, site.batch, target.multiprocessors, parts)


def _layer_region(site: AdainSite, side: int, cout: int) -> Region:
    return Region(site.y, (site.batch, side, side, cout), site.dtype, "scratch")


def _site(step: FusedStep, context: LoweringContext) -> AdainSite:
    out = step.main.outputs[0]
    return AdainSite(
        batch=context.batch,
        half=context.half,
        x=f"{out}/activated",
        moments=f"{out}/moments",
        y=out,
        style_offset=context.style_offset(step.main),
        style_stride=context.layout.style_width,
        rgb=None if step.to_rgb is None else context.rgb_part(step.to_rgb),
    )


def _observed(step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
    """Observe a normalisation: its output, which it does not store if it computes toRGB's products."""
    if launch.label not in _LABELS:
        return None
    batch, side, _, channels = step.attributes.output_shape(regions["styles"].shape[0])
    dtype = "float16" if dict(launch.recipe.defines)["HALF"] == "1" else "float32"
    return Observation(
        (batch, side, side, pad8(channels)), dtype, partial(channels_first, channels=channels), {"y": OBSERVED}
    )
