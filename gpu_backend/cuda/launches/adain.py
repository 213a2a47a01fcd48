"""StyleGAN1's layers on a GPU: instance normalisation after a convolution, or of the learned constant.

A fused convolution accumulates per-block moments of every channel; the fused normalisation merges them. Where one
convolution alone reads the layer, they are merged to its weights instead, and the layer is not normalised in memory.
Where a block of a convolution has the whole picture, it normalises that itself. Where toRGB alone reads the layer and
a block has all channels, the normalisation makes the bytes of the picture.
The plain kernels compute the moments themselves, in two launches.
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
    weight_of,
)
from gpu_backend.cuda.launches.conv_op import conv_shape, conv_site
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, FoldedInput, RgbPart
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv, fused_recipe, has_whole_picture
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
from gpu_backend.cuda.launches.streaming_up_conv import streaming_choice, streaming_recipe, streaming_up_conv
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.to_rgb import picture_launch, with_plain_picture
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
from gpu_backend.ops.kernels.streaming_tile import StreamingGeometry
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass

_PLAIN_QUADS = 256
_PLAIN_THREADS = 512
_INPUT_CHANNELS, _INPUT_THREADS = 16, 128
_FOLD_THREADS, _TAPS = 288, 9
_NARROW, _WIDE = 16, 32
"""Input channels of a block of ``fold_adain``: more of them where there are many, so that fewer sums are left."""

_PICTURE_ARGUMENTS = {
    "rgb_bias": "bias",
    "image": "image",
    "pixels": "pixels",
    "flags": "flags",
    "rgb_clamp": "clamp",
    "picture_gain": "gain",
}
"""Parameters of ``adain`` that are those of ``to_rgb``."""

Geometry = ConvGeometry | StreamingGeometry
"""How a convolution is divided; its partial moments are ``grid[0]``, each of a `part`."""


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


@dataclass(frozen=True, slots=True)
class FusedLayer:
    """A layer by fused kernels.

    Attributes
    ----------
    recipes
        Of the convolution and the normalisation.
    reader
        The layer whose convolution takes in the normalisation; None if it is a pass of its own.
    picture
        The kernel ``to_rgb`` that the normalisation does the work of; None if it does not.
    """

    step: Step
    site: AdainSite
    work: ConvWork
    conv: ConvSite
    geometry: Geometry
    recipes: tuple[KernelRecipe, ...]
    reader: FusedLayer | None
    picture: Built | None = None


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
        layer = self._layer(step, context, is_folded=weight_region(step.x) in context.regions)
        if isinstance(layer, Refused):
            return layer
        return Fused(layer.recipes, partial(self._built, layer, context))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        site = _site(step, context)
        work, conv = self._conv(step, site, context)
        before = plain_conv(work, conv, context.weights, context.target, reason=reason)
        return Built.joined((before, plain_adain(step.main, site, context.weights, reason=reason)))

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        return _observed(step, launch, regions)

    def shape_for_tuning(self, step: Step, batch: int) -> ConvShape | None:
        return conv_shape(step, batch)

    def _layer(self, step: FusedStep, context: LoweringContext, *, is_folded: bool) -> FusedLayer | Refused:
        """Return the fused kernels of a step, whose input is normalised by its weights or in memory."""
        site = _site(step, context)
        work, conv = self._conv(step, site, context)
        conv = replace(conv, moments=site.moments)
        if is_folded:
            conv = replace(conv, x=_activated(step.x), folded=folded_input(work, step.x))
        geometry = streaming_choice(work, conv, context.target) or conv_geometry(work, conv, context.target)
        if isinstance(geometry, Refused):
            return geometry
        reader = self._reader(step, context)
        if isinstance(geometry, StreamingGeometry):
            own = streaming_recipe(work, conv, geometry)
        elif step.to_rgb is None and reader is None and has_whole_picture(geometry):
            conv = normalising(conv, step.main, site)
            return FusedLayer(step.main, site, work, conv, geometry, (fused_recipe(work, conv, geometry),), None)
        else:
            own = fused_recipe(work, conv, geometry)
        picture = None
        if step.shows is not None and _tile(step.main, site, context.target, geometry).channel_blocks == 1:
            picture = picture_launch(step.shows.main, context, 1, step.shows.absorbed[0])
        if reader is None:
            normal = adain_recipe(step.main, site, context.target, geometry, picture)
        else:
            normal = fold_recipe(reader)
        return FusedLayer(step.main, site, work, conv, geometry, (own, normal), reader, picture)

    def _reader(self, step: FusedStep, context: LoweringContext) -> FusedLayer | None:
        """Return the layer whose convolution takes in a step's normalisation; None if it cannot, or a kernel failed."""
        target = context.target
        is_one = context.batch == 1 and target.batch in (None, 1)
        if step.folds_into is None or not target.folds or not is_one:
            return None
        layer = self._layer(step.folds_into, context, is_folded=True)
        if isinstance(layer, Refused):
            return None
        recipes = (*layer.recipes, fold_recipe(layer))
        has_failed = bool(context.failed) and any(recipe.digest in context.failed for recipe in recipes)
        return None if has_failed else layer

    def _conv(self, step: FusedStep, site: AdainSite, context: LoweringContext) -> tuple[ConvWork, ConvSite]:
        work = ConvWork.of_step(step.main)
        exponent = weight_exponent(context.weights[work.weight], work.weight_scale) if context.half else 0
        stored = replace(step, y=site.x, to_rgb=None)
        return work, replace(conv_site(stored, context), weight_exponent=exponent)

    def _built(self, layer: FusedLayer, context: LoweringContext) -> Built:
        if layer.conv.epsilon is not None:
            normal = Built(())
        elif layer.reader is not None:
            normal = fold_adain(layer.step, layer.site, context.weights, layer.geometry, layer.reader)
        else:
            normal = adain(layer.step, layer.site, context.weights, context.target, layer.geometry, layer.picture)
        if isinstance(layer.geometry, StreamingGeometry):
            conv = streaming_up_conv(layer.work, layer.conv, context.weights, layer.geometry)
        else:
            conv = fused_conv(layer.work, layer.conv, context.weights, layer.geometry)
        return Built.joined((conv, normal))


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
        observed="y",
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


def normalising(conv: ConvSite, step: Step, site: AdainSite) -> ConvSite:
    """Return the slot of a layer's convolution whose blocks have whole pictures, and normalise them."""
    return replace(
        conv,
        y=site.y,
        epsilon=step.attributes.epsilon,
        next_style_offset=site.style_offset,
        style_stride=site.style_stride,
    )


def adain(
    step: Step, site: AdainSite, weights: Weights, target: Target, geometry: Geometry, picture: Built | None = None
) -> Built:
    """Build one layer's normalisation, after a fused convolution of that geometry.

    Reads ``site.x``, ``site.moments`` and ``styles``; writes and declares ``site.y`` or, with a toRGB, the region of
    its parts, one per block of channels. Instead of these, it writes and declares what `picture` would, the kernel
    ``to_rgb`` of one part; a block must have all channels then.
    """
    settings: AdainConv | AdainUpConv = step.attributes
    side, channels, cout, rgb = settings.resolution, settings.out_channels, pad8(settings.out_channels), site.rgb
    tile = _tile(step, site, target, geometry)
    constants: list[Constant] = []
    made: tuple[Region, ...] = (_layer_region(site, side, cout),)
    size = np.dtype(site.dtype).itemsize
    numbers = site.batch * side**2
    flops, nbytes = numbers * channels * SCALING_FLOPS, size * numbers * channels * (1 if rgb is not None else 2)
    shown = None if picture is None else picture.launches[0]
    if rgb is not None:
        constants.append(rgb_weight_constant(rgb.weight, weights))
    if picture is not None and shown is not None:
        constants += picture.constants
        made = picture.regions
        flops, nbytes = flops + shown.flops, nbytes + 4 * numbers
    elif rgb is not None:
        made = (Region(rgb.region, (tile.channel_blocks, site.batch, side, side, rgb.channels), "float32", "scratch"),)
        nbytes += 4 * numbers * rgb.channels
    launch = Launch(
        layer=step.layer,
        label="adain",
        stands_for="plain_adain",
        observed="y",
        recipe=adain_recipe(step, site, target, geometry, picture),
        grid=tile.grid,
        block=(THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(site.x),
            "y": region(site.y) if rgb is None else None,
            "moments": region(site.moments),
            "style": region("styles", site.style_offset),
            "rgb_weight": None if rgb is None else constant(constants[0].key),
            "rgb_parts": None if rgb is None or shown is not None else region(rgb.region),
            "rgb_bias": None,
            "image": None,
            "pixels": None,
            "flags": None,
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
            "rgb_clamp": np.float32(math.inf),
            "picture_gain": np.float32(1.0),
        }
        | ({} if shown is None else {own: shown.arguments[name] for own, name in _PICTURE_ARGUMENTS.items()}),
        flops=flops,
        nbytes=nbytes,
        optional=() if shown is None else shown.optional,
        pictures=() if shown is None else (shown.layer,),
    )
    return Built((launch,), tuple(constants), made)


def adain_recipe(
    step: Step, site: AdainSite, target: Target, geometry: Geometry, picture: Built | None = None
) -> KernelRecipe:
    """Return the kernel of a layer's normalisation, after a fused convolution of that geometry."""
    shown = {} if picture is None else dict(picture.launches[0].recipe.defines)
    return KernelRecipe.of(
        "adain",
        HALF=1,
        GROUPS=_tile(step, site, target, geometry).groups,
        THREADS=THREADS,
        IMG_CHANNELS=0 if site.rgb is None else site.rgb.channels,
        SHOWS=int(picture is not None),
        **{name: int(number) for name, number in shown.items() if name == "MIDDLE_TWICE"},
    )


def fold_adain(step: Step, site: AdainSite, weights: Weights, geometry: Geometry, reader: FusedLayer) -> Built:
    """Build the weights of the convolution that reads a layer, with the layer's normalisation, of one picture.

    Reads ``site.moments`` and ``styles``; writes and declares the regions that ``reader.conv.folded`` names.
    """
    settings: AdainConv | AdainUpConv = step.attributes
    work, cut, folded = reader.work, _cut_of(reader), reader.conv.folded
    tile = cut.tile
    assert folded is not None
    assert site.batch == 1
    side, inputs, steps = settings.resolution, fold_inputs(work), cut.steps
    rows = cut.channel_blocks * tile.channels
    parts = -(-max(work.cin, steps * tile.depth) // inputs)  # those of padding channels write zeros
    columns = parts * inputs
    exponent = reader.conv.weight_exponent

    def make() -> NDArray[np.float32]:
        scaled = weight_of(work, weights) * np.float32(work.weight_scale * 2.0**-exponent)
        by_tap = np.zeros((_TAPS, rows, columns), np.float32)
        by_tap[:, : work.out_channels, : work.in_channels] = scaled.reshape(*scaled.shape[:2], _TAPS).transpose(2, 0, 1)
        return by_tap

    weight = Constant(f"by_tap/{work.weight}/{rows}x{columns}/{exponent}", make)
    launch = Launch(
        layer=step.layer,
        label="fold_adain",
        stands_for="plain_adain",
        observed="y",
        recipe=fold_recipe(reader),
        grid=(parts, rows * _TAPS * inputs // 8 // _FOLD_THREADS, 1),
        block=(_FOLD_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(site.x),
            "y": None,
            "moments": region(site.moments),
            "style": region("styles", site.style_offset),
            "weight": constant(weight.key),
            "folded": region(folded.weight),
            "tap_sums": region(folded.tap_sums),
            "parts": np.int32(geometry.grid[0]),
            "part_rows": np.int32(geometry.part[0]),
            "part_columns": np.int32(geometry.part[1]),
            "side": np.int32(side),
            "cin": np.int32(work.cin),
            "channels": np.int32(settings.out_channels),
            "rows": np.int32(rows),
            "columns": np.int32(columns),
            "steps": np.int32(steps),
            "epsilon": np.float32(settings.epsilon),
        },
        flops=side**2 * settings.out_channels * SCALING_FLOPS,
        nbytes=(4 + 2) * _TAPS * work.in_channels * work.out_channels,
    )
    shape = (cut.channel_blocks, steps, _TAPS, tile.channels, tile.depth)
    regions = (
        Region(folded.weight, shape, "float16", "scratch"),
        Region(folded.tap_sums, (parts, _TAPS, rows), "float32", "scratch"),
    )
    return Built((launch,), (weight,), regions)


def fold_recipe(reader: FusedLayer) -> KernelRecipe:
    """Return the kernel that makes a convolution's weights."""
    tile = _cut_of(reader).tile
    return KernelRecipe.of(
        "fold_adain", HALF=1, INPUTS=fold_inputs(reader.work), CHANNELS=tile.channels, DEPTH=tile.depth
    )


def fold_inputs(work: ConvWork) -> int:
    """Return the input channels of a block of ``fold_adain``."""
    return _WIDE if work.cin > 2 * _WIDE else _NARROW


def weight_region(x: str) -> str:
    """Return the region of the weights that have the normalisation of `x`, which then is no region itself."""
    return f"{x}/weight"


def folded_input(work: ConvWork, x: str) -> FoldedInput:
    """Return where a convolution finds the weights that have the normalisation of `x`."""
    return FoldedInput(weight_region(x), f"{x}/tap_sums", -(-work.cin // fold_inputs(work)))


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
            observed="y" if "y" in arguments else "",
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


def _tile(step: Step, site: AdainSite, target: Target, geometry: Geometry) -> AdainTile:
    settings: AdainConv | AdainUpConv = step.attributes
    cout = pad8(settings.out_channels)
    # With a picture, fewer channels per block would make more parts of toRGB.
    parts = geometry.grid[0] if site.rgb is None else 1
    return AdainTile.of(settings.resolution, cout, site.batch, target.multiprocessors, parts)


def _layer_region(site: AdainSite, side: int, cout: int) -> Region:
    return Region(site.y, (site.batch, side, side, cout), site.dtype, "scratch")


def _cut_of(reader: FusedLayer) -> ConvGeometry:
    """Return the tiles of a convolution whose weights take in a normalisation: no up-convolution's do."""
    assert isinstance(reader.geometry, ConvGeometry)
    return reader.geometry


def _activated(layer: str) -> str:
    """Return the region of a layer before its normalisation."""
    return f"{layer}/activated"


def _site(step: FusedStep, context: LoweringContext) -> AdainSite:
    out = step.main.outputs[0]
    return AdainSite(
        batch=context.batch,
        half=context.half,
        x=_activated(out),
        moments=f"{out}/moments",
        y=out,
        style_offset=context.style_offset(step.main),
        style_stride=context.layout.style_width,
        rgb=None if step.to_rgb is None else context.rgb_part(step.to_rgb),
    )


def _observed(step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
    """Observe a normalisation: its output, which it does not store if it computes toRGB's products."""
    if not launch.observed:
        return None
    batch, side, _, channels = step.attributes.output_shape(regions["styles"].shape[0])
    dtype = "float16" if dict(launch.recipe.defines)["HALF"] == "1" else "float32"
    return Observation(
        (batch, side, side, pad8(channels)), dtype, partial(channels_first, channels=channels), {"y": OBSERVED}
    )
