"""The running search for a photo's latent as a file, so that the next start can offer it after a crash."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gpu_backend import Crop, LoomError, dataclass, read_regular_file, write_whole

NAME = "photo-search.json"
_MAX_NBYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class UnfinishedSearch:
    """What a search was begun with: a square part of a photo, and whether the weights are tuned to it afterwards."""

    photo: Path
    crop: Crop
    tunes: bool = False


class Runs(Protocol):
    """The part of `FileWorker` that the file needs."""

    def submit(self, task: Callable[[], object]) -> None:
        """Run a task soon, after those that were submitted before."""
        ...

    def fetch(
        self, task: Callable[[], UnfinishedSearch | None], take: Callable[[UnfinishedSearch | None], None]
    ) -> None:
        """Run a task soon; `take` gets its result."""
        ...


class UnfinishedSearchFile:
    """Remembers the search that runs. It is a convenience: what the system refuses is not reported.

    Parameters
    ----------
    folder
        Returns the folder that this window alone writes into; None where nothing is kept.
    """

    def __init__(self, worker: Runs, folder: Callable[[], Path | None]) -> None:
        self._worker = worker
        self._folder = folder

    def remember(self, search: UnfinishedSearch) -> None:
        """Write the search that begins."""
        folder = self._folder()
        if folder is not None:
            self._worker.submit(lambda: _write(folder / NAME, search))

    def forget(self) -> None:
        """Remove the file: the search has ended."""
        folder = self._folder()
        if folder is not None:
            self._worker.submit(lambda: _remove(folder / NAME))

    def take(self, take: Callable[[UnfinishedSearch | None], None]) -> None:
        """Read and remove what the last run left; `take` gets it, or None."""
        folder = self._folder()
        if folder is not None:
            self._worker.fetch(lambda: _read(folder / NAME), take)


def _write(path: Path, search: UnfinishedSearch) -> None:
    crop = search.crop
    said = {
        "photo": str(search.photo.absolute()),
        "crop": [crop.left, crop.top, crop.side],
        "tunes": search.tunes,
    }
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps(said).encode())


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _read(path: Path) -> UnfinishedSearch | None:
    """Return the search, None if there is none or the file is damaged; the file is removed."""
    search = None
    with contextlib.suppress(OSError, LoomError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        data = json.loads(read_regular_file(path, _MAX_NBYTES, "a search for a photo"))
        left, top, side = (float(value) for value in data["crop"])
        if all(math.isfinite(value) for value in (left, top, side)):
            search = UnfinishedSearch(Path(str(data["photo"])), Crop(left, top, side), data["tunes"] is True)
    _remove(path)
    return search
