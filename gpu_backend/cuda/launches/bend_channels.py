"""The launch that bends channels between two layers, and toRGB's products of what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.launches.edited_layer import WIDE, edit_recipe, edited_layer
from gpu_backend.cuda.launches.gpu_op import Fused, GpuOp, LoweringContext, Refused
from gpu_backend.cuda.schedule import Built
from gpu_backend.ops.bend_channels import AT_REST, BendChannels
from gpu_backend.plan.fusion import FusedStep


class BendChannelsOp(GpuOp):
    """Bent channels; the style of the convolution that reads them is multiplied in, as in a convolution's epilogue."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        return Fused((edit_recipe("bend_channels", context, WIDE),), partial(_build, step, context, WIDE, ""))

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        return _build(step, context, 1, reason)

    def starts(self, step: FusedStep, context: LoweringContext) -> Mapping[str, NDArray[np.float32]]:
        settings: BendChannels = step.main.attributes
        return {step.main.inputs[1]: np.tile(np.array(AT_REST, np.float32), (settings.channels, 1))}


def _build(step: FusedStep, context: LoweringContext, wide: int, reason: str) -> Built:
    settings: BendChannels = step.main.attributes
    return edited_layer(
        "bend_channels",
        step,
        context,
        {"table": region(step.main.inputs[1]), "used": np.int32(settings.channels)},
        wide=wide,
        samples=context.batch,
        side=settings.resolution,
        channels=settings.channels,
        reason=reason,
    )
