import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer_app import file_lock
from explorer_app.file_lock import FileLock, HeldLock

HOLD = """
import sys
from pathlib import Path
from explorer_app.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.try_acquire(), flush=True)
sys.stdin.read()
"""


def test_a_lock_has_one_holder_and_is_free_after_its_release(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire()
    assert first.try_acquire()
    assert not second.try_acquire()
    assert not second.acquire(0.0)
    first.release()
    first.release()
    assert second.acquire(0.0)
    second.release()


def test_a_killed_program_holds_no_lock(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline().strip() == b"True"
        lock = FileLock(tmp_path / "lock")
        assert not lock.try_acquire()
        program.kill()
        program.wait()
        assert lock.acquire(5.0)
        lock.release()


def test_a_block_runs_without_a_lock_that_another_program_holds_for_too_long(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.try_acquire()
    with HeldLock(tmp_path / "lock", 0.0):
        assert lock.is_held
    lock.release()


def test_where_there_are_no_locks_the_block_runs_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(file_lock, "_try_lock", refuse)
    with HeldLock(tmp_path / "a.lock"):
        (tmp_path / "saved").touch()
    assert (tmp_path / "saved").exists()
