"""Launches that show a layer instead of the picture: its statistics, then its bytes."""

from __future__ import annotations

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import region
from gpu_backend.cuda.launches.gpu_op import GpuOp, LoweringContext
from gpu_backend.cuda.schedule import Built, Launch, Region
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.tap_display import LEAST, MOST, TapDisplay
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step

_THREADS = 256
_LANES = 32
_WIDE = 8
"""Channels per thread, if the channels in memory are a multiple of it."""
_PIXELS = 8
"""Of a thread, at least."""
_MOST_STRETCHES = 256
"""Every block that makes bytes looks at all of them."""

CHANNEL_PARTIALS, SLAB_PARTIALS = "tap/channel_partials", "tap/slab_partials"
"""Regions between the two kernels."""


class TapDisplayOp(GpuOp):
    """A layer that is shown instead of the picture."""

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        return tap_display(step.main, context.regions[step.x], context.batch, context.target.multiprocessors)


def tap_display(step: Step, x: Region, batch: int, multiprocessors: int) -> Built:
    """Build the two launches that show a layer.

    Reads `x` (batch, side, side, at least the layer's channels) and ``tap``; writes the step's outputs, of which it
    declares all but ``flags``.

    Parameters
    ----------
    multiprocessors
        Of the GPU: the grid has a small multiple of them.
    """
    settings: TapDisplay = step.attributes
    area, stride = settings.resolution**2, x.shape[-1]
    wide = _WIDE if stride % _WIDE == 0 else 1
    lanes = min(_LANES, 1 << (-(-stride // wide) - 1).bit_length())
    slab = lanes * wide
    slabs = -(-stride // slab)
    most = min(_MOST_STRETCHES, -(-area * lanes // (_THREADS * _PIXELS)))
    stretch = -(-area // max(1, min(most, -(-4 * multiprocessors // (slabs * batch)))))
    stretches = -(-area // stretch)
    half, itemsize = x.dtype == "float16", np.dtype(x.dtype).itemsize
    pixels, flags, statistics, values = step.outputs
    sizes = {"area": np.int32(area), "stride": np.int32(stride), "channels": np.int32(settings.channels)}
    numbers = batch * area * settings.channels
    measure = Launch(
        layer=step.layer,
        label="tap_statistics",
        recipe=KernelRecipe.of("tap_statistics", HALF=half, WIDE=wide),
        grid=(stretches, slabs, batch),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(x.name),
            "channel_partials": region(CHANNEL_PARTIALS),
            "slab_partials": region(SLAB_PARTIALS),
            **sizes,
            "stretch": np.int32(stretch),
            "lanes": np.int32(lanes),
        },
        flops=6 * numbers,
        nbytes=itemsize * numbers,
    )
    show = Launch(
        layer=step.layer,
        label="tap_display",
        recipe=KernelRecipe.of("tap_display", HALF=half),
        grid=(min(-(-area // _THREADS), 2 * multiprocessors), batch, 1),
        block=(_THREADS, 1, 1),
        shared_nbytes=0,
        arguments={
            "x": region(x.name),
            "channel_partials": region(CHANNEL_PARTIALS),
            "slab_partials": region(SLAB_PARTIALS),
            "tap": region("tap"),
            "pixels": region(pixels),
            "values": region(values),
            "statistics": region(statistics),
            "flags": region(flags),
            **sizes,
            "stretches": np.int32(stretches),
            "stretch": np.int32(stretch),
            "slabs": np.int32(slabs),
            "slab": np.int32(slab),
            "least": np.float32(LEAST),
            "most": np.float32(MOST),
        },
        flops=9 * batch * area,
        nbytes=batch * area * (3 * itemsize + 8),
    )
    regions = (
        Region(CHANNEL_PARTIALS, (batch, stretches, stride, 4), "float32", "scratch"),
        Region(SLAB_PARTIALS, (batch, stretches, slabs, 4), "float32", "scratch"),
        Region(pixels, settings.output_shape(batch), "uint8", "output"),
        Region(statistics, settings.statistics_shape(batch), "float32", "output"),
        Region(values, settings.values_shape(batch), "float32", "output"),
    )
    return Built((measure, show), (), regions)
