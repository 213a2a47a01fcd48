"""Division of a layer into chunks, one for each call of a convolution.

torch's convolutions allocate their output. The system maps allocations of more than 32 MB again at each call, and the
page faults cost as much as the arithmetic of layers with few channels. The output of a whole layer also leaves the
cache before the epilogue reads it. So large layers are computed a few rows at a time. Milliseconds for the convolution
alone on one AVX-512 core, whole / in chunks:

    1024 x 1024 x 16  52.4 / 22.5    512 x 512 x 32  35.0 / 20.0    256 x 256 x 64  19.3 / 19.3
"""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

CHUNK_NBYTES = 8 << 20
"""Maximum output of one call in bytes, unless the minimum number of rows exceeds it."""

_STEP = 8
"""The number of rows of a chunk is a multiple of this."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of samples and of rows of a layer's output (first and end)."""

    samples: tuple[int, int]
    rows: tuple[int, int]


def chunks_of(batch: int, rows: tuple[int, int], row_nbytes: int) -> list[Chunk]:
    """Divide rows of a layer into chunks: one chunk of all samples if it is small enough, else sample by sample."""
    first, end = rows
    if batch * (end - first) * row_nbytes <= CHUNK_NBYTES:
        return [Chunk((0, batch), rows)]
    height = max(1, CHUNK_NBYTES // row_nbytes // _STEP) * _STEP
    return [
        Chunk((sample, sample + 1), (row, min(row + height, end)))
        for sample in range(batch)
        for row in range(first, end, height)
    ]
