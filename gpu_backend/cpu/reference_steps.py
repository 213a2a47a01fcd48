"""Table of reference functions by operation, with adapters from a step's buffers and weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

import torch
from torch import Tensor

from gpu_backend.cpu.noise_pictures import NoisePictures
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.to_rgb import UNSTYLED
from gpu_backend.plan.executor import FLAG_NOT_FINITE
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.reference.adain_conv import adain_conv
from gpu_backend.reference.adain_input import adain_input
from gpu_backend.reference.adain_up_conv import adain_up_conv
from gpu_backend.reference.add import add
from gpu_backend.reference.bend_channels import bend_channels
from gpu_backend.reference.blend_samples import blend_samples
from gpu_backend.reference.concat import concat
from gpu_backend.reference.constant import constant
from gpu_backend.reference.embedding import embedding
from gpu_backend.reference.filtered_lrelu import filtered_lrelu
from gpu_backend.reference.fourier_features import fourier_features
from gpu_backend.reference.fully_connected import fully_connected
from gpu_backend.reference.modulated_conv import modulated_conv
from gpu_backend.reference.modulated_up_conv import modulated_up_conv
from gpu_backend.reference.normalize_2nd_moment import normalize_2nd_moment
from gpu_backend.reference.skip_conv import skip_conv
from gpu_backend.reference.styles import styles
from gpu_backend.reference.tap_display import tap_display, tap_statistics
from gpu_backend.reference.to_display import to_display
from gpu_backend.reference.to_rgb import add_doubled, to_rgb

_SOME_CHANNELS = 32


@dataclass(frozen=True, slots=True, eq=False)
class StepContext:
    """Data that steps read and write: `values` has the buffers computed so far, `observed` each layer's output."""

    batch: int
    values: Mapping[str, Tensor]
    weights: Mapping[str, Tensor]
    noise: NoisePictures
    observed: dict[str, Tensor] = field(default_factory=dict)

    def inputs(self, step: Step) -> list[Tensor]:
        """Return the buffers that the step reads."""
        return [self.values[name] for name in step.inputs]

    def weights_of(self, step: Step) -> dict[str, Tensor]:
        """Return role in the operation -> weight."""
        return {role: self.weights[name] for role, name in step.weights.items()}


def _add(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    x, y = around.inputs(step)
    return (add(x, y),)


def _adain(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    attributes, weights = step.attributes, around.weights_of(step)
    x, all_styles, *noises = around.inputs(step)
    offset, bias = attributes.style_offset, weights["bias"]
    style = all_styles[:, offset : offset + 2 * attributes.out_channels]
    noise: Tensor | None = None
    if attributes.noise_index >= 0:
        strength = weights["noise_strength"] * noises[1][attributes.noise_index]
        noise = around.noise.of(step) * strength[None, :, None, None]
    if isinstance(attributes, AdainInput):
        y = adain_input(x, bias, noise, style, attributes)
    elif isinstance(attributes, AdainConv):
        y = adain_conv(x, weights["weight"], bias, noise, style, attributes)
    else:
        y = adain_up_conv(x, weights["weight"], bias, noise, style, attributes)
    around.observed[step.layer] = y
    return (y,)


def _bend_channels(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    x, table = around.inputs(step)
    return (bend_channels(x, table),)


def _blend_samples(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    x, *masks = around.inputs(step)
    kept = masks.pop(0) if step.attributes.reads_kept else None
    return (blend_samples(x, masks, step.attributes, kept),)


def _concat(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    x, y = around.inputs(step)
    return (concat(x, y),)


def _constant(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    return (constant(around.weights_of(step)["const"], around.batch),)


def _embedding(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    (c,) = around.inputs(step)
    return (embedding(c, around.weights_of(step)["table"]),)


def _fully_connected(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    (x,), weights = around.inputs(step), around.weights_of(step)
    return (fully_connected(x, weights["weight"], weights["bias"], step.attributes),)


def _normalize(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    (x,) = around.inputs(step)
    return (normalize_2nd_moment(x),)


def _conv(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    attributes, weights = step.attributes, around.weights_of(step)
    x, all_styles, all_demod = around.inputs(step)[:3]
    style = all_styles[:, attributes.style_offset : attributes.style_offset + attributes.in_channels]
    demod = all_demod[:, attributes.demod_offset : attributes.demod_offset + attributes.out_channels]
    noise: Tensor | None = None
    if attributes.noise_index >= 0:
        gain = around.values[step.inputs[4]][attributes.noise_index]
        noise = around.noise.of(step)[None] * (weights["noise_strength"] * gain)
    if step.op == "modulated_up_conv":
        y = modulated_up_conv(
            x, weights["weight"], weights["bias"], style, demod, noise, attributes.act, attributes.taps
        )
    else:
        y = modulated_conv(
            x, weights["weight"], weights["bias"], style, demod, noise, attributes.act, attributes.padding
        )
    around.observed[step.layer] = y
    return (y,)


def _filtered_lrelu(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    (x,), weights = around.inputs(step), around.weights_of(step)
    filters = weights.get("up_filter"), weights.get("down_filter")
    # Channels are independent. All of them at the higher rate at once would take too much memory.
    y = torch.cat(
        [filtered_lrelu(part, *filters, step.attributes) for part in torch.split(x, _SOME_CHANNELS, dim=1)], dim=1
    )
    around.observed[step.layer] = y
    return (y,)


def _fourier_features(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    ws, transform = around.inputs(step)
    y = fourier_features(ws, transform, around.weights_of(step), step.attributes)
    around.observed[step.layer] = y
    return (y,)


def _skip_conv(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    (x,), attributes = around.inputs(step), step.attributes
    y = skip_conv(x, around.weights_of(step)["weight"], attributes.gain, attributes.taps)
    around.observed[step.layer] = y
    return (y,)


def _styles(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    ws, *offsets = around.inputs(step)
    return styles(ws, around.weights_of(step), step.attributes, *offsets)


def _tap_display(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    x, tap = around.inputs(step)
    chosen = x[:, [int(place) for place in tap[:3]]]
    return tap_display(x, tap), _flags(chosen), tap_statistics(x, tap), chosen[:, 0]


def _to_display(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    (image,) = around.inputs(step)
    return to_display(image, step.attributes), _flags(image)


def _flags(image: Tensor) -> Tensor:
    is_broken = ~image.isfinite().flatten(1).all(1)
    return (is_broken.to(torch.int32) * FLAG_NOT_FINITE).view(torch.uint32)


def _to_rgb(step: Step, around: StepContext) -> tuple[Tensor, ...]:
    attributes, weights = step.attributes, around.weights_of(step)
    x, *before = around.inputs(step)
    style: Tensor | None = None
    if attributes.style_offset != UNSTYLED:
        all_styles, *before = before
        style = all_styles[:, attributes.style_offset : attributes.style_offset + attributes.in_channels]
    y = to_rgb(x, weights["weight"], weights["bias"], style, attributes.clamp)
    around.observed[step.layer] = y
    y = y * attributes.gain
    return (add_doubled(before[0], y, attributes.taps),) if attributes.adds_image else (y,)


STEPS: dict[str, Callable[[Step, StepContext], tuple[Tensor, ...]]] = {
    "adain_conv": _adain,
    "adain_input": _adain,
    "adain_up_conv": _adain,
    "add": _add,
    "bend_channels": _bend_channels,
    "blend_samples": _blend_samples,
    "concat": _concat,
    "constant": _constant,
    "embedding": _embedding,
    "filtered_lrelu": _filtered_lrelu,
    "fourier_features": _fourier_features,
    "fully_connected": _fully_connected,
    "modulated_conv": _conv,
    "modulated_up_conv": _conv,
    "normalize_2nd_moment": _normalize,
    "skip_conv": _skip_conv,
    "styles": _styles,
    "tap_display": _tap_display,
    "to_display": _to_display,
    "to_rgb": _to_rgb,
}
"""Operation name -> function that computes its outputs."""
