"""How threads divide a picture that is filtered: parts/gradient_strips.cuh."""

from __future__ import annotations

from gpu_backend.gradients.gpu.kernels import STRIP_ROWS

STRIP_THREADS = 256
"""Of a block: 64 channels of 4 x 4 strips."""
_CHANNELS, _COLUMNS = 4, 4
"""Of a strip."""
_BUSY_THREADS = 256
"""Of a multiprocessor, that wait for memory often enough to keep it busy."""


def strip_rows(side: int, channels: int, samples: int, multiprocessors: int) -> int:
    """Return the rows of a strip, one of `STRIP_ROWS`: the most whose threads still fill the device."""
    most, least = STRIP_ROWS
    threads = samples * side**2 * channels // (_CHANNELS * _COLUMNS * most)
    return most if threads >= _BUSY_THREADS * multiprocessors else least


def strip_blocks(side: int, rows: int, channels: int) -> int:
    """Return the blocks whose threads do a strip of so many rows each."""
    return -(-channels // (16 * _CHANNELS)) * -(-side // (4 * _COLUMNS)) * -(-side // (4 * rows))
