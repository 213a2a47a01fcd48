"""Which file the session of a window belongs to, kept beside that session, so that the next start knows it too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from explorer_app.controller.notes import Runs, read_note, write_note

NAME = "project.json"


class ProjectPlace:
    """Reads and writes the path.

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
        if folder is not None:
            write_note(folder / NAME, None if project is None else {"path": str(project.absolute())})

    def read(self) -> Path | None:
        """Return the path of the last run, None if there is none or the file is damaged."""
        folder = self._folder()
        path = None if folder is None else read_note(folder / NAME, "the place of a project").get("path")
        return Path(path) if isinstance(path, str) and Path(path).is_absolute() else None
