"""The launch that doubles a skip which is shown: everywhere else, the sum at the end of its block does that."""

from __future__ import annotations

import math

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import region, taps_constant
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Built, Constant, Launch, Region
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.plan.plan import Step

_THREADS = 256


def doubled(step: Step, small: str, y: str, batch: int, *, half: bool) -> Built:
    """Build it. Reads `small`, half the side; writes and declares `y`, both (batch, side, side, padded channels)."""
    settings: SkipConv = step.attributes
    side, channels = settings.resolution, pad8(settings.out_channels)
    constants: list[Constant] = []
    # Doubling has gain 2 per axis, and the block's gain is for both axes.
    taps = taps_constant(constants, settings.taps, 2.0 * math.sqrt(settings.gain))
    items, itemsize = side**2 * channels // 4, 2 if half else 4
    numbers = batch * side**2 * settings.out_channels
    launch = Launch(
        layer=step.layer,
        label="doubled",
        recipe=KernelRecipe.of("doubled", HALF=half, TAPS=len(settings.taps)),
        grid=(-(-items // _THREADS), batch, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(small),
            "taps": taps,
            "y": region(y),
            "side": np.int32(side),
            "channels": np.int32(channels),
        },
        flops=numbers * len(settings.taps) ** 2 // 2,
        nbytes=itemsize * numbers * 5 // 4,
    )
    declared = Region(y, (batch, side, side, channels), "float16" if half else "float32", "scratch")
    return Built((launch,), tuple(constants), (declared,))
