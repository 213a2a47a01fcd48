"""The launch that adds offsets to styles and recomputes what depends on them."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import constant, region
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.launches.style_table import StyleTable
from gpu_backend.cuda.schedule import Argument, Built, Constant, Launch
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.styles import OFFSETS_INPUT

_THREADS = 256
_ROWS = 64
"""Coefficients of a block."""

_LANES = 32
"""Threads that share a row in the fast kernel; the plain kernel, its reference, has one."""


def shift_styles_launch(
    layer: str,
    styles: Launch,
    table: StyleTable,
    names: str,
    *,
    batch: int,
    half: bool,
    is_plain: bool,
    reason: str = "",
) -> Built:
    """Build it. Reads ``style_offsets`` and what `styles`, the launch before, read and wrote; writes what that wrote.

    Parameters
    ----------
    names
        Key of the constant with the slots.
    """
    lanes = 1 if is_plain else _LANES
    slots = table.layout.attributes.slots
    has_x0 = styles.arguments["x0"] is not None
    most = max((pad8(slot.out_channels) for slot in table.demod_slots), default=1)
    longest = max(pad8(slot.in_channels) for slot in slots)
    read = styles.arguments
    arguments: dict[str, Argument] = {
        "offsets": region(OFFSETS_INPUT),
        "table": read["table"],
        "terms": read["terms"],
        "slots": constant(names),
        **{name: read[name] for name in ("constant", "raw", "style", "demod", "x0", "style_stride", "demod_stride")},
    }
    products = sum(slot.in_channels * slot.out_channels for slot in table.demod_slots)
    launch = Launch(
        layer=layer,
        label="plain_shift_styles" if is_plain else "shift_styles",
        stands_for="" if is_plain else "plain_shift_styles",
        recipe=KernelRecipe.of("shift_styles", HALF=half, LANES=lanes),
        grid=(len(slots), -(-most // _ROWS), batch),
        block=(_THREADS, 1, 1),
        shared_nbytes=4 * longest,
        arguments=arguments,
        flops=3 * batch * products,
        nbytes=table.itemsize * products,
        is_fused=not is_plain,
        reason=reason,
    )
    return Built((launch,), (Constant(names, partial(_slots, table, has_x0=has_x0)),))


def _slots(table: StyleTable, *, has_x0: bool) -> NDArray[np.int32]:
    """Return the kernel's slots, (slots, 12) as in ``ops/kernels/shift_styles.cu``."""
    layout = table.layout
    made = np.zeros((len(layout.attributes.slots), 12), np.int32)
    for index, slot in enumerate(layout.attributes.slots):
        made[index, 1:4] = layout.style_offset(slot.layer), slot.in_channels, slot.style_offset
        if slot.demod_offset >= 0:
            row = layout.demod_offset(slot.layer)
            made[index, 0] = 2 if slot.is_normalized else 1
            made[index, 4:9] = (
                row,
                pad8(slot.out_channels),
                table.demod_start(slot),
                table.demod_groups(slot),
                layout.style_width + row,
            )
        made[index, 9] = has_x0 and index == 0
    return made
