"""Saves the session shortly after every change, and restores it at the next start without delaying it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer_app.controller.file_worker import FileWorker
from explorer_app.file_lock import HeldLock
from explorer_app.messages import MessageLog
from explorer_app.session.history import History, HistoryEntry
from explorer_app.session.session import Session
from explorer_app.session.state_folder import StateFolder
from explorer_app.session.storage import (
    KeptSessions,
    SessionFile,
    SessionFileError,
    load_session_file,
    save_session,
)
from gpu_backend import LoomError

SAVE_AFTER_MS = 1000
"""Time from a change to its writing, also during a gesture."""

RETRY_MS = 10_000
"""Time from a write that the system refused, for instance on a full disk, to the next attempt."""

_LOCK_S = 10.0
"""Longest wait for another window that writes the kept sessions: without the lock, one of the two loses its changes."""


class Autosave(QObject):
    """Saves and restores the session, its history and the kept sessions.

    A session is small and written often, its history only when there is a new step, so each has its own file. Both are
    in a folder that only this window writes to (`StateFolder`). Kept sessions are one file for all windows; each merges
    its changes into it. What the system refuses to write is kept in memory and tried again, at the latest by `close`.

    Parameters
    ----------
    state
        The user's state folder; None keeps nothing.
    worker
        Reads and writes; its owner closes it after this object.
    """

    kept_merged = Signal(object, object)
    """Sessions kept by other windows, as KeptSessions, and sessions that they no longer keep."""
    history_loaded = Signal(object)
    """The history of the last run, as SessionFile."""
    _merged = Signal(object)
    _written = Signal()
    _failed = Signal(object)

    def __init__(
        self, state: Path | None, worker: FileWorker, messages: MessageLog, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._state = state
        self._folder: StateFolder | None = None
        self._worker = worker
        self._messages = messages
        self.time_s = 0.0
        """Where the playhead was, in seconds, when the session was saved that `load` returned."""
        self._session: Session | None = None
        self._session_s = 0.0
        """Where the playhead is with `_session`, in seconds."""
        self._history: History | None = None
        self._kept: KeptSessions | None = None
        self._saved_steps: tuple[tuple[HistoryEntry, ...], int] = ((), -1)
        self._is_history_loaded = self._is_kept_loaded = False
        self._known: set[Session] = set()
        """Sessions that this window keeps, or knows that others keep."""
        self._removed: set[Session] = set()
        """Known sessions that `_kept` leaves out, because the user removed them."""
        self._on_disk: set[Session] = set()
        """What the file of kept sessions held when this window last read or wrote it. Only the worker uses it."""
        self._lock = threading.Lock()
        self._unsaved: dict[str, Callable[[], object]] = {}
        """File name -> what writes its newest content, until it is written. Under the lock, as the next one."""
        self._unsaved_removed: set[Session] = set()
        """Sessions that the file of kept sessions may still hold, although this window removed them."""
        self._is_closing = False
        self._told = ""
        """Why nothing can be written, or the last write failed; empty once everything is written."""
        self._elsewhere: tuple[tuple[HistoryEntry, ...], int, KeptSessions] | None = None
        """Steps, position and kept sessions that the user has saved to a file of their own last."""
        self._merged.connect(self._take_merged, Qt.ConnectionType.QueuedConnection)
        self._written.connect(self._take_written, Qt.ConnectionType.QueuedConnection)
        self._failed.connect(self._take_failure, Qt.ConnectionType.QueuedConnection)
        self._retry = QTimer(self)
        self._retry.setSingleShot(True)
        self._retry.setInterval(RETRY_MS)
        self._retry.timeout.connect(self.write_again)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_AFTER_MS)
        self._timer.timeout.connect(self.flush)

    @property
    def folder(self) -> Path | None:
        """The folder that this window alone writes into, once `load` was called; None where nothing is kept."""
        return None if self._folder is None else self._folder.path

    @property
    def shared_folder(self) -> Path | None:
        """The folder that all windows of this user share; None where nothing is kept."""
        return None if self._folder is None else self._folder.shared

    @property
    def problem(self) -> str:
        """Why something cannot be written at present, as a sentence; empty if everything is written, or will be."""
        return self._told if self._folder is not None or self._would_lose else ""

    @property
    def _would_lose(self) -> bool:
        """Whether there are steps or kept sessions that no file has, while there is no folder for them."""
        if self._history is None:
            return False
        entries, position, kept = self._history.entries, self._history.position, self._kept or ()
        return (len(entries) > 1 or bool(kept)) and (entries, position, kept) != self._elsewhere

    def note_elsewhere(self, history: History, kept: KeptSessions) -> None:
        """Remember what the user has saved to a file of their own: without a folder it is not lost."""
        self._elsewhere = history.entries, history.position, kept

    def load(self) -> Session | None:
        """Return the last session, None if there is none or it is broken; begin to read history and kept sessions."""
        self._folder = self._claimed()
        if self._folder is None:
            return None
        self._read_former(self._folder)
        session = self._folder.path / "session.loom"
        if not session.exists():
            return None
        try:
            file = load_session_file(session)
        except SessionFileError as error:
            self._set_aside(session, error)
            return None
        self.time_s = file.time_s
        return file.session

    def remember(self, session: Session, history: History, time_s: float = 0.0) -> None:
        """Save a session, the history's steps and the playhead's time soon. A later change does not put it off."""
        if self._state is not None:
            self._session, self._history, self._session_s = session, history, time_s
            self._start_timer()

    def renew_history(self, history: History) -> None:
        """Write these steps instead of those that wait to be written, if any: they lack the steps of the last run."""
        if self._history is not None:
            self._history = history

    def keep(self, kept: KeptSessions) -> None:
        """Save the kept sessions soon."""
        if self._state is not None:
            self._kept = kept
            # Now: what other windows kept may arrive before the write, and `kept` does not hold it.
            self._removed = self._known.difference(item.session for item in kept)
            self._start_timer()

    @Slot()
    def flush(self) -> None:
        """Write all pending changes now."""
        self._timer.stop()
        if self._folder is None:
            return
        folder, shared = self._folder.path, self._folder.shared
        if self._session is not None:
            session, self._session, time_s = self._session, None, self._session_s
            self._write("session.loom", lambda: save_session(folder / "session.loom", session, time_s=time_s))
        # Before the old history and the old kept sessions are read, writing would lose them.
        if self._history is not None and self._is_history_loaded:
            history, self._history = self._history, None
            if (history.entries, history.position) != self._saved_steps:
                self._saved_steps = (history.entries, history.position)
                steps = tuple((entry.session, entry.label) for entry in history.entries)
                last, position = history.entries[history.position].session, history.position
                times = tuple(entry.time_s for entry in history.entries)
                self._write(
                    "history.loom",
                    lambda: save_session(folder / "history.loom", last, (), steps, position, step_times=times),
                )
        if self._kept is not None and self._is_kept_loaded:
            self._write_kept(shared)

    @Slot()
    def write_again(self) -> None:
        """Try once more to write what the system refused, and to get a folder if there is none."""
        if self._folder is None and self._told:
            self._folder = self._claimed()
            if self._folder is not None:
                self._is_history_loaded = not (self._folder.path / "history.loom").exists()
                self._read_former(self._folder)
                self.flush()
        with self._lock:
            unsaved = tuple(self._unsaved.items())
        for name, write in unsaved:
            self._submit(name, write)

    def close(self) -> None:
        """Write pending changes, and once more what could not be written; release the folder for other windows."""
        self._is_closing = True
        self._retry.stop()
        self.write_again()
        self.flush()
        if self._folder is None:
            return
        folder = self._folder
        if self._kept is not None:  # kept while the old ones were still being read
            self._write_kept(folder.shared)
        self._worker.submit(folder.release)

    def _start_timer(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _claimed(self) -> StateFolder | None:
        if self._state is None:
            return None
        why = "all places for one are taken"
        try:
            folder = StateFolder.claim(self._state)
        except OSError as error:
            folder, why = None, error.strerror or str(error)
        if folder is None:
            self._told = f"This session cannot be kept in {self._state} ({why})."
            if not self._is_closing:
                self._messages.warning(f"{self._told[:-1]}; save it before you close.")
        return folder

    def _read_former(self, folder: StateFolder) -> None:
        """Begin to read the history and the kept sessions of former runs."""
        path, shared = folder.path, folder.shared
        self._worker.fetch(lambda: self._read(path / "history.loom"), self._take_history)
        self._worker.fetch(lambda: self._read_kept(shared / "kept.loom"), self._take_kept)

    def _read(self, path: Path) -> SessionFile | None:
        """Read a file, on the worker's thread."""
        try:
            return load_session_file(path) if path.exists() else None
        except SessionFileError as error:
            if isinstance(error.__cause__, OSError):
                raise  # the disk did not answer; the file may be whole
            self._set_aside(path, error)
            return None

    def _take_history(self, file: SessionFile | None) -> None:
        self._is_history_loaded = True
        if file is not None and file.steps:
            self.history_loaded.emit(file)
        if self._history is not None:
            self._start_timer()

    def _read_kept(self, path: Path) -> KeptSessions:
        """Read what was kept, on the worker's thread."""
        file = self._read(path)
        kept = file.kept if file is not None else ()
        self._on_disk = {item.session for item in kept}
        return kept

    def _take_kept(self, kept: KeptSessions) -> None:
        self._is_kept_loaded = True
        self._known.update(item.session for item in kept)
        if kept:
            self.kept_merged.emit(kept, ())
        if self._kept is not None:
            self._start_timer()

    def _write_kept(self, shared: Path) -> None:
        assert self._kept is not None
        mine, self._kept = self._kept, None
        own = {item.session for item in mine}
        self._known -= self._removed
        self._known |= own
        with self._lock:
            removed = self._unsaved_removed = (self._unsaved_removed | self._removed) - own
        self._removed = set()
        self._write("kept.loom", lambda: self._merged.emit(self._merge_kept(shared, mine, removed)))

    def _write(self, name: str, write: Callable[[], object]) -> None:
        """Write a file on the worker's thread, in place of what was to be written to it before."""
        with self._lock:
            self._unsaved[name] = write
        self._submit(name, write)

    def _submit(self, name: str, write: Callable[[], object]) -> None:
        self._worker.submit(partial(self._try, name, write), failed=self._refused)

    @property
    def _refused(self) -> str:
        return f"The session could not be saved in {'' if self._folder is None else self._folder.path}"

    def _try(self, name: str, write: Callable[[], object]) -> None:
        """Write unless it is written, or something newer is to be; on the worker's thread, which reports the last."""
        with self._lock:
            if self._unsaved.get(name) is not write:
                return
        try:
            write()
        except (OSError, LoomError) as error:
            if self._is_closing:
                raise
            self._failed.emit(error)
            return
        with self._lock:
            if self._unsaved.get(name) is write:
                del self._unsaved[name]
        self._written.emit()

    @Slot(object)
    def _take_failure(self, error: OSError | LoomError) -> None:
        """Say once why nothing is saved, and try again soon if the system is the reason."""
        if isinstance(error, LoomError):
            sentence, details = error.sentence, error.details
        else:
            sentence = f"{self._refused} ({error.strerror or error}); Latent Loom tries again until it can."
            details = str(error)
        if sentence != self._told and not self._is_closing:
            self._told = sentence
            self._messages.error(sentence, details)
        is_from_system = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
        if is_from_system and not self._is_closing and not self._retry.isActive():
            self._retry.start()

    @Slot()
    def _take_written(self) -> None:
        with self._lock:
            is_saved = not self._unsaved
        if self._told and is_saved:
            self._told = ""
            self._messages.info("The session is saved again.")

    def _merge_kept(
        self, shared: Path, mine: KeptSessions, removed: set[Session]
    ) -> tuple[KeptSessions, tuple[Session, ...]]:
        """Merge this window's kept sessions into the file, on the worker's thread.

        Returns
        -------
        Sessions that other windows keep, and sessions that they keep no longer.
        """
        path = shared / "kept.loom"
        with HeldLock(shared / "kept.lock", _LOCK_S):
            file = self._read(path)
            disk = file.kept if file is not None else ()
            there = {item.session for item in disk}
            gone = self._on_disk - there if file is not None else set()
            own = {item.session for item in mine}
            others = tuple(item for item in disk if item.session not in own and item.session not in removed)
            merged = (*(item for item in mine if item.session not in gone), *others)
            if merged != disk:
                save_session(path, Session(), merged)
            self._on_disk = {item.session for item in merged}
            with self._lock:  # before another window may keep one of them again
                if self._unsaved_removed is removed:
                    self._unsaved_removed = set()
        return others, tuple(gone & own)

    @Slot(object)
    def _take_merged(self, merged: tuple[KeptSessions, tuple[Session, ...]]) -> None:
        if self._is_closing:
            return
        others, gone = merged
        self._known.update(item.session for item in others)
        if others or gone:
            self.kept_merged.emit(others, gone)

    def _set_aside(self, path: Path, error: SessionFileError) -> None:
        aside = path.with_name(f"{path.name}.broken")
        with contextlib.suppress(OSError):
            os.replace(path, aside)
        self._messages.warning(
            f"The session of the last time cannot be read, so a new one was started; the file is now {aside.name}.",
            f"{error.sentence}\n{aside}",
        )
