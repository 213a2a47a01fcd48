"""What a schedule is made for: the facts about a GPU that shape its launches. Plain data; no driver."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpu_backend.cuda.probe import Gpu
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


def target_of(gpu: Gpu, tiles_folder: Path | None) -> Target:
    """Return what schedules for a GPU are made for, with the table that was tuned for it if the folder has one."""
    architecture, shared_nbytes = gpu.compile_architecture, gpu.shared_nbytes_per_block_optin
    tiles = TileTable.load(architecture, gpu.multiprocessors, shared_nbytes, gpu.name, tiles_folder)
    return Target(architecture, gpu.multiprocessors, shared_nbytes, tiles)
