"""The launch that bends channels between two layers, and toRGB's products of what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.launches.edited_layer import edited_layer
from gpu_backend.cuda.launches.gpu_op import Fused, GpuOp, LoweringContext, Refused
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Argument, Built, Launch
from gpu_backend.ops.bend_channels import AT_REST, BendChannels
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.fusion import FusedStep

_THREADS = 256
_WIDE = 4
"""Neighbouring channels of a thread of the fast kernel; the plain kernel, its reference, has one."""


class BendChannelsOp(GpuOp):
    """Bent channels; the style of the convolution that reads them is multiplied in, as in a convolution's epilogue."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        return Fused((_recipe(context, _WIDE),), partial(_build, step, context, _WIDE, ""))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        return _build(step, context, 1, reason)

    def starts(self, step: FusedStep, context: LoweringContext) -> Mapping[str, NDArray[np.float32]]:
        settings: BendChannels = step.main.attributes
        return {step.main.inputs[1]: np.tile(np.array(AT_REST, np.float32), (settings.channels, 1))}


def _recipe(context: LoweringContext, wide: int) -> KernelRecipe:
    return KernelRecipe("bend_channels", (("HALF", str(int(context.half))), ("WIDE", str(wide))))


def _build(step: FusedStep, context: LoweringContext, wide: int, reason: str) -> Built:
    settings: BendChannels = step.main.attributes
    side, channels, batch = settings.resolution, pad8(settings.channels), context.batch
    style: Argument = None
    if step.next_style is not None:
        style = region("styles", context.style_offset(step.next_style))
    launch = Launch(
        layer=step.main.layer,
        label="plain_bend_channels" if wide == 1 else "bend_channels",
        recipe=_recipe(context, wide),
        grid=(-(-(side**2) * (channels // wide) // _THREADS), batch, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(step.x),
            "table": region(step.main.inputs[1]),
            "next_style": style,
            "y": None if step.y is None else region(step.y),
            "y_raw": None if step.y_raw is None else region(step.y_raw),
            "side": np.int32(side),
            "channels": np.int32(channels),
            "used": np.int32(settings.channels),
            "style_stride": np.int32(context.layout.style_width),
        },
        flops=settings.flops(batch),
        nbytes=settings.nbytes(batch) // (2 if context.half else 1),
        is_fused=wide != 1,
        reason=reason,
    )
    return edited_layer(launch, step, context, batch, side, settings.channels)
