"""Launches that blend samples under masks: activations between two layers, with toRGB's products, and pictures."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.launches.edited_layer import edited_layer
from gpu_backend.cuda.launches.gpu_op import Fused, GpuOp, LoweringContext, Refused
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Argument, Built, Launch, Region
from gpu_backend.limits import MAX_BLENDS
from gpu_backend.ops.blend_samples import BlendSamples
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.to_display import MIDDLE
from gpu_backend.plan.fusion import FusedStep

_THREADS = 256
_WIDE = 4
"""Neighbouring channels of a thread of the fast kernel; the plain kernel, its reference, has one."""


class BlendSamplesOp(GpuOp):
    """Blended activations, with the style of the convolution that reads them, and blended pictures, with the bytes."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        if step.main.attributes.is_picture:
            return Refused()
        return Fused((_recipe(context, _WIDE),), partial(_activations, step, context, _WIDE, ""))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        if step.main.attributes.is_picture:
            return _picture(step, context)
        return _activations(step, context, 1, reason)


def _recipe(context: LoweringContext, wide: int) -> KernelRecipe:
    return KernelRecipe("blend_samples", (("HALF", str(int(context.half))), ("WIDE", str(wide))))


def _masks(step: FusedStep) -> dict[str, Argument]:
    """Return the mask of each blend; none for those that leave the layer as it is."""
    settings: BlendSamples = step.main.attributes
    named = dict(zip(settings.blends, step.main.inputs[1:], strict=True))
    return {f"mask_{blend}": region(named[blend]) if blend in named else None for blend in range(MAX_BLENDS)}


def _activations(step: FusedStep, context: LoweringContext, wide: int, reason: str) -> Built:
    settings: BlendSamples = step.main.attributes
    side, channels, samples = settings.resolution, pad8(settings.channels), settings.samples_out
    style: Argument = None
    if step.next_style is not None:
        style = region("styles", context.style_offset(step.next_style))
    launch = Launch(
        layer=step.main.layer,
        label="plain_blend_samples" if wide == 1 else "blend_samples",
        recipe=_recipe(context, wide),
        grid=(-(-(side**2) * (channels // wide) // _THREADS), samples, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(step.x),
            **_masks(step),
            "next_style": style,
            "y": None if step.y is None else region(step.y),
            "y_raw": None if step.y_raw is None else region(step.y_raw),
            "pictures": np.int32(settings.pictures),
            "mask_side": np.int32(settings.mask_side),
            "side": np.int32(side),
            "channels": np.int32(channels),
            "style_stride": np.int32(context.layout.style_width),
        },
        flops=step.main.flops,
        nbytes=step.main.nbytes // (2 if context.half else 1),
        is_fused=wide != 1,
        reason=reason,
    )
    return edited_layer(launch, step, context, samples, side, settings.channels)


def _picture(step: FusedStep, context: LoweringContext) -> Built:
    """Build the blend of a toRGB's picture; ``image`` of the last one is left out of a run that does not request it."""
    settings: BlendSamples = step.main.attributes
    display = next(iter(step.absorbed), None)
    side, samples, image = settings.resolution, settings.samples_out, step.main.outputs[0]
    macros = [("IMG_CHANNELS", str(settings.channels))]
    if display is not None and display.attributes.middle != MIDDLE:
        macros.append(("MIDDLE_TWICE", str(round(2 * display.attributes.middle))))
    launch = Launch(
        layer=step.main.layer,
        label="blend_pictures",
        recipe=KernelRecipe("blend_pictures", tuple(macros)),
        grid=(-(-(side**2) // _THREADS), samples, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(step.x),
            **_masks(step),
            "image": region(image),
            "pixels": None if display is None else region(display.outputs[0]),
            "flags": None if display is None else region("flags"),
            "pictures": np.int32(settings.pictures),
            "mask_side": np.int32(settings.mask_side),
            "side": np.int32(side),
        },
        flops=step.main.flops,
        nbytes=step.main.nbytes,
        optional=() if display is None else ("image",),
    )
    shape = (samples, side, side, settings.channels)
    regions = [Region(image, shape, "float32", "scratch" if display is None else "output")]
    if display is not None:
        regions.append(Region(display.outputs[0], (samples, side, side, 4), "uint8", "output"))
    return Built((launch,), (), tuple(regions))
