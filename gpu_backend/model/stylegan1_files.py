"""StyleGAN1 generators in files of tensors, including those of TensorFlow."""

from __future__ import annotations

import math

from gpu_backend.model.found import Found
from gpu_backend.model.placed_network import find_placed
from gpu_backend.model.refusal import Refusal, Unsupported
from gpu_backend.model.stylegan1_assembly import StyleGAN1Settings
from gpu_backend.model.stylegan1_layout import StyleGAN1Layout, full_resolution, place_stylegan1
from gpu_backend.model.stylegan1_layouts import ROSINALITY_STYLEGAN1
from gpu_backend.model.stylegan2 import block_resolutions
from gpu_backend.model.tensor_table import TensorTable

_BLUR = tuple(a * b / 16 for a in (1, 2, 1) for b in (1, 2, 1))
"""The filter after every up-convolution, row by row."""


def find_stylegan1(
    table: TensorTable,
    layout: StyleGAN1Layout,
    *,
    container: str,
    settings: StyleGAN1Settings | None = None,
    requested: frozenset[str] = frozenset(),
    ignored: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Found:
    """Find the generator in a table of tensors; `settings` are those of the layout, unless the file says others.

    Raises
    ------
    Unsupported
        If it was stored before it was grown to its full resolution, or blurs in another way.
    Refusal
        If its tensors do not make a StyleGAN1 generator.
    """
    for name in layout.lods:
        check_grown(table, name)
    resolution = _trained_resolution(table) if layout is ROSINALITY_STYLEGAN1 else None
    placed = place_stylegan1(layout, table.shapes, resolution)
    for name in placed.filters:
        _check_blur(table, name)
    if resolution is not None and resolution < full_resolution(layout, table.shapes):
        ignored = (*ignored, f"blocks above {resolution} x {resolution}: never trained")
    return find_placed(
        table,
        placed,
        settings or layout.settings,
        container=container,
        flavour=layout.flavour,
        requested=requested,
        ignored=ignored,
        warnings=warnings,
    )


def check_grown(table: TensorTable, name: str) -> None:
    """Check that the level of detail (lod) of progressive growing is 0, if present.

    Raises
    ------
    Unsupported
        If it is another.
    """
    if name in table.shapes and (level := table.small(name)) != [0.0]:
        raise Unsupported(
            "a network that is grown to its full resolution",
            "this one was stored before it was",
            facts=(f"Level of detail: {level[0]:g} halvings left",),
        )


def _check_blur(table: TensorTable, name: str) -> None:
    """A blur may be stored once or for every channel; the first one is looked at."""
    if table.shapes[name][-2:] != (3, 3) or not 9 <= math.prod(table.shapes[name]) <= 1 << 20:
        raise Refusal(f"a blur of 3 x 3 numbers in {name}", f"its shape is {table.shapes[name]}")
    values = table.some(name)[:9]
    if len(values) < 9 or any(abs(value - tap) > 1e-5 for value, tap in zip(values, _BLUR, strict=True)):
        raise Unsupported(f"the blur [1, 2, 1] in {name}", "it is another")


def _trained_resolution(table: TensorTable) -> int:
    """Side of the largest block of rosinality's that was trained.

    Its networks always have every block up to the largest picture, and noise and biases start as zeros.
    """
    sizes = block_resolutions(full_resolution(ROSINALITY_STYLEGAN1, table.shapes))
    for size in reversed(sizes):
        roles = ROSINALITY_STYLEGAN1.styled(size, 1, table.shapes)
        names = [roles[role][0] for role in ("bias", "noise_strength") if roles[role][0] in table.shapes]
        if any(any(table.small(name)) for name in names):
            return size
    return sizes[-1]
