"""All layers' styles and demodulation coefficients, and the first layer's input: one launch."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.gpu_op import Fused, GpuOp, LoweringContext, Refused
from gpu_backend.cuda.launches.row_pass import rows_of_a_pass, shared_nbytes
from gpu_backend.cuda.launches.shift_styles import shift_styles_launch
from gpu_backend.cuda.launches.style_layout import StyleLayout, pad8
from gpu_backend.cuda.launches.style_table import StyleTable
from gpu_backend.cuda.schedule import Address, Built, Constant, Launch, Region
from gpu_backend.model.model import Weights
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.styles import Styles
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step

_WARPS = 8
_PIXELS = 16


class StylesOp(GpuOp):
    """All styles and demodulation coefficients, and the learned constant of a network that begins with one."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        if len(step.main.inputs) == 1:
            return Refused()
        built = self._shifted(step, context, is_plain=False)
        return Fused((built.launches[-1].recipe,), lambda: built)

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        if len(step.main.inputs) > 1:
            return self._shifted(step, context, is_plain=True, reason=reason)
        return self._styles(step, context)

    def _shifted(self, step: FusedStep, context: LoweringContext, *, is_plain: bool, reason: str = "") -> Built:
        """Return the styles, and the launch that adds offsets to them."""
        styles, attributes = self._styles(step, context), step.main.attributes
        table = StyleTable(context.layout, context.half)
        names = f"styles/shifted/{attributes.slots[-1].layer}/{'fp16' if context.half else 'fp32'}"
        shift = shift_styles_launch(
            step.main.layer,
            styles.launches[0],
            table,
            names,
            batch=context.batch,
            half=context.half,
            is_plain=is_plain,
            reason=reason,
        )
        return Built.joined((styles, shift))

    def _styles(self, step: FusedStep, context: LoweringContext) -> Built:
        constant = next(iter(step.absorbed), None)
        return styles_launch(
            step.main,
            context.weights,
            batch=context.batch,
            num_ws=context.num_ws,
            half=context.half,
            const=None if constant is None else constant.weights["const"],
            x0=step.y or "",
        )


def styles_launch(
    step: Step,
    weights: Weights,
    *,
    batch: int,
    num_ws: int,
    half: bool,
    const: str | None = "synthesis.b4.const",
    x0: str = "b4.const",
) -> Built:
    """Build the launch of a plan's `styles` step.

    Reads the step's first input, rows of w (batch, num_ws, w_dim). Writes

    ``styles``
        (batch, style_width): s / max|s| of layers that demodulate, s gain of the others (toRGB).
    ``demod``
        (batch, demod_width): d max|s| 2^e, see `gpu_backend.cuda.launches.weight_exponent`.
    `x0`
        (batch, 4, 4, channels padded to 8), fp16 or fp32: the learned constant times the style of the step's first
        slot, the convolution that reads it. Without a learned constant, or where no style touches it, there is none.
    ``flags``
        (batch,): zeros.

    Offsets within a row are those of `StyleLayout`. The regions in the answer are
    styles, demod, x0 and the kernel's own two; rows of w and ``flags`` belong to the schedule.

    Parameters
    ----------
    step
        With `Styles` attributes; its weights name the affines and the convolutions' weights.
    num_ws
        Rows of w of a sample.
    half
        fp16 activations and tables; fp32 otherwise.
    const
        Name of the learned constant among the weights, (channels, 4, 4); None in a network that makes no x0.

    Raises
    ------
    DeviceError
        If rows are too long for a block's shared memory.
    ValueError
        If a layer has both demodulation and a gain.
    """
    attributes: Styles = step.attributes
    _check(attributes, has_x0=const is not None)
    layout = StyleLayout(attributes)
    table = StyleTable(layout, half)
    longest = _longest_row(attributes)
    rows = rows_of_a_pass(longest, batch)
    passes = -(-batch // rows)
    items = style_items(table, has_x0=const is not None)
    first = attributes.slots[0]
    precision = "fp16" if half else "fp32"
    last = attributes.slots[-1].layer  # plans that leave earlier have fewer slots, and a table of their own
    names = {"table": _table_key(table), "items": f"styles/items/{last}/{precision}"}
    x0_shape = (batch, 4, 4, pad8(first.in_channels))
    x0_region = Region(x0, x0_shape, "float16" if half else "float32", "scratch")
    slots = len(attributes.slots)
    regions = (
        Region("styles", (batch, layout.style_width), "float32", "scratch"),
        Region("demod", (batch, layout.demod_width), "float32", "scratch"),
        *(() if const is None else (x0_region,)),
        Region("styles/raw", (batch, layout.style_width), "float32", "scratch"),
        Region("styles/counters", (1 + 2 * passes * slots,), "uint32", "zeroed"),
    )
    constants = (
        table_constant(step, table, weights),
        Constant(names["items"], partial(style_items, table, has_x0=const is not None)),
        *(() if const is None else (const_constant(const, weights),)),
    )
    launch = Launch(
        step.layer,
        "styles",
        KernelRecipe.of("styles", HALF=half, BATCH=rows),
        (len(items) * passes, 1, 1),
        (32 * _WARPS, 1, 1),
        shared_nbytes(longest, rows),
        {
            "ws": Address(step.inputs[0], "region"),
            "table": Address(names["table"], "constant"),
            "terms": Address(names["table"], "constant", table.weights_nbytes),
            "items": Address(names["items"], "constant"),
            "constant": None if const is None else Address("styles/const", "constant"),
            "raw": Address("styles/raw", "region"),
            "style": Address("styles", "region"),
            "demod": Address("demod", "region"),
            "x0": None if const is None else Address(x0, "region"),
            "flags": Address("flags", "region"),
            "counters": Address("styles/counters", "region"),
            "batch": np.int32(batch),
            "item_count": np.int32(len(items)),
            "slot_count": np.int32(slots),
            "ws_stride": np.int32(num_ws * attributes.w_dim),
            "style_stride": np.int32(layout.style_width),
            "demod_stride": np.int32(layout.demod_width),
            "table_lines": np.int32(table.lines),
        },
        flops=step.flops,
        nbytes=table.nbytes
        + 4 * batch * (attributes.w_dim + layout.style_width + layout.demod_width)
        + (0 if const is None else (2 if half else 4) * int(np.prod(x0_shape))),
    )
    return Built((launch,), constants, regions)


def table_constant(step: Step, table: StyleTable, weights: Weights) -> Constant:
    """Return the rows of all affines and all W2 of a `styles` step."""
    return Constant(_table_key(table), partial(table.make, weights, dict(step.weights)))


def const_constant(name: str, weights: Weights) -> Constant:
    """Return the learned constant as (16, channels padded to 8)."""
    return Constant("styles/const", partial(_constant_pixels, weights, name))


def _table_key(table: StyleTable) -> str:
    return f"styles/table/{table.layout.attributes.slots[-1].layer}/{'fp16' if table.half else 'fp32'}"


def style_items(table: StyleTable, *, has_x0: bool = True) -> NDArray[np.int32]:
    """Return the kernel's work items, (items, 16) as in ``ops/kernels/styles.cu``: styles, then demodulation."""
    layout, rows_of_item = table.layout, _WARPS * (4 if table.half else 2)
    slots = layout.attributes.slots
    shares = [
        [-(-pad8(channels) // rows_of_item) for channels in (slot.in_channels, slot.out_channels)] for slot in slots
    ]
    items: list[list[int]] = []

    def cut(kind: int, slot: int, rows: int, groups: int, group: int, term: int, source: list[int], to: int) -> None:
        starts = range(0, rows, rows_of_item)
        for index, start in enumerate(starts):
            count = min(rows_of_item, rows - start)
            first = [kind, groups, count, group + start * groups]
            items.append([*first, term + start, *source, to + start, slot, *shares[slot], index])

    w_dim = layout.attributes.w_dim
    for index, slot in enumerate(slots):
        row = layout.style_offset(slot.layer)
        source = [slot.w_index * w_dim, w_dim]
        kind = 1 if slot.demod_offset >= 0 else 0
        cut(kind, index, pad8(slot.in_channels), table.affine_groups, table.affine_start(slot), row, source, row)
    for index, slot in enumerate(slots):
        if slot.demod_offset < 0:
            continue
        row = layout.demod_offset(slot.layer)
        source = [layout.style_offset(slot.layer), pad8(slot.in_channels)]
        groups, term = table.demod_groups(slot), layout.style_width + row
        cut(2, index, pad8(slot.out_channels), groups, table.demod_start(slot), term, source, row)
    made = np.zeros((len(items), 16), np.int32)
    made[:, :12] = items
    made[:, 12] = has_x0 & (made[:, 0] == 2) & (made[:, 8] == 0)
    return made


def _constant_pixels(weights: Weights, name: str) -> NDArray[np.float32]:
    """Return the learned constant as (16, channels padded to 8)."""
    const = weights[name]
    pixels = np.zeros((_PIXELS, pad8(len(const))), np.float32)
    pixels[:, : len(const)] = const.reshape(len(const), _PIXELS).T
    return pixels


def _longest_row(attributes: Styles) -> int:
    return max((attributes.w_dim, *(slot.in_channels for slot in attributes.slots if slot.demod_offset >= 0)))


def _check(attributes: Styles, *, has_x0: bool) -> None:
    first = attributes.slots[0]
    if has_x0 and first.demod_offset < 0:
        raise ValueError(f"the first layer, {first.layer!r}, is not demodulated, so it has no normalised style for x0")
    for slot in attributes.slots:
        if slot.demod_offset >= 0 and slot.style_gain != 1.0:
            raise ValueError(
                f"layer {slot.layer!r} is demodulated, so its style cannot have a gain of {slot.style_gain}"
            )
