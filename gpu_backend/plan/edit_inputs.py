"""Local edits: what a request's edits mean for the key of its plan, and arrays for the plan's inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.model.spec import NetworkSpec, StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.ops.bend_channels import AT_REST, BEND_INPUT
from gpu_backend.ops.blend_samples import BlendSamples
from gpu_backend.ops.styles import OFFSETS_INPUT, Styles
from gpu_backend.picture_mask import layer_mask
from gpu_backend.plan import stylegan3
from gpu_backend.plan.plan import NOT_EDITED, Plan, PlanEdits
from gpu_backend.recipe import NO_EDITS, Bend, BendKind, LocalEdits, MaskedBlend, StyleOffset, Transform
from gpu_backend.request import check_edit_counts

MAX_AMOUNT = 1e4
"""Far above useful amounts, on either side; keeps products within float32."""

MIN_SCALE, MAX_SCALE = 1e-3, 1e3
"""Of a bend that scales."""


SYNTHESIS = "synthesis."
"""Prefix of the layers of the synthesis network, which requests leave out."""


def plan_edits(edits: LocalEdits) -> PlanEdits:
    """Return what edits add to a plan, independent of their amounts."""
    if edits is NO_EDITS or edits == NO_EDITS:
        return NOT_EDITED
    bent = tuple(sorted({bend.layer for bend in edits.bends}))
    return PlanEdits(bent, bool(edits.style_offsets), tuple(blend.rows for blend in edits.blends))


def bendable_layers(spec: NetworkSpec) -> dict[str, int]:
    """Return the layers with activations, which can be bent, and their numbers of channels, in execution order."""
    layers = {layer.name: layer.out_channels for layer in spec.layers if layer.kind not in ("to_rgb", "skip")}
    if isinstance(spec, StyleGAN1Spec | StyleGAN2Spec):
        return layers
    return {stylegan3.INPUT: spec.input.channels, **layers}


def style_lengths(spec: NetworkSpec) -> dict[str, int]:
    """Return the layers with a style and the lengths of their styles, in execution order."""
    styled = [layer for layer in spec.layers if layer.w_index >= 0]
    if isinstance(spec, StyleGAN1Spec):  # scales, then shifts
        return {layer.name: 2 * layer.out_channels for layer in styled}
    return {layer.name: layer.in_channels for layer in styled}


def check_edits(edits: LocalEdits, channels: Mapping[str, int], styles: Mapping[str, int], num_ws: int) -> None:
    """Raise RequestError if edits do not fit a network.

    Parameters
    ----------
    channels
        Layers that can be bent -> number of channels.
    styles
        Layers with a style -> length of the style.
    num_ws
        Rows of w.
    """
    check_edit_counts(edits)
    for bend in edits.bends:
        _check_bend(bend, channels)
    for offset in edits.style_offsets:
        length = styles.get(offset.layer)
        if length is None:
            raise RequestError(f"The layer {offset.layer[:40]!r} has no style in this network.")
        if not 0 <= offset.channel < length:
            raise RequestError(
                f"{offset.layer} has the style channels 0 to {length - 1}, but channel {offset.channel} was requested."
            )
        if not abs(offset.amount) <= MAX_AMOUNT:  # this form also refuses NaN
            raise RequestError(f"A style offset must be in -{MAX_AMOUNT:g}..{MAX_AMOUNT:g}, not {offset.amount}.")
    for blend in edits.blends:
        first, last = blend.rows.first, blend.rows.last
        if not 0 <= first < num_ws or (last is not None and not first <= last < num_ws):
            raise RequestError(f"A blend acts on rows of w in 0..{num_ws - 1}, but on {first}..{last} here.")
        for name, value in (("strength", blend.strength), ("soft edge", blend.softness)):
            if not 0.0 <= value <= 1.0:  # this form also refuses NaN
                raise RequestError(f"A blend's {name} must be in 0..1, not {value}.")


def _check_bend(bend: Bend, channels: Mapping[str, int]) -> None:
    count = channels.get(bend.layer)
    if count is None and (plain := bend.layer.removeprefix(SYNTHESIS)) in channels:
        raise RequestError(f"A layer is named without {SYNTHESIS!r}: {plain!r}, not {bend.layer!r}.")
    if count is None:
        raise RequestError(f"The layer {bend.layer[:40]!r} cannot be bent in this network; it has no activations.")
    if bend.kind not in get_args(BendKind):
        raise RequestError(f"A bend must be one of {', '.join(get_args(BendKind))}, not {bend.kind!r}.")
    for channel in bend.channels:
        if not 0 <= channel < count:
            raise RequestError(f"{bend.layer} has the channels 0 to {count - 1}, but channel {channel} was requested.")
    if bend.kind == "scale" and not MIN_SCALE <= bend.amount <= MAX_SCALE:
        raise RequestError(f"A bend must scale by {MIN_SCALE:g} to {MAX_SCALE:g}, not by {bend.amount}.")
    for amount in (bend.amount, bend.down):
        if not abs(amount) <= MAX_AMOUNT:  # this form also refuses NaN
            raise RequestError(f"A bend's amount must be in -{MAX_AMOUNT:g}..{MAX_AMOUNT:g}, not {amount}.")


def edit_inputs(plan: Plan, edits: LocalEdits) -> dict[str, NDArray[np.float32]]:
    """Return the arrays of a plan's inputs that edits set; edits of layers that the plan leaves out have none."""
    if plan.key.edits is NOT_EDITED or plan.key.edits == NOT_EDITED:
        return {}
    inputs = {}
    for buffer in plan.buffers:
        if buffer.role != "input":
            continue
        if buffer.name.startswith(BEND_INPUT):
            layer = buffer.name.removeprefix(BEND_INPUT)
            inputs[buffer.name] = bend_table((bend for bend in edits.bends if bend.layer == layer), buffer.shape[0])
        elif buffer.name == OFFSETS_INPUT:
            inputs[buffer.name] = style_offsets(styles_of(plan), edits.style_offsets)
    return inputs


def mask_inputs(plan: Plan, blends: Sequence[MaskedBlend]) -> dict[str, NDArray[np.float32]]:
    """Return the arrays of a plan's inputs that the masks and strengths of blends set."""
    inputs: dict[str, NDArray[np.float32]] = {}
    for step in plan.steps:
        if step.op == "blend_samples":
            settings: BlendSamples = step.attributes
            for name, index in zip(settings.masks_of(step.inputs), settings.blends, strict=True):
                if name not in inputs:
                    blend = blends[index]
                    mask = layer_mask(blend.mask, settings.mask_side, settings.extent, blend.softness)
                    inputs[name] = mask * np.float32(blend.strength)
    return inputs


def styles_of(plan: Plan) -> Styles:
    """Return the parameters of a plan's styles step."""
    styles: Styles = next(step.attributes for step in plan.steps if step.op == "styles")
    return styles


def bend_table(bends: Iterable[Bend], channels: int) -> NDArray[np.float32]:
    """Return the table of a layer (`gpu_backend.ops.bend_channels`); channels past its end do not count."""
    table = np.tile(np.array(AT_REST), (channels, 1))
    for bend in bends:
        chosen = [channel for channel in bend.channels if channel < channels] if bend.channels else slice(None)
        rows = table[chosen]
        if bend.kind in ("gain", "ablate"):
            rows[:, 7] *= bend.amount if bend.kind == "gain" else 1.0 - bend.amount
        elif bend.kind == "threshold":
            rows[:, 6] = np.maximum(rows[:, 6], bend.amount)
        else:
            # What an earlier bend moved, a later one moves again: a position goes through the later matrix first.
            rows[:, :6] = (rows[:, :6].reshape(-1, 2, 3) @ _matrix(bend)).reshape(-1, 6)
        table[chosen] = rows
    return table.astype(np.float32)


def _matrix(bend: Bend) -> NDArray[np.float64]:
    """Return the (3, 3) matrix from a position in the output of a bend to one in its input."""
    match bend.kind:
        case "move":
            transform = Transform(x=bend.amount, y=bend.down)
        case "turn":
            transform = Transform(degrees=math.remainder(bend.amount, 360.0))
        case _:
            transform = Transform(scale=bend.amount)
    return np.reshape(transform.matrix, (3, 3))


def style_offsets(styles: Styles, offsets: Sequence[StyleOffset]) -> NDArray[np.float32]:
    """Return the offsets of all styles of a plan, (style_width,); those of layers that it leaves out do not count."""
    sums = np.zeros(styles.style_width, np.float32)
    slots = {slot.layer: slot for slot in styles.slots}
    for offset in offsets:
        slot = slots.get(offset.layer)
        if slot is not None and offset.channel < slot.in_channels:
            sums[slot.style_offset + offset.channel] += np.float32(offset.amount)
    return sums
