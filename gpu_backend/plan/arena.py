"""Arena allocation: offsets of intermediate buffers in one allocation.

A buffer is live from the step that writes it to the last step that reads it. Buffers whose lifetimes do not overlap
may share memory. Placement is greedy: largest buffer first, at the lowest offset that is free during its lifetime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_backend.plan.plan import Buffer, Step

ALIGNMENT = 256
"""Bytes; a multiple of the alignment of CPU vectors, GPU vectors and bulk copies."""


def buffer_nbytes(buffer: Buffer) -> int:
    """Return the size of a buffer in bytes."""
    return math.prod(buffer.shape) * np.dtype(buffer.dtype).itemsize


def lifetimes(steps: Sequence[Step]) -> dict[str, tuple[int, int]]:
    """Return the first and last step of each buffer's lifetime, both included."""
    lives: dict[str, tuple[int, int]] = {}
    for index, step in enumerate(steps):
        for name in (*step.inputs, *step.outputs):
            first, _ = lives.get(name, (index, index))
            lives[name] = (first, index)
    return lives


def place(buffers: Sequence[Buffer], steps: Sequence[Step]) -> tuple[tuple[Buffer, ...], int]:
    """Assign an offset to every intermediate buffer; others keep -1.

    Returns
    -------
    The buffers in their original order, and the size of the arena in bytes.
    """
    lives = lifetimes(steps)
    intermediates = [buffer for buffer in buffers if buffer.role == "intermediate"]
    placed: dict[str, tuple[int, int]] = {}
    for buffer in sorted(intermediates, key=lambda item: (-buffer_nbytes(item), item.name)):
        size = _aligned(buffer_nbytes(buffer))
        first, last = lives[buffer.name]
        offset = 0
        for start, end in sorted(placed[name] for name in placed if lives[name][0] <= last and first <= lives[name][1]):
            if offset + size <= start:
                break
            offset = max(offset, end)
        placed[buffer.name] = (offset, offset + size)
    total = max((end for _, end in placed.values()), default=0)
    return tuple(
        replace(buffer, offset=placed[buffer.name][0]) if buffer.name in placed else buffer for buffer in buffers
    ), total


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
