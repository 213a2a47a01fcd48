"""The resample filter of a network, from the copies of it that a file holds."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Container, Iterable

from gpu_backend.model.refusal import Refusal, Unsupported

USUAL_TAPS = (0.125, 0.375, 0.375, 0.125)
"""The filter of every public StyleGAN2, [1, 3, 3, 1] / 8."""

StoredFilter = tuple[str, tuple[int, ...], list[float]]
"""Name, shape, and values in C order."""


_STORED = re.compile(r"synthesis\.b([0-9]{1,4})\.(conv0\.|conv1\.|skip\.)?resample_filter", re.ASCII)


def used_filters(names: Collection[str], tensors: Container[str]) -> list[str]:
    """Choose the filters that a StyleGAN2 in NVIDIA's names applies; filters of other names are all applied.

    Every module has the buffer. ``conv0`` and ``skip`` double features, and a block doubles the picture of the block
    before it, if that has one. Nothing reads ``conv1``'s, which keeps its default [1, 3, 3, 1] whatever the others are.
    A 4 x 4 network does not upsample; the filter of its block is used.

    Parameters
    ----------
    tensors
        State-dict names of the network.
    """
    used, blocks = [], []
    for name in names:
        match = _STORED.fullmatch(name)
        if match is None or match[2] in ("conv0.", "skip."):
            used.append(name)
        elif match[2] is None:
            blocks.append(name)
            if f"synthesis.b{int(match[1]) // 2}.torgb.weight" in tensors:
                used.append(name)
    return used or blocks


def common_taps(filters: Iterable[StoredFilter], sums: tuple[float, ...] = (1.0,)) -> tuple[float, ...] | None:
    """Find the one-dimensional taps, sum 1, of filters that must all be one and the same; None if there are none.

    Parameters
    ----------
    sums
        What a filter as stored may sum to.

    Raises
    ------
    Refusal
        If two differ, or one is no filter.
    """
    first: StoredFilter | None = None
    for name, shape, values in filters:
        if first is None:
            first = name, shape, values
        elif (shape, values) != first[1:]:
            raise Refusal(f"one resample filter everywhere, that of {first[0]}", f"{name} is another")
    if first is None:
        return None
    _, shape, values = first
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    total = math.fsum(values)
    gain = next((gain for gain in sums if abs(total - gain) < 1e-3), 1.0)
    return fir_taps([value / gain for value in values], shape)


def fir_taps(values: list[float], shape: tuple[int, ...]) -> tuple[float, ...]:
    """Find the one-dimensional taps of a stored resample filter.

    Stored are n taps f (n >= 8) or their outer product F[i, j] = f[i] f[j]; as sum(f) = 1, the row sums of F are f.

    Raises
    ------
    Unsupported
        If the filter is not the outer product of one filter with itself.
    Refusal
        If it is too large or does not sum to one.
    """
    if len(shape) not in (1, 2) or not 1 <= shape[0] <= 32 or len(set(shape)) != 1:
        raise Refusal("a resample filter of at most 32 taps", f"its shape is {shape}")
    count = shape[0]
    taps = values if len(shape) == 1 else [math.fsum(values[row * count : (row + 1) * count]) for row in range(count)]
    if not all(math.isfinite(tap) for tap in taps) or abs(math.fsum(taps) - 1) > 1e-3:
        raise Refusal("a resample filter that sums to 1", f"it sums to {math.fsum(taps):g}")
    if len(shape) == 2:
        error = max(abs(values[i * count + j] - taps[i] * taps[j]) for i in range(count) for j in range(count))
        if not error < 1e-5:
            raise Unsupported("a resample filter that is the same along rows and columns", "this one is not")
    return tuple(taps)
