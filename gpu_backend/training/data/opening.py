"""Opens the picture source that the command line names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from gpu_backend.training.data.files import ZipSource, folder_source
from gpu_backend.training.data.source import DataError, PictureSource

WORLD = "world"


def open_source(
    data: str, resolution: int, device: torch.device, say: Callable[[str], None] = lambda _: None
) -> PictureSource:
    """Open a folder, a zip, or the procedural world, named ``world``; a folder of that name is ``./world``.

    `say` receives messages for the user about how pictures are produced.

    Raises
    ------
    DataError
        If there is no such place, or no pictures in it.
    """
    if data == WORLD:
        from gpu_backend.training.data.world import WorldSource

        return WorldSource(resolution, device, say)
    path = Path(data)
    if path.is_dir():
        return folder_source(path, resolution)
    if path.is_file():
        return ZipSource(path, resolution)
    raise DataError(f"A folder of pictures, a zip of pictures or the word world is wanted, but there is no {data}.")
