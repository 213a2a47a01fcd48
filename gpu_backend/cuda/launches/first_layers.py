"""Styles and the first layers of a StyleGAN2 as one persistent kernel: one picture in fp16, on Hopper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import ACTIVATION_NUMBERS, constant, region, weight_of
from gpu_backend.cuda.launches.conv_work import ConvWork, RgbPart
from gpu_backend.cuda.launches.gpu_op import (
    OBSERVED,
    Fused,
    LoweringContext,
    Observation,
    channels_first,
    slot_name,
)
from gpu_backend.cuda.launches.shared_work import parallel_for
from gpu_backend.cuda.launches.style_layout import StyleLayout, pad8
from gpu_backend.cuda.launches.style_table import StyleTable
from gpu_backend.cuda.launches.styles import StylesOp, const_constant, table_constant
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Address, Argument, Built, Constant, Launch, Region
from gpu_backend.model.model import Weights
from gpu_backend.ops.kernels.first_layers_tile import LAYERS, ROWS, TABLE_WIDTH, FirstLayersGeometry
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.ops.to_rgb import ToRgb
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass

_ARCHITECTURE = "sm_90a"
_KEPT, _COUNTERS = "first_layers/kept", "first_layers/counters"
_PICTURE_TAPS = 4
_MOST_PICTURE_CHANNELS = 8
_KERNEL = 3
_CHANNELS = 128
"""Channels are a multiple of this."""

_LEAST_LAYERS = 3
_LONGEST_ROW = 512

_RGB_STYLE, _STYLE = -2, -1
"""Kinds of items that are no demodulation."""


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """A layer of the run: its fused step, and what its kernel needs."""

    step: FusedStep
    work: ConvWork
    rgb: RgbPart | None
    exponent: int

    @property
    def slot(self) -> str:
        """Its style slot."""
        return slot_name(self.step.main)


class FirstLayersOp(StylesOp):
    """The styles, and where one kernel computes them together with the first layers, these too."""

    def fused_run(self, steps: Sequence[FusedStep], context: LoweringContext) -> tuple[int, Fused] | None:
        return _first_layers(steps, context) if _is_for(steps[0], context) else None


def _first_layers(steps: Sequence[FusedStep], context: LoweringContext) -> tuple[int, Fused] | None:
    target = context.target
    layers: list[_Layer] = []
    for number, step in enumerate(steps[1 : 1 + LAYERS]):
        found = _layer(number, step, layers, context)
        if found is None:
            break
        layers.append(found)
    kept = layers[: len(layers) - (len(layers) + 1) % 2]  # until a convolution that is no up-convolution
    if len(kept) < _LEAST_LAYERS:
        return None
    count = len(kept)
    geometry = FirstLayersGeometry(kept[0].work.in_channels, count)
    has_room = geometry.dynamic_nbytes + geometry.static_nbytes <= target.shared_nbytes_per_block
    if not has_room or geometry.blocks > target.multiprocessors or not _has_usual_slots(kept, context.layout):
        return None
    recipe = first_layers_recipe(
        geometry,
        kept[0].work,
        _picture_channels(kept),
        context.layout.attributes.w_dim,
        has_next=kept[-1].step.next_style is not None,
    )
    return 1 + count, Fused((recipe,), partial(_build, geometry, recipe, steps[0], kept, context))


def first_layers_recipe(
    geometry: FirstLayersGeometry, work: ConvWork, picture_channels: int, w_dim: int, *, has_next: bool
) -> KernelRecipe:
    """Return the kernel."""
    return KernelRecipe.of(
        "first_layers",
        HALF=1,
        BF16X3=0,
        FP8_X=0,
        FP8_Y=0,
        DEPTH=16,
        CHANNELS=geometry.channels,
        LAYERS=geometry.layers,
        W_DIM=w_dim,
        HAS_NEXT=has_next,
        IMG_CHANNELS=picture_channels,
        ACTIVATION=ACTIVATION_NUMBERS[work.act.activation],
        SHARED_NBYTES=geometry.dynamic_nbytes,
        BATCH=1,
        COOPERATIVE=1,
    )


def pack_fragments(weight: NDArray[np.float32], exponent: int) -> NDArray[np.float16]:
    """Return a 3 x 3 convolution's weights as lanes hold them: (groups, steps, 9, 32 lanes, 2 words, 2) float16.

    Lane 4 n + q holds of output channel n, for a step of sixteen input channels, 2 q and 2 q + 1, then 2 q + 8 and
    2 q + 9.
    """
    cout, cin = weight.shape[:2]
    packed = np.empty((cout // 8, cin // 16, 9, 8, 4, 2, 2), np.float16)
    scale = np.float32(2.0**-exponent)

    def pack(group: int) -> None:
        own = weight[8 * group : 8 * group + 8].reshape(8, cin // 16, 2, 4, 2, 9) * scale
        packed[group] = own.transpose(1, 5, 0, 3, 2, 4)

    parallel_for(pack, cout // 8)
    return packed.reshape(cout // 8, cin // 16, 9, 32, 2, 2)


def style_items(layout: StyleLayout, first_slots: int, first_layers: int) -> NDArray[np.int32]:
    """Return the kernel's items of later layers, (items, 8) as in ``first_layers.cu``: styles, then demodulation.

    0 16-byte groups per row, 1 first group in the table, 2 first row of terms, 3 source, in ws or among styles, 4
    columns of the source, 5 destination, 6 kind: -2 toRGB's style, -1 a style, else the number of an item of
    demodulation, 7 items of that slot.

    Parameters
    ----------
    first_slots
        Leading slots whose styles the first layers need.
    first_layers
        Of the convolutions, those whose demodulation blocks make themselves.
    """
    table, attributes = StyleTable(layout, half=True), layout.attributes
    items: list[list[int]] = []
    for slot in attributes.slots[first_slots:]:
        row, groups, start = layout.style_offset(slot.layer), table.affine_groups, table.affine_start(slot)
        kind = _STYLE if slot.demod_offset >= 0 else _RGB_STYLE
        items += (
            [groups, start + r * groups, row + r, slot.w_index * attributes.w_dim, attributes.w_dim, row + r, kind, 0]
            for r in range(0, pad8(slot.in_channels), ROWS)
        )
    for slot in table.demod_slots[first_layers:]:
        row, groups, start = layout.demod_offset(slot.layer), table.demod_groups(slot), table.demod_start(slot)
        columns, count = pad8(slot.in_channels), pad8(slot.out_channels) // ROWS
        for n in range(count):
            to = row + ROWS * n
            source = [layout.style_offset(slot.layer), columns]
            items.append([groups, start + ROWS * n * groups, layout.style_width + to, *source, to, n, count])
    return np.array(items, np.int32).reshape(-1, 8)


def observe_first_layer(step: Step, launch: Launch) -> Observation:
    """Observe one of the layers: its output before the next layer's style."""
    shape = step.attributes.output_shape(1)
    number = launch.convolutions.index(step.layer)
    return Observation(shape, "float16", channels_first, {"observed": OBSERVED, "observed_layer": np.int32(number)})


def _is_for(styles: FusedStep, context: LoweringContext) -> bool:
    target, main = context.target, styles.main
    is_one = context.plan.key.batch == context.batch == (target.batch or 1) == 1 and context.half
    is_usual = main.op == "styles" and len(main.inputs) == 1 and len(styles.absorbed) == 1 and styles.y is not None
    is_allowed = target.fuses_first_layers and target.fuses_epilogues and target.adds_pictures
    is_allowed &= not context.plan.kept_steps
    return is_one and is_usual and is_allowed and target.architecture == _ARCHITECTURE


def _layer(number: int, step: FusedStep, before: Sequence[_Layer], context: LoweringContext) -> _Layer | None:
    """Return a layer that the kernel can compute after those before; None if it cannot."""
    main, is_up = step.main, number % 2 == 1
    if main.op != ("modulated_up_conv" if is_up else "modulated_conv"):
        return None
    settings: ModulatedConv | ModulatedUpConv = main.attributes
    work, first = ConvWork.of_step(main), before[0] if before else None
    channels = work.in_channels if first is None else first.work.in_channels
    side = FirstLayersGeometry.side(number)
    is_same_size = work.side == side and work.in_channels == work.out_channels == channels
    if not is_same_size or channels % _CHANNELS or channels > _LONGEST_ROW or work.kernel != _KERNEL:
        return None
    if settings.demod_offset < 0 or work.noise_index != number or (is_up and not work.has_binomial_filter):
        return None
    if before and (step.x != before[-1].step.y or work.act.activation != before[0].work.act.activation):
        return None
    is_plain = (step.y is not None or step.next_style is None) and step.y_raw is None and step.skip is None
    if not is_plain or step.is_shown or step.stores_fp8 or (step.to_rgb is None) != is_up:
        return None
    if is_up != (step.picture is not None) or (step.picture is not None and not _is_usual(step.picture, number)):
        return None
    rgb = None if step.to_rgb is None else context.rgb_part(step.to_rgb)
    if rgb is not None:
        picture_channels = rgb.channels if first is None or first.rgb is None else first.rgb.channels
        if rgb.channels != picture_channels or rgb.channels > _MOST_PICTURE_CHANNELS:
            return None
    return _Layer(step, work, rgb, weight_exponent(context.weights[main.weights["weight"]]))


def _is_usual(picture: Step, number: int) -> bool:
    """Whether the kernel's last block can add up the picture before an up-convolution."""
    settings: ToRgb = picture.attributes
    adds_image = number > 1
    is_doubled = settings.adds_image == adds_image and (not adds_image or len(settings.taps) == _PICTURE_TAPS)
    return settings.gain == 1.0 and is_doubled


def _has_usual_slots(layers: Sequence[_Layer], layout: StyleLayout) -> bool:
    """Whether style slots are in the order that the kernel knows, all of the same width."""
    names = []
    for layer in layers:
        names.append(layer.slot)
        if layer.rgb is not None:
            names.append(layer.rgb.layer.removeprefix("synthesis."))
    if layers[-1].step.next_style is not None:
        names.append(slot_name(layers[-1].step.next_style))
    slots, attributes = layout.attributes.slots[: len(names)], layout.attributes
    is_usual = not any(slot.is_normalized for slot in attributes.slots) and attributes.w_dim % 8 == 0
    longest = max(attributes.w_dim, *(slot.in_channels for slot in attributes.slots))
    return (
        is_usual
        and longest <= _LONGEST_ROW
        and [slot.layer for slot in slots] == names
        and all(slot.in_channels == layers[0].work.in_channels for slot in slots)
    )


def _first_slots(layers: Sequence[_Layer]) -> int:
    return len(layers) + sum(layer.rgb is not None for layer in layers) + (layers[-1].step.next_style is not None)


def _picture_channels(layers: Sequence[_Layer]) -> int:
    assert layers[0].rgb is not None
    return layers[0].rgb.channels


def _build(
    geometry: FirstLayersGeometry,
    recipe: KernelRecipe,
    styles: FusedStep,
    layers: Sequence[_Layer],
    context: LoweringContext,
) -> Built:
    weights, layout, last = context.weights, context.layout, layers[-1]
    table_of_styles = StyleTable(layout, half=True)
    key = f"{last.work.weight}/{geometry.layers}"
    table_key = f"{key}/{layout.attributes.slots[-1].layer}"
    rows = table_constant(styles.main, table_of_styles, weights)
    const = const_constant(styles.absorbed[0].weights["const"], weights)
    exponents = " ".join(str(layer.exponent) for layer in layers)
    weight = Constant(f"first_layers/weights/{key}/{exponents}", partial(_weights, layers, weights))
    values = Constant(f"first_layers/values/{key}", partial(_values, layers, weights))
    table = Constant(f"first_layers/table/{table_key}", partial(_table, layers, context))
    items = style_items(layout, _first_slots(layers), len(layers))
    item_constant = Constant(f"first_layers/items/{table_key}", lambda: items)
    pictures = [layer.step.picture for layer in layers if layer.step.picture is not None]
    channels, side = _picture_channels(layers), last.work.side
    styles_offset = geometry.styles_offset(channels)
    images = [picture.outputs[0] for picture in pictures]
    clamps = [math.inf if picture.attributes.clamp is None else picture.attributes.clamp for picture in pictures]
    arguments: dict[str, Argument] = {
        "ws": region("ws"),
        "style_rows": constant(rows.key),
        "terms": Address(rows.key, "constant", table_of_styles.weights_nbytes),
        "items": constant(item_constant.key),
        "constant": constant(const.key),
        "weight": constant(weight.key),
        "values": constant(values.key),
        "table": constant(table.key),
        "noise_gain": region("noise_gain"),
        "noise_source": region("noise_source"),
        "kept": region(_KEPT),
        "raw_offset": np.int32(styles_offset),
        "styles": region("styles"),
        "demod": region("demod"),
        "flags": region("flags"),
        "y": None if last.step.y is None else region(last.step.y),
        "rgb_parts": None if last.rgb is None else region(last.rgb.region),
        "image_4": region(images[0]) if images else None,
        "image_8": region(images[1]) if len(images) > 1 else None,
        "clamp_4": np.float32(clamps[0] if clamps else 0.0),
        "clamp_8": np.float32(clamps[1] if len(clamps) > 1 else 0.0),
        "adds_image": np.int32(1),
        "item_count": np.int32(len(items)),
        "style_width": np.int32(layout.style_width),
        "counters": region(_COUNTERS),
        "observed": None,
        "observed_layer": np.int32(0),
    }
    regions = [
        Region("styles", (1, layout.style_width), "float32", "scratch"),
        Region("demod", (1, layout.demod_width), "float32", "scratch"),
        Region(_KEPT, (styles_offset // 4 + layout.style_width,), "uint32", "kept"),
        Region(_COUNTERS, (2,), "uint32", "kept"),
        *(
            Region(image, (1, 4 << number, 4 << number, channels), "float32", "scratch")
            for number, image in enumerate(images)
        ),
    ]
    if last.step.y is not None:
        regions.append(Region(last.step.y, (1, side, side, geometry.channels), "float16", "scratch"))
    if last.rgb is not None:
        regions.append(Region(last.rgb.region, (geometry.groups, 1, side, side, channels), "float32", "scratch"))
    launch = Launch(
        layer=styles.main.layer,
        label="first_layers",
        stands_for="styles",
        recipe=recipe,
        grid=(geometry.blocks, 1, 1),
        block=(geometry.threads, 1, 1),
        shared_nbytes=geometry.dynamic_nbytes,
        arguments=arguments,
        flops=styles.main.flops + sum(layer.work.flops for layer in layers),
        nbytes=table_of_styles.nbytes
        + 4 * (layout.attributes.w_dim + layout.style_width + layout.demod_width)
        + 2 * len(layers) * 9 * geometry.channels**2
        + 2 * sum(layer.work.side**2 for layer in layers) * geometry.channels,
        pictures=tuple(picture.layer for picture in pictures),
        convolutions=tuple(layer.work.layer for layer in layers),
    )
    return Built((launch,), (rows, const, weight, values, table, item_constant), tuple(regions))


def _weights(layers: Sequence[_Layer], weights: Weights) -> NDArray[np.float16]:
    return np.stack([pack_fragments(weight_of(layer.work, weights), layer.exponent) for layer in layers])


def _values(layers: Sequence[_Layer], weights: Weights) -> NDArray[np.float32]:
    """Return biases, stored noise, toRGB's weights and biases, and the taps that double pictures."""
    rgbs = [layer.rgb for layer in layers if layer.rgb is not None]
    pictures = [layer.step.picture for layer in layers if layer.step.picture is not None]
    found = [weights[layer.work.bias] for layer in layers]
    found += [weights[layer.work.noise_const] for layer in layers]
    found += [weights[rgb.weight] for rgb in rgbs]
    found += [weights[picture.weights["bias"]] for picture in pictures]
    found += [np.zeros(rgbs[0].channels, np.float32)] * (len(rgbs) - len(pictures))
    taps = next(
        (picture.attributes.taps for picture in pictures if picture.attributes.adds_image), (0.0,) * _PICTURE_TAPS
    )
    found.append(2.0 * np.asarray(taps, np.float32))
    return np.concatenate([np.asarray(item, np.float32).reshape(-1) for item in found])


def _table(layers: Sequence[_Layer], context: LoweringContext) -> NDArray[np.int32]:
    """Return strength of the noise, gain, clamp and rows of demodulation of each layer, then rows of w of the slots."""
    layout, slots = context.layout, context.layout.attributes.slots
    table = StyleTable(layout, half=True)
    numbers = np.zeros((len(layers), TABLE_WIDTH), np.int32)
    for row, layer, slot in zip(numbers, layers, table.demod_slots, strict=False):
        act = layer.work.act
        strength = float(np.asarray(context.weights[layer.work.noise_strength]).reshape(-1)[0])
        row[:3].view(np.float32)[:] = strength, act.gain, math.inf if act.clamp is None else act.clamp
        row[3] = table.demod_start(slot)
    rows = np.array([slot.w_index for slot in slots[: _first_slots(layers)]], np.int32)
    return np.concatenate((numbers.reshape(-1), rows))
