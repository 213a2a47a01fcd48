"""A lock that programs on one machine hold through a file. The system releases it when its holder ends, however."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from types import TracebackType

_RETRY_S = 0.02


class FileLock:
    """An exclusive lock on a file, which is created and stays: deleting it would let two programs hold it.

    Parameters
    ----------
    path
        The file; its folder exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd >= 0

    def try_acquire(self) -> bool:
        """Take the lock if no one else holds it; return whether this object holds it now.

        Raises
        ------
        OSError
            If the file cannot be created or locked.
        """
        if self._fd >= 0:
            return True
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            is_locked = _try_lock(fd)
        except OSError:
            os.close(fd)
            raise
        if is_locked:
            self._fd = fd
        else:
            os.close(fd)
        return is_locked

    def acquire(self, timeout_s: float) -> bool:
        """Wait for the lock; return whether this object holds it, False after `timeout_s` seconds. Raises OSError."""
        end_s = time.monotonic() + timeout_s
        while not self.try_acquire():
            if time.monotonic() >= end_s:
                return False
            time.sleep(_RETRY_S)
        return True

    def release(self) -> None:
        """Release the lock. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class HeldLock:
    """Holds a `FileLock` for a `with` block. After `timeout_s`, or where there are no locks, the block runs without it.

    A program that stopped while it held the lock, or a network drive without locks, must not keep others from saving:
    the write itself is atomic, and only a merge may then miss what the other program wrote meanwhile.
    """

    def __init__(self, path: Path, timeout_s: float = 2.0) -> None:
        self._lock = FileLock(path)
        self._timeout_s = timeout_s

    def __enter__(self) -> None:
        with contextlib.suppress(OSError):
            self._lock.acquire(self._timeout_s)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
