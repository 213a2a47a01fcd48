"""Which file the session of a window belongs to, kept beside that session, so that the next start knows it too."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gpu_backend import LoomError, read_regular_file, write_whole

NAME = "project.json"
_MAX_NBYTES = 1 << 16


class Runs(Protocol):
    """The part of `FileWorker` that the place needs."""

    def submit(self, task: Callable[[], object]) -> None:
        """Run a task soon, after those that were submitted before."""
        ...


class ProjectPlace:
    """Reads and writes the path. It is a convenience: what the system refuses is not reported.

    Parameters
    ----------
    folder
        Returns the folder that this window alone writes into; None where nothing is kept.
    """

    def __init__(self, worker: Runs, folder: Callable[[], Path | None]) -> None:
        self._worker = worker
        self._folder = folder

    def remember(self, project: Path | None) -> None:
        """Write the path soon; None removes it."""
        self._worker.submit(lambda: self.write(project))

    def write(self, project: Path | None) -> None:
        """Write the path; None removes it."""
        folder = self._folder()
        if folder is None:
            return
        with contextlib.suppress(OSError):
            if project is None:
                (folder / NAME).unlink(missing_ok=True)
            else:
                write_whole(folder / NAME, json.dumps({"path": str(project.absolute())}).encode())

    def read(self) -> Path | None:
        """Return the path of the last run, None if there is none or the file is damaged."""
        folder = self._folder()
        with contextlib.suppress(OSError, LoomError, ValueError, TypeError, KeyError, RecursionError):
            if folder is not None:
                path = Path(json.loads(read_regular_file(folder / NAME, _MAX_NBYTES, "the place of a project"))["path"])
                return path if path.is_absolute() else None
        return None
