"""How much of a layer one call of a convolution makes.

What torch's convolutions give is memory of their own. Pieces of more than 32 MB come from the system anew at each call,
page by page, which costs as much as the arithmetic of layers with few channels; and what was made is out of the cache
before the rest of the layer reads it. So that large layers are made a few rows at a time. On one AVX-512 core,
milliseconds for the convolution alone, at once / in chunks:

    1024 x 1024 x 16  52.4 / 22.5    512 x 512 x 32  35.0 / 20.0    256 x 256 x 64  19.3 / 19.3
"""

from __future__ import annotations

from dataclasses import dataclass

CHUNK_NBYTES = 8 << 20
"""Most bytes that one call makes, unless a few rows of one sample have more."""

_STEP = 8
"""Chunks have a multiple of so many rows."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Samples and rows of a layer's output, first and end of each."""

    samples: tuple[int, int]
    rows: tuple[int, int]


def chunks_of(batch: int, rows: tuple[int, int], row_nbytes: int) -> list[Chunk]:
    """Cut rows of a layer, sample by sample unless all of them are one chunk."""
    first, end = rows
    if batch * (end - first) * row_nbytes <= CHUNK_NBYTES:
        return [Chunk((0, batch), rows)]
    height = max(1, CHUNK_NBYTES // row_nbytes // _STEP) * _STEP
    return [
        Chunk((sample, sample + 1), (row, min(row + height, end)))
        for sample in range(batch)
        for row in range(first, end, height)
    ]
