"""Arguments and blocks of an up-convolution's launch that adds up the picture of the toRGB before it."""

from __future__ import annotations

import math

import numpy as np

from gpu_backend.cuda.launches.conv_arguments import Weights, constant, padded, region, taps_constant
from gpu_backend.cuda.launches.conv_work import PictureSum
from gpu_backend.cuda.schedule import Argument, Constant, Region
from gpu_backend.quick_dataclass import dataclass

Grid = tuple[int, int, int]

_PIXELS_OF_THREAD = 4
"""Pixels that a thread of an extra block adds up, if so many extra blocks fit on the GPU."""

_LEAST_BLOCKS = 4
"""Blocks that large sums get, also where a convolution leaves no multiprocessor idle."""


@dataclass(frozen=True, slots=True)
class PictureBeside:
    """A launch's grid with extra blocks for a picture, and their arguments, constants and regions."""

    grid: Grid
    arguments: dict[str, Argument]
    constants: tuple[Constant, ...] = ()
    regions: tuple[Region, ...] = ()
    layers: tuple[str, ...] = ()


def picture_defines(picture: PictureSum | None) -> dict[str, int]:
    """Return the macros of a kernel that adds up a picture, or does not."""
    return {"ADDS_PICTURE": int(picture is not None), "IMG_CHANNELS": 1 if picture is None else picture.channels}


def picture_beside(
    picture: PictureSum | None, weights: Weights, batch: int, grid: Grid, threads: int, at_once: int
) -> PictureBeside:
    """Return the extra part of a convolution's launch: ``PICTURE_PARAMETERS`` of ``parts/picture_beside.cuh``.

    Parameters
    ----------
    grid
        Blocks of the convolution. More are added along its columns or rows, whichever gives fewer; the kernel
        recognises them by an index beyond ``grid_columns`` or ``grid_rows``, and the first `picture_blocks` of them add
        up.
    threads
        Of a block.
    at_once
        Blocks that the GPU runs at a time.
    """
    columns, rows, depth = grid
    if picture is None:
        return PictureBeside(grid, {})
    constants = [Constant(f"padded/{picture.bias}", lambda: padded(weights[picture.bias], (0,)))]
    idle = -(columns * rows * depth) % at_once
    wanted = -(-batch * picture.side**2 // (threads * _PIXELS_OF_THREAD))
    blocks = min(wanted, max(idle, _LEAST_BLOCKS))
    if rows <= columns:
        grid = columns + -(-blocks // (rows * depth)), rows, depth
    else:
        grid = columns, rows + -(-blocks // (columns * depth)), depth
    arguments: dict[str, Argument] = {
        "picture_parts": region(picture.parts),
        "picture_count": np.int32(picture.part_count),
        "picture_bias": constant(f"padded/{picture.bias}"),
        "picture_clamp": np.float32(math.inf if picture.clamp is None else picture.clamp),
        "picture_previous": None if picture.previous is None else region(picture.previous),
        "picture_taps": None if picture.previous is None else taps_constant(constants, picture.taps, 2.0),
        "picture_image": region(picture.image),
        "picture_side": np.int32(picture.side),
        "grid_columns": np.int32(columns),
        "grid_rows": np.int32(rows),
        "picture_blocks": np.int32(blocks),
    }
    shape = (batch, picture.side, picture.side, picture.channels)
    image = Region(picture.image, shape, "float32", "scratch")
    return PictureBeside(grid, arguments, tuple(constants), (image,), (picture.layer,))
