"""What the kernels of edits between two layers share: the regions that they write, and toRGB's products of these."""

from __future__ import annotations

from gpu_backend.cuda.launches.gpu_op import LoweringContext
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.to_rgb import plain_to_rgb
from gpu_backend.cuda.schedule import Built, Launch, Region
from gpu_backend.plan.fusion import FusedStep


def edited_layer(
    launch: Launch, step: FusedStep, context: LoweringContext, samples: int, side: int, channels: int
) -> Built:
    """Return the launch of an edit with the regions that it writes, and toRGB's launch if a toRGB reads the layer.

    Parameters
    ----------
    samples, side, channels
        Of the edited layer; `channels` without padding.
    """
    shape = (samples, side, side, pad8(channels))
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
