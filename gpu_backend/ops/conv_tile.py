"""How a fused convolution is cut into blocks of threads: the choices that differ from GPU to GPU.

A block computes `rows` x `columns` positions of one picture (of the output for a convolution; of the input, halo not
counted, for an up-convolution, so four times as many output pixels) for `channels` output channels. It walks through
the input channels `depth` at a time, `stages` steps ahead of the arithmetic, and `split` blocks share the walk of one
such tile, the last to finish adding what the others found. `warps_m` x `warps_n` warps share positions and channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

ConvKind = Literal["conv", "up_conv"]
Instruction = Literal["mma", "wgmma"]


@dataclass(frozen=True, slots=True)
class ConvShape:
    """What there is to compute: `side` of the output, padded channels, pictures."""

    kind: ConvKind
    side: int
    cin: int
    cout: int
    batch: int


@dataclass(frozen=True, slots=True)
class ConvTile:
    """One way to cut it."""

    rows: int
    columns: int
    channels: int
    depth: int
    stages: int
    warps_m: int
    warps_n: int
    split: int = 1
    mma: Instruction = "mma"


def default_tile(shape: ConvShape, architecture: str, multiprocessors: int) -> ConvTile:
    """Return a tile by rule of thumb, for shapes that no table knows: blocks as large as still fill the GPU."""
    positions = shape.side // 2 if shape.kind == "up_conv" else shape.side
    side = min(positions, 16 if positions >= 64 else 8)
    channels = 64 if shape.cout >= 64 else 32
    tile = ConvTile(side, side, channels, 32, 3 if architecture != "sm_75" else 2, 2, 2)
    blocks = shape.batch * (positions // side) ** 2 * -(-shape.cout // channels)
    split = 1
    while blocks * split * 2 <= multiprocessors and split * 64 <= shape.cin:
        split *= 2
    return replace(tile, split=split)
