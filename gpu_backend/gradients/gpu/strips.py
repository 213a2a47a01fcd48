"""How threads divide a picture that is filtered: parts/gradient_strips.cuh."""

from __future__ import annotations

from dataclasses import dataclass

STRIP_THREADS = 128
"""Of a block."""
_CHANNELS, _COLUMNS = 4, 2
"""Of a thread."""
_BLOCKS = ((1, 5), (2, 12), (4, None))
"""Blocks of a multiprocessor that run at once, and the most rows of the input that a thread then reads.

More blocks hide more of memory's latency, but strips of fewer rows read more of them twice.
"""


@dataclass(frozen=True, slots=True)
class StripGrid:
    """Strips of a result.

    Attributes
    ----------
    blocks
        Of a sample.
    rows
        Of a strip.
    """

    blocks: int
    rows: int


def strip_grid(side: int, channels: int, samples: int, multiprocessors: int, step: int = 1) -> StripGrid:
    """Return the strips of a result of `side` x `side` pixels, each with the fewest rows whose blocks run all at once.

    Parameters
    ----------
    step
        Rows of the input from one of the result to the next.
    """
    threads = -(-side // _COLUMNS) * (channels // _CHANNELS)
    for blocks, most in _BLOCKS:
        groups = max(1, multiprocessors * blocks // samples * STRIP_THREADS // threads)
        rows = -(-side // groups)
        if most is None or rows * step <= most:
            break
    return StripGrid(-(-threads * -(-side // rows) // STRIP_THREADS), rows)
