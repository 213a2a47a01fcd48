"""Opens the picture source that the command line names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from gpu_backend.training.data.files import ZipSource, folder_source
from gpu_backend.training.data.source import PictureSource
from gpu_backend.training.options import WORLD, check_data


def open_source(
    data: str, resolution: int, device: torch.device, say: Callable[[str], None] = lambda _: None
) -> PictureSource:
    """Open a folder, a zip, or the procedural world, named ``world``.

    `say` receives messages for the user about how pictures are produced.

    Raises
    ------
    RequestError
        If there is no such place.
    DataError
        If there are no pictures in it.
    """
    if data == WORLD:
        from gpu_backend.training.data.world import WorldSource

        return WorldSource(resolution, device, say)
    path = Path(data)
    if path.is_dir():
        return folder_source(path, resolution)
    check_data(data)
    return ZipSource(path, resolution)
