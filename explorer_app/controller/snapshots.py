"""A folder of training snapshots: which one is shown, and the next one to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.files import Files
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.messages import MessageLog

MODEL_ENDINGS = (".pkl", ".pt", ".pth", ".safetensors")
_BESIDE = (".directions.safetensors", ".drafts.safetensors", ".encoder.safetensors")
"""Suffixes of files that accompany models and are no models."""

MOST_SNAPSHOTS = 10_000


class Snapshots(QObject):
    """Opens the models of a folder in order, one at a time; the latent stays.

    The newest choice wins: a file is read once the previous one is open; skipped files are not read. Going
    through snapshots fills neither the list of recent models nor the history: all of it is one step.
    """

    changed = Signal()
    """`files`, `index`, `shown`, `is_broken`."""

    def __init__(
        self, model: ModelOpener, files: Files, worker: FileWorker, messages: MessageLog, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._opener = files
        self._worker = worker
        self._messages = messages
        self._files: tuple[Path, ...] = ()
        self._index = 0
        self._requested: Path | None = None
        """The file that was requested last."""
        self._open: Path | None = None
        """The snapshot that was open when a model was opened last."""
        self._failed: Path | None = None
        """That file, if it could not be opened."""
        model.failed.connect(self._open_failed)
        model.loading_changed.connect(self._loading_changed)

    @property
    def files(self) -> tuple[Path, ...]:
        """The snapshots in order; empty while no folder is open."""
        return self._files

    @property
    def index(self) -> int:
        """The chosen snapshot."""
        return self._index

    @property
    def shown(self) -> Path | None:
        """The snapshot that is open; None if another model is."""
        facts = self._model.facts
        return next((path for path in self._files if facts is not None and str(path) == facts.path), None)

    @property
    def is_reading(self) -> bool:
        """Whether the chosen snapshot is being read, or will be once the model that is being read is open."""
        return self._model.loading is not None and self.shown != self._files[self._index]

    @property
    def is_left(self) -> bool:
        """Whether another model than the chosen snapshot is shown, and none is being read."""
        is_shown = bool(self._files) and self.shown == self._files[self._index]
        return bool(self._files) and self._model.loading is None and not is_shown and not self.is_broken

    @property
    def is_broken(self) -> bool:
        """Whether the chosen snapshot was read and could not be opened."""
        return bool(self._files) and self._failed == self._files[self._index]

    def has(self, path: str) -> bool:
        """Return whether a file is one of the snapshots."""
        return any(str(item) == path for item in self._files)

    def open_folder(self, folder: Path) -> None:
        """Read the names of a folder's models in the background, and open the first."""

        def take(files: Sequence[Path]) -> None:
            if not files:
                self._messages.warning(f"{folder.name} holds no models; choose a folder of .pkl or .pt snapshots.")
                return
            self._files, self._requested = tuple(files), None
            facts = self._model.facts
            names = [str(path) for path in files]
            self._index = names.index(facts.path) if facts is not None and facts.path in names else 0
            self._model.browsed = frozenset(names)
            self.changed.emit()
            self._open_next()

        self._worker.fetch(lambda: snapshot_files(folder), take, failed=f"{folder.name} could not be read")

    def go_to(self, index: int) -> None:
        """Choose a snapshot; it is read next. The chosen one is read again if another model was opened since."""
        index = min(max(index, 0), len(self._files) - 1)
        is_left = self.is_left
        if self._files and (index != self._index or is_left):
            self._index = index
            if is_left:
                self._requested = None
            self.changed.emit()
            self._open_next()

    def leave(self) -> None:
        """Close the folder; the open model stays, and counts as opened from now on."""
        self._files, self._requested = (), None
        self._model.browsed = frozenset()
        self.changed.emit()

    @Slot()
    def _open_failed(self) -> None:
        if self._files and self._model.loading is None and self.shown != self._requested:
            self._failed = self._requested
            self.changed.emit()

    @Slot()
    def _loading_changed(self) -> None:
        if not self._files:
            return
        if self._model.loading is not None:
            self.changed.emit()
            return
        before, self._open = self._open, self.shown
        if self._open not in (None, before, self._requested, self._files[self._index]):
            assert self._open is not None
            self._index, self._requested = self._files.index(self._open), self._open  # it was opened by other means
        self.changed.emit()
        self._open_next()

    def _open_next(self) -> None:
        """Open the chosen snapshot, unless one is being read."""
        wanted = self._files[self._index]
        if self._model.loading is None and wanted != self._requested:
            self._requested, self._failed = wanted, None
            if wanted != self.shown:
                self._opener.open_model(wanted)


def snapshot_files(folder: Path) -> list[Path]:
    """Return the models of a folder, numbers in their names in order of size: "snapshot-200" before "snapshot-1000"."""
    names = [
        path
        for path in folder.iterdir()
        if path.suffix.lower() in MODEL_ENDINGS and not path.name.endswith(_BESIDE) and path.is_file()
    ]
    return sorted(names, key=lambda path: _natural(path.name))[:MOST_SNAPSHOTS]


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", name.casefold())
    return [(0, int(part[:18]), part) if part.isdecimal() else (1, 0, part) for part in parts]
