"""What a schedule is made for: the facts about a GPU that shape its launches. Plain data; no driver."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.cuda.tiles import TileTable


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A GPU as lowering sees it.

    Attributes
    ----------
    architecture
        What kernels are compiled for: ``"sm_90a"``.
    multiprocessors
        Blocks of one wave, for one block a multiprocessor.
    shared_nbytes_per_block
        Most shared memory that a block may ask for.
    tiles
        How its convolutions are cut.
    """

    architecture: str
    multiprocessors: int
    shared_nbytes_per_block: int
    tiles: TileTable
