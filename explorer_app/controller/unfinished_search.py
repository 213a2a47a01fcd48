"""The running search for a photo's latent as a file, so that the next start can offer it after a crash."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from explorer_app.controller import notes
from explorer_app.controller.notes import read_note, write_note
from gpu_backend import Crop, dataclass

NAME = "photo-search.json"


@dataclass(frozen=True, slots=True)
class UnfinishedSearch:
    """What a search was begun with: a square part of a photo, and whether the weights are tuned to it afterwards."""

    photo: Path
    crop: Crop
    tunes: bool = False


class Runs(notes.Runs, Protocol):
    """The part of `FileWorker` that the file needs."""

    def fetch(
        self, task: Callable[[], UnfinishedSearch | None], take: Callable[[UnfinishedSearch | None], None]
    ) -> None:
        """Run a task soon; `take` gets its result."""
        ...


class UnfinishedSearchFile:
    """Remembers the search that runs.

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
            self._worker.submit(lambda: write_note(folder / NAME, _said(search)))

    def forget(self) -> None:
        """Remove the file: the search has ended."""
        folder = self._folder()
        if folder is not None:
            self._worker.submit(lambda: write_note(folder / NAME, None))

    def take(self, take: Callable[[UnfinishedSearch | None], None]) -> None:
        """Read and remove what the last run left; `take` gets it, or None."""
        folder = self._folder()
        if folder is not None:
            self._worker.fetch(lambda: _read(folder / NAME), take)


def _said(search: UnfinishedSearch) -> dict[str, object]:
    crop = search.crop
    return {
        "photo": str(search.photo.absolute()),
        "crop": [crop.left, crop.top, crop.side],
        "tunes": search.tunes,
    }


def _read(path: Path) -> UnfinishedSearch | None:
    """Return the search, None if there is none or the file is damaged; the file is removed."""
    search = None
    with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError):
        said = read_note(path, "a search for a photo")
        left, top, side = (float(value) for value in said["crop"])
        if all(math.isfinite(value) for value in (left, top, side)):
            search = UnfinishedSearch(Path(str(said["photo"])), Crop(left, top, side), said["tunes"] is True)
    write_note(path, None)
    return search
