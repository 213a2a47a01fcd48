"""The last session comes back: saved a moment after every change, read at start, never in the way of a start."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from explorer_app.controller.file_worker import FileWorker
from explorer_app.messages import MessageLog
from explorer_app.session.session import Session
from explorer_app.session.storage import SessionFileError, load_session, load_session_file, save_session

SAVE_AFTER_MS = 1500
"""A session is saved when nothing changed for this long."""

Kept = tuple[tuple[Session, str], ...]


class Autosave(QObject):
    """Keeps `session.loom`, and `kept.loom` beside it, which may be large and is read and written only when needed.

    Parameters
    ----------
    folder
        Where; None keeps nothing.
    worker
        Reads and writes; whoever made it closes it after this.
    """

    kept_loaded = Signal(object)
    """What was kept the last time, as `Kept`; not emitted if that is nothing."""

    def __init__(
        self, folder: Path | None, worker: FileWorker, messages: MessageLog, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._folder = folder
        self._worker = worker
        self._messages = messages
        self._session: Session | None = None
        self._kept: Kept | None = None
        self._is_loaded = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_AFTER_MS)
        self._timer.timeout.connect(self.flush)

    def load(self) -> Session | None:
        """Return the last session, None if there is none or it is broken; begin to read what was kept."""
        if self._folder is None:
            self._is_loaded = True
            return None
        folder = self._folder
        self._worker.fetch(lambda: self._read_kept(folder / "kept.loom"), self._take_kept)
        path = folder / "session.loom"
        if not path.exists():
            return None
        try:
            return load_session(path)
        except SessionFileError as error:
            self._set_aside(path, error)
            return None

    def remember(self, session: Session) -> None:
        """Save a session soon."""
        if self._folder is not None:
            self._session = session
            self._timer.start()

    def keep(self, kept: Kept) -> None:
        """Save what is kept soon."""
        if self._folder is not None:
            self._kept = kept
            self._timer.start()

    @Slot()
    def flush(self) -> None:
        """Save now what is waiting to be saved."""
        self._timer.stop()
        if self._folder is None:
            return
        folder = self._folder
        failed = f"The session could not be kept in {folder}"
        if self._session is not None:
            session, self._session = self._session, None
            self._worker.submit(lambda: save_session(folder / "session.loom", session), failed=failed)
        # Before the old ones are read, writing would lose them; they are merged and kept again then.
        if self._kept is not None and self._is_loaded:
            kept, self._kept = self._kept, None
            self._worker.submit(lambda: save_session(folder / "kept.loom", Session(), kept), failed=failed)

    def close(self) -> None:
        """Save what is waiting; what was kept while the old ones were still being read goes behind them."""
        self.flush()
        if self._folder is not None and self._kept is not None:
            path, fresh = self._folder / "kept.loom", self._kept

            def merge() -> None:
                old = self._read_kept(path)
                there = {session for session, _ in old}
                save_session(path, Session(), (*old, *(pair for pair in fresh if pair[0] not in there)))

            self._kept = None
            self._worker.submit(merge, failed=f"The session could not be kept in {self._folder}")

    def _read_kept(self, path: Path) -> Kept:
        """Read what was kept, on the worker's thread."""
        try:
            return load_session_file(path).kept if path.exists() else ()
        except SessionFileError as error:
            self._set_aside(path, error)
            return ()

    def _take_kept(self, kept: Kept) -> None:
        self._is_loaded = True
        if kept:
            self.kept_loaded.emit(kept)

    def _set_aside(self, path: Path, error: SessionFileError) -> None:
        aside = path.with_name(f"{path.name}.broken")
        with contextlib.suppress(OSError):
            os.replace(path, aside)
        self._messages.warning(
            f"What was kept from the last time cannot be read, so this is a new start; the file is now {aside.name}.",
            f"{error.sentence}\n{aside}",
        )
