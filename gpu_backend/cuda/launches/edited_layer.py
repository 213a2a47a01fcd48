"""What the kernels of edits between two layers share: launch, regions that they write, toRGB's products."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.launches.gpu_op import LoweringContext
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.to_rgb import plain_to_rgb
from gpu_backend.cuda.schedule import Argument, Built, Launch, Region
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.fusion import FusedStep

WIDE = 4
"""Neighbouring channels of a thread of the fast kernel; the plain kernel, its reference, has one."""

_THREADS = 256


def edit_recipe(stem: str, context: LoweringContext, wide: int) -> KernelRecipe:
    """Return the kernel of an edit whose threads compute `wide` neighbouring channels."""
    return KernelRecipe.of(stem, HALF=context.half, WIDE=wide)


def edited_layer(
    stem: str,
    step: FusedStep,
    context: LoweringContext,
    arguments: Mapping[str, Argument],
    *,
    wide: int,
    samples: int,
    side: int,
    channels: int,
    reason: str,
) -> Built:
    """Build the launch of an edit between two layers, and toRGB's if a toRGB reads the edited layer.

    Reads ``step.x`` and ``styles``; writes and declares ``step.y``, times the next layer's style, and ``step.y_raw``.

    Parameters
    ----------
    arguments
        Those of this kernel alone.
    wide
        Neighbouring channels of a thread; 1 for the plain kernel.
    samples, side, channels
        Of the edited layer; `channels` without padding.
    reason
        Why the plain kernel stands in for the fast one; "" in plans that are plain throughout.
    """
    padded = pad8(channels)
    style = None if step.next_style is None else region("styles", context.style_offset(step.next_style))
    launch = Launch(
        layer=step.main.layer,
        label=stem if wide > 1 else f"plain_{stem}",
        stands_for=f"plain_{stem}" if wide > 1 else "",
        recipe=edit_recipe(stem, context, wide),
        grid=(-(-(side**2) * (padded // wide) // _THREADS), samples, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(step.x),
            "next_style": style,
            "y": None if step.y is None else region(step.y),
            "y_raw": None if step.y_raw is None else region(step.y_raw),
            "side": np.int32(side),
            "channels": np.int32(padded),
            "style_stride": np.int32(context.layout.style_width),
            **arguments,
        },
        flops=step.main.flops,
        nbytes=step.main.nbytes // (2 if context.half else 1),
        is_fused=wide > 1,
        reason=reason,
    )
    shape = (samples, side, side, padded)
    dtype = "float16" if context.half else "float32"
    written = tuple(Region(name, shape, dtype, "scratch") for name in (step.y, step.y_raw) if name is not None)
    edited = Built((launch,), (), written)
    if step.to_rgb is None or step.y_raw is None:
        return edited
    products = plain_to_rgb(
        context.rgb_part(step.to_rgb),
        step.y_raw,
        context.weights,
        samples,
        side,
        channels,
        context.layout.style_width,
        half=context.half,
        is_fused=True,
    )
    return Built.joined((edited, products))
