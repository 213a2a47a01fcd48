"""Launches that blend samples under masks: activations between two layers, with toRGB's products, and pictures."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.launches.edited_layer import edit_recipe, edited_layer
from gpu_backend.cuda.launches.gpu_op import Fused, GpuOp, LoweringContext, Refused
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Address, Argument, Built, Launch, Region
from gpu_backend.limits import MAX_BLENDS
from gpu_backend.ops.blend_samples import BlendSamples
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.to_display import MIDDLE
from gpu_backend.plan.fusion import FusedStep, raw

_THREADS = 256

_WIDE = 8
"""Neighbouring channels of a thread: 16 bytes of fp16."""


class BlendSamplesOp(GpuOp):
    """Blended activations, with the style of the convolution that reads them, and blended pictures, with the bytes."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        if step.main.attributes.is_picture:
            return Refused()
        return Fused((edit_recipe("blend_samples", context, _WIDE),), partial(_activations, step, context, _WIDE, ""))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        if step.main.attributes.is_picture:
            return _picture(step)
        return _activations(step, context, 1, reason)


def _masks(step: FusedStep) -> dict[str, Argument]:
    """Return the mask of each blend; none for those that leave the layer as it is."""
    settings: BlendSamples = step.main.attributes
    named = dict(zip(settings.blends, settings.masks_of(step.main.inputs), strict=True))
    return {f"mask_{blend}": region(named[blend]) if blend in named else None for blend in range(MAX_BLENDS)}


def _second(step: FusedStep, itemsize: int, channels: int) -> Argument:
    """Return the second latents: what is kept of them, or what follows the pictures."""
    settings: BlendSamples = step.main.attributes
    if settings.is_keeping:
        return None
    if settings.reads_kept:
        kept = step.main.inputs[1]
        return region(kept if settings.is_picture else raw(kept))
    return Address(step.x, "region", settings.pictures * settings.resolution**2 * channels * itemsize)


def _activations(step: FusedStep, context: LoweringContext, wide: int, reason: str) -> Built:
    settings: BlendSamples = step.main.attributes
    return edited_layer(
        "blend_samples",
        step,
        context,
        {
            **_masks(step),
            "second": _second(step, 2 if context.half else 4, pad8(settings.channels)),
            "pictures": np.int32(settings.pictures),
            "mask_side": np.int32(settings.mask_side),
        },
        wide=wide,
        samples=settings.samples_out,
        side=settings.resolution,
        channels=settings.channels,
        reason=reason,
    )


def _picture(step: FusedStep) -> Built:
    """Build the blend of a toRGB's picture; ``image`` of the last one is left out of a run that does not request it."""
    settings: BlendSamples = step.main.attributes
    display = next(iter(step.absorbed), None)
    side, samples, image = settings.resolution, settings.samples_out, step.main.outputs[0]
    macros = {"IMG_CHANNELS": settings.channels}
    if display is not None and display.attributes.middle != MIDDLE:
        macros["MIDDLE_TWICE"] = round(2 * display.attributes.middle)
    launch = Launch(
        layer=step.main.layer,
        label="blend_pictures",
        recipe=KernelRecipe.of("blend_pictures", **macros),
        grid=(-(-(side**2) // _THREADS), samples, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(step.x),
            **_masks(step),
            "second": _second(step, 4, settings.channels),
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
