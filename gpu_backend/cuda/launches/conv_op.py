"""Convolutions as operations on a GPU: StyleGAN2's and 3's modulated ones, a resnet's skip, StyleGAN3's input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, KeptSecond, PictureSum, SkipPicture
from gpu_backend.cuda.launches.doubled import doubled
from gpu_backend.cuda.launches.epilogue_passes import epilogue_passes, without_epilogue
from gpu_backend.cuda.launches.first_layers import observe_first_layer
from gpu_backend.cuda.launches.flat_conv import flat_choice, flat_conv, flat_recipe
from gpu_backend.cuda.launches.fourier_features import mixing, sines
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv, fused_recipe
from gpu_backend.cuda.launches.gpu_op import (
    OBSERVED,
    Fused,
    GpuOp,
    LoweringContext,
    Observation,
    Refused,
    channels_first,
    channels_first_of_e4m3,
    region_of,
    slot_name,
)
from gpu_backend.cuda.launches.plain_convs import plain_conv
from gpu_backend.cuda.launches.streaming_conv import streaming_conv, streaming_conv_choice, streaming_conv_recipe
from gpu_backend.cuda.launches.streaming_up_conv import streaming_choice, streaming_recipe, streaming_up_conv
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.to_rgb import picture_launch
from gpu_backend.cuda.launches.unfused_up_conv import unfused_choice, unfused_recipes, unfused_up_conv
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Argument, Built, Launch, Region, TensorMap
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_up_conv import AdainUpConv
from gpu_backend.ops.kernels.conv_tile import ConvKind, ConvShape
from gpu_backend.ops.kernels.e4m3 import E4M3
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.ops.to_rgb import ToRgb
from gpu_backend.ops.upfirdn import doubling_left_pad, resampling_matrix
from gpu_backend.plan.fusion import FusedStep, parts, small
from gpu_backend.plan.plan import Step

_PICTURE_TAPS = 4
"""Of the filter that doubles pictures, where a picture is added up beside a convolution."""

_MOST_BESIDE = 256 * 256
"""Pixels of all pictures of such a sum: more of them keep a few blocks busy longer than the convolution takes."""


class ModulatedConvOp(GpuOp):
    """A modulated convolution or up-convolution."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        work, site, after = self._placed(step, context)
        site = replace(site, picture=_picture_beside(step, context))
        choice = fused_choice(work, site, context)
        if step.picture is not None and site.picture is None:
            after = (*after, _picture_alone(step, context))
        if isinstance(choice, Refused) or not after:
            return choice
        return Fused(choice.recipes, lambda: Built.joined((choice.build(), *after)))

    def fused_run(self, steps: Sequence[FusedStep], context: LoweringContext) -> tuple[int, Fused] | None:
        blended = steps[0].blended
        if blended is None or not context.target.fuses_epilogues or steps[1].main is not blended.blend:
            return None
        choice = self.fused(blended, context)
        return (2, choice) if isinstance(choice, Fused) else None

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        work, site, after = self._placed(step, context)
        conv = plain_conv(work, site, context.weights, context.target, reason=reason)
        # The picture comes last, so that the self-check of the fused kernel compares it too.
        alone = () if step.picture is None else (_picture_alone(step, context),)
        return Built.joined((conv, *after, *alone))

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        return observe_conv(step, launch, regions)

    def shape_for_tuning(self, step: Step, batch: int) -> ConvShape | None:
        return conv_shape(step, batch)

    def _placed(self, step: FusedStep, context: LoweringContext) -> tuple[ConvWork, ConvSite, tuple[Built, ...]]:
        """Return the convolution, and the passes behind it where its epilogue is not fused."""
        main = step.main
        exponent = weight_exponent(context.weights[main.weights["weight"]]) if context.half else 0
        offset = context.layout.demod_offset(slot_name(main))
        work = ConvWork.of_step(main)
        site = replace(conv_site(step, context), demod_offset=offset, weight_exponent=exponent)
        if context.target.fuses_epilogues:
            return work, site, ()
        return *without_epilogue(work, site), (epilogue_passes(work, site, context.weights),)


class SkipConvOp(GpuOp):
    """The skip of a resnet block, at half the side: the convolution that adds it upsamples it."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        choice = fused_choice(ConvWork.of_step(step.main), self._site(step, context), context)
        if isinstance(choice, Refused):
            return choice
        return Fused(choice.recipes, lambda: self._with_shown(choice.build(), step, context))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        work, site = ConvWork.of_step(step.main), self._site(step, context)
        built = plain_conv(work, site, context.weights, context.target, reason=reason)
        return self._with_shown(built, step, context)

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        if not launch.observed:
            return None
        settings: SkipConv = step.attributes
        batch = region_of(launch.arguments["x"], regions).shape[0]
        held = region_of(launch.arguments["y"], regions)
        side, channels = settings.resolution // 2, settings.out_channels

        def finish(values: NDArray[np.float32]) -> NDArray[np.float32]:
            return upsampled(channels_first(values, channels), settings.taps) * np.float32(settings.gain)

        return Observation((batch, side, side, pad8(channels)), held.dtype, finish, region=held.name)

    def _site(self, step: FusedStep, context: LoweringContext) -> ConvSite:
        return replace(conv_site(step, context), y=small(step.main.outputs[0]))

    def _with_shown(self, built: Built, step: FusedStep, context: LoweringContext) -> Built:
        if not step.is_shown:
            return built
        out = step.main.outputs[0]
        return Built.joined((built, doubled(step.main, small(out), out, context.batch, half=context.half)))


class FourierFeaturesOp(GpuOp):
    """The input of a StyleGAN3: sines, then the convolution that mixes them."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        choice = fused_choice(mixing(step.main), conv_site(step, context), context)
        if isinstance(choice, Refused):
            return choice
        return Fused(choice.recipes, lambda: Built.joined((self._sines(step, context), choice.build())))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        site = conv_site(step, context)
        mixed = plain_conv(mixing(step.main), site, context.weights, context.target, reason=reason)
        return Built.joined((self._sines(step, context), mixed))

    def starts(self, step: FusedStep, context: LoweringContext) -> Mapping[str, NDArray[np.float32]]:
        return {"transform": context.weights[step.main.weights["transform"]]}

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        return observe_conv(step, launch, regions)

    def _sines(self, step: FusedStep, context: LoweringContext) -> Built:
        return sines(
            step.main, context.weights, batch=context.batch, num_ws=context.num_ws, half=context.half, y=step.x
        )


def conv_site(step: FusedStep, context: LoweringContext) -> ConvSite:
    """Return the schedule slot of a convolution without demodulation."""
    return ConvSite(
        batch=context.batch,
        half=context.half,
        x=step.x,
        demod_offset=None,
        demod_stride=context.layout.demod_width,
        style_stride=context.layout.style_width,
        y=step.y,
        next_style_offset=None if step.next_style is None else context.style_offset(step.next_style),
        y_raw=step.y_raw,
        skip=None if step.skip is None else _skip_picture(step.skip),
        rgb=None if step.to_rgb is None else context.rgb_part(step.to_rgb),
        blend=None if step.blend is None else KeptSecond.of(step.blend),
        reads_fp8=step.x in context.regions and context.regions[step.x].dtype == E4M3,
        stores_fp8=step.stores_fp8,
        is_bf16x3=context.plan.key.precision == "bf16x3",
    )


def _picture_beside(step: FusedStep, context: LoweringContext) -> PictureSum | None:
    """Return the picture that extra blocks of an up-convolution add up, if it is small enough; else None."""
    if step.picture is None or not context.target.adds_pictures:
        return None
    settings: ToRgb = step.picture.attributes
    is_usual = settings.gain == 1.0 and (not settings.adds_image or len(settings.taps) == _PICTURE_TAPS)
    if not is_usual or context.batch * settings.resolution**2 > _MOST_BESIDE:
        return None
    read = parts(step.picture.inputs[0])
    return PictureSum(
        layer=step.picture.layer,
        side=settings.resolution,
        channels=settings.out_channels,
        bias=step.picture.weights["bias"],
        clamp=settings.clamp,
        parts=read,
        part_count=context.regions[read].shape[0],
        previous=step.picture.inputs[2] if settings.adds_image else None,
        image=step.picture.outputs[0],
        taps=settings.taps,
    )


def _picture_alone(step: FusedStep, context: LoweringContext) -> Built:
    assert step.picture is not None
    read = parts(step.picture.inputs[0])
    return picture_launch(step.picture, context, context.regions[read].shape[0])


def fused_choice(work: ConvWork, site: ConvSite, context: LoweringContext) -> Fused | Refused:
    """Return the launches of a convolution on tensor cores, or why it has none."""
    multiprocessors = context.target.multiprocessors
    streaming = streaming_choice(work, site, context.target)
    if streaming is not None:
        recipe = streaming_recipe(work, site, streaming)
        return Fused((recipe,), partial(streaming_up_conv, work, site, context.weights, streaming, multiprocessors))
    unfused = unfused_choice(work, site, context.target)
    if unfused is not None:
        recipes = unfused_recipes(work, site, *unfused)
        return Fused(recipes, partial(unfused_up_conv, work, site, context.weights, *unfused, multiprocessors))
    rows = streaming_conv_choice(work, site, context.target)
    if rows is not None:
        recipe = streaming_conv_recipe(work, site, rows)
        return Fused((recipe,), partial(streaming_conv, work, site, context.weights, rows))
    flat = flat_choice(work, site, context.target)
    if flat is not None:
        return Fused((flat_recipe(work, site, flat),), partial(flat_conv, work, site, context.weights, flat))
    geometry = conv_geometry(work, site, context.target)
    if isinstance(geometry, Refused):
        return geometry
    recipe = fused_recipe(work, site, geometry)
    return Fused((recipe,), partial(fused_conv, work, site, context.weights, geometry, multiprocessors))


def conv_shape(step: Step, batch: int) -> ConvShape | None:
    """Return the shape of a layer's convolution; None for kernels that no fused convolution has."""
    attributes: ModulatedConv | ModulatedUpConv | AdainConv | AdainUpConv = step.attributes
    if attributes.kernel not in (1, 3):
        return None
    kind: ConvKind = "conv1x1" if attributes.kernel == 1 else "conv"
    if isinstance(attributes, ModulatedUpConv | AdainUpConv):
        kind = "up_conv"
    return ConvShape(kind, attributes.resolution, pad8(attributes.in_channels), pad8(attributes.out_channels), batch)


def observe_conv(step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
    """Observe a convolution: its output before the next layer's style, and without a resnet's skip."""
    if step.layer in launch.convolutions:
        return observe_first_layer(step, launch)
    if not launch.observed:
        return None
    stores_y = launch.observed == "y"  # of kernels that are compiled to store this or y_raw
    known = region_of(launch.arguments["y"] if stores_y else _input_of(launch), regions)
    batch, side, _, channels = step.attributes.output_shape(known.shape[0])
    if stores_y and known.dtype == E4M3:
        dtype, finish = E4M3, partial(channels_first_of_e4m3, channels=channels)
    else:
        dtype = "float16" if known.dtype == E4M3 else known.dtype
        finish = partial(channels_first, channels=channels)
    return Observation(
        (batch, side, side, pad8(channels)),
        dtype,
        finish,
        {"y": OBSERVED, "next_style": None} if stores_y else {"y_raw": OBSERVED},
        # The skip is of another layer, and the kernel has no way to leave it out.
        zeros="skip" if "skip" in launch.arguments else None,
    )


def _input_of(launch: Launch) -> Argument:
    """Return the address of a convolution's input, which some kernels know by the map of their copies alone."""
    given = launch.arguments.get("x")
    if given is not None:
        return given
    copies = launch.arguments["tma_map"]
    assert isinstance(copies, TensorMap)
    return copies.address


def upsampled(x: NDArray[np.float32], taps: tuple[float, ...]) -> NDArray[np.float32]:
    """Return (batch, channels, height, width) at twice the side, gain 4."""
    height, width = x.shape[-2:]
    left = doubling_left_pad(len(taps))
    rows, columns = (resampling_matrix(size, 2 * size, taps, up=2, left=left, gain=2.0) for size in (height, width))
    return np.asarray(rows @ x @ columns.T, np.float32)


def _skip_picture(step: Step) -> SkipPicture:
    settings: SkipConv = step.attributes
    return SkipPicture(small(step.outputs[0]), settings.gain, settings.taps)
