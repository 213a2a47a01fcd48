"""Atomic file writes: a file under its real name is always complete, whatever stops the program.

`write_whole` writes beside the target, flushes to the disk, lets a check read the result back, renames it into place
and flushes the folder. A killed program leaves a hidden ``.NAME.HOST-PID-TOKEN.part``. The next program that writes
into the same folder deletes it, unless its writer still runs.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

_PART = re.compile(r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-[0-9a-f]{8}\.part", re.DOTALL)
_OLD_PART = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.part", re.DOTALL)
"""The names of earlier versions, without a writer."""

_ABANDONED_S = 24 * 3600.0
"""Age of a part file of another machine, or of an unknown writer, at which it counts as abandoned."""

_live: set[str] = set()
"""Part files that this process is writing now."""

_swept: set[str] = set()
"""Folders that this process has cleaned already."""


class Disk:
    """The file operations of a write, in one place so that a test can let them fail."""

    def write(self, path: Path, data: bytes) -> None:
        """Create a new file with these bytes and flush it to the disk."""
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def write_by(self, path: Path, fill: Callable[[Path], None]) -> None:
        """Create a new file in a new folder, let `fill` write it, and flush it to the disk.

        `fill` may replace the file, and may leave others beside it; it gets the permissions of an ordinary new file.
        """
        path.parent.mkdir(mode=0o700)
        path.touch(exist_ok=False)
        mode = stat.S_IMODE(path.stat().st_mode)
        fill(path)
        path.chmod(mode)
        with path.open("rb+") as file:
            os.fsync(file.fileno())

    def move(self, source: Path, target: Path) -> None:
        """Replace a file by another in one step, and flush the folder, which holds the new name.

        A folder that cannot be flushed is no error: the file is in place by then.
        """
        source.replace(target)
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)

    def remove(self, path: Path) -> None:
        """Delete a file, or a folder with its content; a missing one is fine."""
        if path.is_dir() and not path.is_symlink():
            # Imported here: most writes leave no folder, and the import costs the start of the program.
            import shutil

            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def write_whole(
    path: Path,
    content: bytes | Callable[[Path], None],
    disk: Disk | None = None,
    *,
    check: Callable[[Path], object] | None = None,
) -> None:
    """Write a file atomically into an existing folder.

    A symbolic link stays: the file that it leads to is replaced, or created. The first write into a folder deletes the
    part files there whose writers are dead.

    Parameters
    ----------
    content
        The bytes, or a function that writes the file of the path that it is given. That path has the target's file
        name and lies in a folder of its own: what a library leaves there disappears with it.
    check
        Reads the flushed file back before it replaces the old one. If it raises, the old file stays. The path that it
        is given has another name than `path` if `content` is bytes.

    Raises
    ------
    OSError
        If the system refuses. After this or any other error nothing of the new file is left, and an older one is
        untouched.
    """
    disk = disk or Disk()
    path = _link_target(path)
    _sweep_once(path.parent, disk)
    aside = path.with_name(part_name(path.name, os.getpid()))
    written = aside if isinstance(content, bytes) else aside / path.name
    _live.add(str(aside))
    try:
        if isinstance(content, bytes):
            disk.write(written, content)
        else:
            disk.write_by(written, content)
        if check is not None:
            check(written)
        disk.move(written, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            disk.remove(aside)
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            error.filename = str(path)  # writing and flushing do not say what
        raise
    else:
        if written != aside:
            with contextlib.suppress(OSError):
                disk.remove(aside)
    finally:
        _live.discard(str(aside))


def _link_target(path: Path) -> Path:
    """Return the file that a symbolic link leads to, which may be missing; any other path as it is."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def part_name(name: str, pid: int) -> str:
    """Return a new name for the part file of a target, written by a process of this machine."""
    return f".{name}.{_host()}-{pid}-{os.urandom(4).hex()}.part"


def remove_leftovers(folder: Path, is_target: Callable[[str], bool], disk: Disk | None = None) -> None:
    """Delete the part files in a folder whose writers are dead.

    Parameters
    ----------
    is_target
        Chooses by the name of the file that was being written.
    """
    disk = disk or Disk()
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return
    for name in names:
        match = _PART.fullmatch(name) or _OLD_PART.fullmatch(name)
        if match is not None and is_target(match["name"]):
            with contextlib.suppress(OSError):
                if _is_abandoned(folder / name, match):
                    disk.remove(folder / name)


def _sweep_once(folder: Path, disk: Disk) -> None:
    key = os.path.abspath(folder)
    if key not in _swept:
        _swept.add(key)
        remove_leftovers(folder, lambda name: True, disk)


def _is_abandoned(path: Path, match: re.Match[str]) -> bool:
    if match.re is _PART and match["host"] == _host():
        pid = int(match["pid"])
        if pid == os.getpid():
            return str(path) not in _live
        if not _is_running(pid):
            return True
    return time.time() - path.lstat().st_mtime > _ABANDONED_S


@functools.cache
def _host() -> str:
    """Return 8 digits for the machine, or the container, within which a process number means one process."""
    machine = os.environ.get("COMPUTERNAME", "") if sys.platform == "win32" else os.uname().nodename
    try:
        container = os.readlink("/proc/self/ns/pid")
    except OSError:
        container = ""
    return f"{zlib.crc32(f'{machine} {container}'.encode()):08x}"


if sys.platform == "win32":

    def _is_running(pid: int) -> bool:
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x1000, 0, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)

else:

    def _is_running(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:  # another account's
            return True
        return True
