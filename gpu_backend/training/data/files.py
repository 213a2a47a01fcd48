"""Pictures from a folder or a zip: decoded, cropped to a square and scaled by several threads, some batches ahead."""

from __future__ import annotations

import os
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from gpu_backend.picture_file import PictureFileError, opened_picture, upright_in_eight_bits
from gpu_backend.training.data.source import DataError, shuffled

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp"})
_MOST_THREADS = 16
_AHEAD = 3
"""Batches decoded ahead."""
_MOST_NBYTES = 1 << 28
"""Largest picture of a zip, unpacked: a small entry may unpack to any size."""


class FileSource:
    """Pictures by index, read by a function.

    Parameters
    ----------
    names
        Names of all pictures in a reproducible order.
    fetch
        Name to the bytes or the path of a picture; called from several threads.
    """

    def __init__(self, name: str, names: Sequence[str], fetch: Callable[[str], Path | bytes], resolution: int) -> None:
        if not names:
            raise DataError(f"Pictures ({', '.join(sorted(SUFFIXES))}) are needed to train on, but {name} has none.")
        self._name, self._names, self._fetch, self._resolution = name, names, fetch, resolution
        self._pool = ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), thread_name_prefix="decode")

    @property
    def resolution(self) -> int:
        """Side in pixels."""
        return self._resolution

    @property
    def name(self) -> str:
        """File name and number of pictures."""
        return f"{self._name}, {len(self._names):,} pictures"

    @property
    def is_on_device(self) -> bool:
        """No: they come from the disk."""
        return False

    def batches(self, size: int, seed: int, start: int) -> Iterator[Tensor]:
        """Yield batches; an unreadable picture ends them with a DataError that names it."""
        order = shuffled(len(self._names), seed, start)
        waiting: deque[list[Future[NDArray[np.uint8]]]] = deque()
        while True:
            while len(waiting) < _AHEAD:
                waiting.append([self._pool.submit(self._picture, index) for index in islice(order, size)])
            pictures = np.stack([future.result() for future in waiting.popleft()])
            yield torch.from_numpy(pictures).permute(0, 3, 1, 2)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _picture(self, index: int) -> NDArray[np.uint8]:
        """Return (R, R, 3): the middle square, scaled."""
        name = self._names[index]
        try:
            with opened_picture(self._fetch(name), f"{name} of {self._name}") as opened:
                image = upright_in_eight_bits(opened).convert("RGB")
        except PictureFileError as error:
            raise DataError(error.sentence, error.details) from error
        except Exception as error:  # each way of compressing members of a zip has errors of its own
            raise DataError(f"{name} of {self._name} cannot be read.", str(error)) from error
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        wanted = (self._resolution, self._resolution)
        if image.size != wanted:
            box = (left, top, left + side, top + side)
            image = image.crop(box).resize(wanted, Image.Resampling.LANCZOS)
        return np.asarray(image)


def is_picture_name(name: str) -> bool:
    """Say whether a file of this name is a picture. ``._1.png`` is none: macOS keeps the attributes of 1.png there."""
    return Path(name).suffix.lower() in SUFFIXES and not name.startswith("._")


def folder_source(folder: Path, resolution: int) -> FileSource:
    """Return the pictures of a folder and of the folders in it."""
    found = (path for path in folder.rglob("*") if is_picture_name(path.name) and path.is_file())
    names = sorted(path.relative_to(folder).as_posix() for path in found)
    return FileSource(folder.name or str(folder), names, lambda name: folder / name, resolution)


class ZipSource(FileSource):
    """The pictures of a zip file, which stays open."""

    def __init__(self, path: Path, resolution: int) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(f"A zip of pictures is needed, but {path.name} cannot be read as one.") from error
        self._lock = Lock()
        inside = (entry.filename for entry in self._zip.infolist() if not entry.is_dir())
        names = sorted(name for name in inside if is_picture_name(Path(name).name))
        try:
            super().__init__(path.name, names, self._open, resolution)
        except DataError:
            self._zip.close()
            raise

    def close(self) -> None:
        """End the threads, then close the file."""
        super().close()
        self._zip.close()

    def _open(self, name: str) -> bytes:
        with self._lock, self._zip.open(name) as file:  # one position in one file
            data = file.read(_MOST_NBYTES + 1)
        if len(data) > _MOST_NBYTES:
            raise ValueError(f"more than {_MOST_NBYTES >> 20} MB")
        return data
