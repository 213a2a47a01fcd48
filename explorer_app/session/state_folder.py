"""The folder where a window keeps its session: one for each window that is open at the same time.

::

    STATE/session.loom, history.loom     of the first window, and its lock
    STATE/photo-search.json              while that window searches for the latent of a photo
    STATE/windows/2/…                    of a second one beside it
    STATE/kept.loom                      what was kept, shared by all windows
    STATE/models.json                    where models are, shared by all programs
"""

from __future__ import annotations

from pathlib import Path

from explorer_app.file_lock import FileLock

MAX_WINDOWS = 32
"""Windows of one user that keep a session at the same time."""


class StateFolder:
    """A folder that this window alone writes into, until `release` or the end of the program.

    Attributes
    ----------
    path
        Where this window keeps its session.
    shared
        Where all windows keep what they share.
    """

    def __init__(self, path: Path, shared: Path, lock: FileLock) -> None:
        self.path = path
        self.shared = shared
        self._lock = lock

    @classmethod
    def claim(cls, state: Path) -> StateFolder | None:
        """Return the first folder that no other window holds; None if all are taken.

        Raises
        ------
        OSError
            If the system refuses to create or to lock one.
        """
        for number in range(1, MAX_WINDOWS + 1):
            path = state if number == 1 else state / "windows" / str(number)
            path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path / "session.lock")
            if lock.try_acquire():
                return cls(path, state, lock)
        return None

    def release(self) -> None:
        """Let another window have the folder. May be called twice."""
        self._lock.release()
