"""Launches of toRGB: its 1 x 1 convolution, and the kernel that sums parts to a picture and its bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import (
    Weights,
    blend_arguments,
    constant,
    padded,
    region,
    rgb_weight_constant,
    taps_constant,
)
from gpu_backend.cuda.launches.conv_work import KeptSecond, RgbPart
from gpu_backend.cuda.launches.gpu_op import (
    OBSERVED,
    Fused,
    GpuOp,
    LoweringContext,
    Observation,
    channels_first,
    region_of,
)
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Argument, Built, Constant, Launch, Region
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.to_display import MIDDLE
from gpu_backend.ops.to_rgb import UNSTYLED, ToRgb
from gpu_backend.plan.fusion import FusedStep, parts
from gpu_backend.plan.plan import Step

_VECTOR = 4
"""Neighbouring pixels of a thread of ``to_rgb`` in a large picture, where they divide a row."""

_LARGE = 256
"""Side from which on bytes take longer than the way of one number through a thread."""

_BLOCK = 256
"""Threads of a block of both kernels."""


class ToRgbOp(GpuOp):
    """The sum of toRGB's parts, and their products if no kernel before computes them."""

    def fused_run(self, steps: Sequence[FusedStep], context: LoweringContext) -> tuple[int, Fused] | None:
        blended = steps[0].blended
        if blended is None or steps[1].main is not blended.blend:
            return None
        display = _display_of(blended)
        recipe = _recipe(
            blended.main.attributes, MIDDLE if display is None else display.attributes.middle, has_blend=True
        )
        return 2, Fused((recipe,), partial(self.plain, blended, context, ""))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        settings: ToRgb = step.main.attributes
        if step.main.outputs[0] in context.regions:  # the normalisation before made the picture
            return Built(())
        products = Built(())
        if step.to_rgb is not None:
            products = plain_to_rgb(
                context.rgb_part(step.main),
                step.main.inputs[0],
                context.weights,
                context.batch,
                settings.resolution,
                settings.in_channels,
                context.layout.style_width,
                half=context.half,
                is_fused=True,
            )
        count = 1 if step.to_rgb is not None else context.regions[step.x].shape[0]
        return Built.joined((products, picture_launch(step.main, context, count, _display_of(step), step.blend)))

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        alone: dict[str, Argument] = {"previous": None, "image": OBSERVED, "pixels": None, "flags": None}
        image, changes = "image", {**alone, "gain": np.float32(1)}
        if step.layer in launch.pictures and launch.convolutions:
            image, changes = f"image_{step.attributes.resolution}", {"adds_image": np.int32(0)}
            changes[image] = OBSERVED
        elif step.layer in launch.pictures and "pixels" in launch.arguments:
            changes = {"image": OBSERVED, "pixels": None, "flags": None}
        elif step.layer in launch.pictures:
            image, changes = "picture_image", {"picture_previous": None, "picture_image": OBSERVED}
        elif launch.label != "to_rgb":
            return None
        shape = region_of(launch.arguments[image], regions).shape
        return Observation(shape, "float32", channels_first, changes)


def _display_of(step: FusedStep) -> Step | None:
    return next((one for one in step.absorbed if one.op == "to_display"), None)


def picture_launch(
    step: Step, context: LoweringContext, part_count: int, display: Step | None = None, blend: Step | None = None
) -> Built:
    """Build the sum of a toRGB's parts, with the bytes of the picture if the plan has a display.

    Parameters
    ----------
    blend
        Of the picture with that of one kept second latent.
    """
    return to_rgb(
        step,
        context.weights,
        context.batch,
        parts=parts(step.inputs[0]),
        part_count=part_count,
        image=(step if blend is None else blend).outputs[0],
        blend=None if blend is None else KeptSecond.of(blend),
        previous=step.inputs[2] if len(step.inputs) > 2 else None,
        pixels=None if display is None else display.outputs[0],
        middle=MIDDLE if display is None else display.attributes.middle,
        is_last=display is not None,
    )


class PictureSite(Protocol):
    """The place of a layer whose fused kernel computes toRGB's products."""

    @property
    def batch(self) -> int:
        """Pictures."""
        ...

    @property
    def half(self) -> bool:
        """Whether activations are fp16."""
        ...

    @property
    def style_stride(self) -> int:
        """Floats of a sample's row of ``styles``."""
        ...

    @property
    def rgb(self) -> RgbPart | None:
        """The toRGB whose products are computed, if any."""
        ...


def with_plain_picture(
    layer: Built, site: PictureSite, y_raw: str, weights: Weights, side: int, channels: int, reason: str
) -> Built:
    """Add toRGB's products to a layer's plain kernels, which do not compute them; the rest as `plain_to_rgb`."""
    if site.rgb is None:
        return layer
    picture = plain_to_rgb(
        site.rgb, y_raw, weights, site.batch, side, channels, site.style_stride, half=site.half, reason=reason
    )
    return Built.joined((layer, picture))


def plain_to_rgb(
    part: RgbPart,
    y_raw: str,
    weights: Weights,
    batch: int,
    side: int,
    in_channels: int,
    style_stride: int,
    *,
    half: bool,
    is_fused: bool = False,
    reason: str = "",
) -> Built:
    """Build toRGB's products where the kernel before does not compute them.

    Reads `y_raw` (batch, side, side, padded channels) and ``styles``; writes and declares ``part.region``, one part.

    Parameters
    ----------
    is_fused
        It replaces no fused kernel.
    """
    cout = pad8(in_channels)
    lanes = 1
    while lanes < 32 and 4 * lanes < cout:
        lanes *= 2
    constants = [rgb_weight_constant(part.weight, weights)]
    style: Argument
    if part.style_offset == UNSTYLED:
        gain = 1.0 / math.sqrt(in_channels)
        style, style_stride = constant(f"ones/{cout}/{gain}"), 0
        constants.append(Constant(f"ones/{cout}/{gain}", lambda: np.full(cout, gain, np.float32)))
    else:
        style = region("styles", part.style_offset)
    area = side * side
    launch = Launch(
        layer=part.layer,
        label="plain_to_rgb",
        recipe=KernelRecipe.of("plain_to_rgb", HALF=half, IMG_CHANNELS=part.channels, LANES=lanes),
        grid=(-(-area * lanes // _BLOCK), batch, 1),
        block=(_BLOCK, 1, 1),
        shared_nbytes=0,
        arguments={
            "y_raw": region(y_raw),
            "rgb_weight": constant(constants[0].key),
            "rgb_style": style,
            "rgb_parts": region(part.region),
            "side": np.int32(side),
            "cout": np.int32(cout),
            "style_stride": np.int32(style_stride),
        },
        flops=2 * batch * area * in_channels * part.channels,
        nbytes=batch * area * ((2 if half else 4) * in_channels + 4 * part.channels),
        is_fused=is_fused,
        reason=reason,
    )
    shape = (1, batch, side, side, part.channels)
    return Built((launch,), tuple(constants), (Region(part.region, shape, "float32", "scratch"),))


def to_rgb(
    step: Step,
    weights: Weights,
    batch: int,
    *,
    parts: str,
    part_count: int,
    image: str,
    previous: str | None = None,
    blend: KeptSecond | None = None,
    pixels: str | None = None,
    middle: float = MIDDLE,
    is_last: bool = False,
) -> Built:
    """Build the sum of toRGB's parts, blended with a kept picture if there is a `blend`.

    ``image`` of the last block is left out of a run that does not request it.

    Reads `parts` (part_count, batch, side, side, channels) and, if the step adds a picture, `previous` (batch,
    side / 2, side / 2, channels). Writes `image` (batch, side, side, channels) float32 and, where `pixels` is named,
    that one (batch, side, side, 4) uint8, around `middle`, and ``flags`` (batch,) uint32, which must be zero before.
    Declares `image`, as an output if `is_last`, and `pixels`.

    Raises
    ------
    ValueError
        If the step adds a picture and none is named.
    """
    settings: ToRgb = step.attributes
    if settings.adds_image and previous is None:
        raise ValueError(f"step {step.layer!r} adds the picture of the block before it; name that one's region")
    side, channels, bias = settings.resolution, settings.out_channels, step.weights["bias"]
    constants = [Constant(f"padded/{bias}", lambda: padded(weights[bias], (0,)))]
    before: Argument = None
    taps: Argument = None
    if settings.adds_image and previous is not None:
        before, taps = region(previous), taps_constant(constants, settings.taps, 2.0)
    recipe = _recipe(settings, middle, has_blend=blend is not None)
    launch = Launch(
        layer=step.layer,
        label="to_rgb",
        stands_for="" if blend is None else "to_rgb",
        recipe=recipe,
        grid=(-(-side * side // (int(dict(recipe.defines)["PIXELS"]) * _BLOCK)), batch, 1),
        block=(_BLOCK, 1, 1),
        shared_nbytes=0,
        arguments={
            "parts": region(parts),
            "part_count": np.int32(part_count),
            "bias": constant(f"padded/{bias}"),
            "clamp": np.float32(math.inf if settings.clamp is None else settings.clamp),
            "previous": before,
            "taps": taps,
            "image": region(image),
            "pixels": None if pixels is None else region(pixels),
            "flags": None if pixels is None else region("flags"),
            "batch": np.int32(batch),
            "side": np.int32(side),
            "gain": np.float32(settings.gain),
            **({} if blend is None else blend_arguments(blend, side, 4 * channels)),
        },
        flops=batch * side**2 * channels * (part_count + 1 + (len(settings.taps) if settings.adds_image else 0)),
        nbytes=_nbytes(settings, batch, part_count, has_image=pixels is None, has_pixels=pixels is not None),
        optional=() if pixels is None else ("image",),
    )
    regions = [Region(image, settings.output_shape(batch), "float32", "output" if is_last else "scratch")]
    if pixels is not None:
        regions.append(Region(pixels, (batch, side, side, 4), "uint8", "output"))
    return Built((launch,), tuple(constants), tuple(regions))


def _recipe(settings: ToRgb, middle: float, *, has_blend: bool) -> KernelRecipe:
    side = settings.resolution
    macros = {"IMG_CHANNELS": settings.out_channels, "TAPS": len(settings.taps)}
    macros["PIXELS"] = _VECTOR if side % _VECTOR == 0 and side >= _LARGE else 1
    if middle != MIDDLE:
        macros["MIDDLE_TWICE"] = round(2 * middle)
    if has_blend:
        macros["HAS_BLEND"] = 1
    return KernelRecipe.of("to_rgb", **macros)


def _nbytes(settings: ToRgb, batch: int, part_count: int, *, has_image: bool, has_pixels: bool) -> int:
    area = settings.resolution**2
    pictures = part_count + has_image + (0.25 if settings.adds_image else 0.0)
    return int(4 * batch * area * (settings.out_channels * pictures + has_pixels))
