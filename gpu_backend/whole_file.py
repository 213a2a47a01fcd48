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
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gpu_backend.errors import ModelFileError, not_written
from gpu_backend.processes import machine_tag, process_is_running

_PART = re.compile(r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-[0-9a-f]{8}\.part", re.DOTALL)
_OLD_PART = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.part", re.DOTALL)
"""The names of earlier versions, without a writer."""

_ABANDONED_S = 24 * 3600.0
"""Age of a part file of another machine, or of an unknown writer, at which it counts as abandoned."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

MAX_NAME_NBYTES = 255
"""Longest file name of every common file system."""

_MANY = 4
"""Files from which on flushing their whole file system is cheaper than flushing each."""

_MOST_UNFLUSHED = 512
"""Files that may wait to be flushed before a group pauses its writers."""

_live: set[str] = set()
"""Names of the part files that this process is writing now: unlike paths, a folder has no two spellings in them."""

_swept: set[str] = set()
"""Folders that this process has cleaned already."""


class Disk:
    """The file operations of a write, in one place so that a test can let them fail."""

    def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
        """Create a new file with these bytes, and flush it to the disk unless the caller does that later."""
        file = os.open(path, _NEW_FILE, 0o666)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
            if flushed:
                os.fsync(file)
        finally:
            os.close(file)

    def flush(self, paths: Sequence[Path]) -> None:
        """Flush files of one folder to the disk.

        From four files on, Linux flushes their whole file system at once: 0.4 ms a file instead of 2 to 9 (ext4).
        """
        if len(paths) >= _MANY and (sync := _sync_of_file_systems()) is not None:
            folder = os.open(paths[0].parent, os.O_RDONLY)
            try:
                if sync(folder) == 0:
                    return
            finally:
                os.close(folder)
        for path in paths:
            with path.open("rb+") as file:
                os.fsync(file.fileno())

    def flush_folder(self, folder: Path) -> None:
        """Flush a folder, which holds the names of its files. One that cannot be flushed is no error."""
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(number)
                finally:
                    os.close(number)

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

    def move(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Replace a file by another in one step, and flush the folder unless the caller does that later."""
        source.replace(target)
        if flushed:
            self.flush_folder(target.parent)

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
        name and is in a separate folder, which is removed with everything that a library leaves there.
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
    _live.add(aside.name)
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
            error.filename = str(path)  # errors of writing and flushing name no file
        raise
    else:
        if written != aside:
            with contextlib.suppress(OSError):
                disk.remove(aside)
    finally:
        _live.discard(aside.name)


def check_same(path: Path, content: bytes) -> None:
    """Raise OSError if a file that was just written has other bytes: a check for `write_whole`."""
    if path.read_bytes() != content:
        raise OSError(errno.EIO, "the disk returned other bytes than were written", str(path))


def write_readable(path: Path, content: bytes, read: Callable[[Path], object]) -> None:
    """Write a file as `write_whole` does, if `read` accepts it.

    Raises
    ------
    ModelFileError
        If `read` raises it, in a sentence that begins with "NAME was not opened".
    LoomError
        If the file cannot be written.
    """

    def fill(aside: Path) -> None:
        aside.write_bytes(content)

    try:
        write_whole(path, fill, check=read)
    except ModelFileError as refused:
        sentence = refused.sentence.replace("was not opened", "was not written", 1)
        raise ModelFileError(sentence, refused.details) from refused
    except OSError as error:
        raise not_written(path, error) from error


class FileGroup:
    """Writes files of one folder atomically, as `write_whole` does, and flushes together what was written meanwhile.

    Flushing is most of what a small file costs. A separate thread flushes and moves all files that were added since
    it last looked: one by one while they come slowly, hundreds at a time while they come fast.

    Parameters
    ----------
    folder
        Made when the first file is added.
    stored
        Called on the group's thread after files came into place.
    """

    def __init__(self, folder: Path, disk: Disk | None = None, stored: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._pid = os.getpid()
        self._disk = disk or Disk()
        self._stored = stored
        self._condition = threading.Condition()
        self._added: list[tuple[Path, Path]] = []
        self._moving = 0
        self._written = 0
        self._error: BaseException | None = None
        self._is_closing = False
        self._is_ready = False
        self._thread = threading.Thread(target=self._run, name="file-group", daemon=True)
        self._thread.start()

    @property
    def folder(self) -> Path:
        """Where the files go."""
        return self._folder

    @property
    def written(self) -> int:
        """Number of files that are in place."""
        return self._written

    @property
    def error(self) -> BaseException | None:
        """Why files could not be flushed or moved; entries added later are not written."""
        return self._error

    @property
    def has_room(self) -> bool:
        """Whether the disk keeps up."""
        return len(self._added) + self._moving < _MOST_UNFLUSHED

    def add(self, name: str, data: bytes) -> None:
        """Write a file beside its target, to be moved there soon. Safe on any thread.

        Raises
        ------
        OSError
            If the system refuses; nothing of the file is left.
        """
        target = self._folder / name
        if target.is_symlink():
            write_whole(target, data, self._disk)
            with self._condition:
                self._written += 1
            self._stored()
            return
        aside, target = self.reserve([name])[0]
        try:
            write_part(aside, data, self._disk)
        except BaseException as error:
            self._drop(aside)
            if isinstance(error, OSError) and error.filename is None:
                error.filename = str(target)
            raise
        self.put([(aside, target)])

    def reserve(self, names: Sequence[str]) -> list[tuple[Path, Path]]:
        """Return part files for the caller to write, unflushed, and targets; `put` or `discard` comes next."""
        if not self._is_ready:
            self._folder.mkdir(parents=True, exist_ok=True)
            _sweep_once(self._folder, self._disk)
            self._is_ready = True
        reserved = [(self._folder / part_name(name, self._pid), self._folder / name) for name in names]
        _live.update(aside.name for aside, _ in reserved)
        return reserved

    def put(self, files: Sequence[tuple[Path, Path]]) -> None:
        """Let part files that were written be moved to their targets soon. Safe on any thread."""
        plain = []
        for aside, target in files:
            if os.path.islink(target):
                self.add(target.name, aside.read_bytes())
                self.discard([aside])
            else:
                plain.append((aside, target))
        if plain:
            with self._condition:
                self._added += plain
                self._condition.notify()

    def discard(self, asides: Sequence[Path]) -> None:
        """Delete part files that `reserve` gave, whole or not; a missing one is fine."""
        for aside in asides:
            with contextlib.suppress(OSError):
                self._drop(aside)

    def close(self) -> None:
        """Move what was added, and end the thread. May be called twice."""
        with self._condition:
            self._is_closing = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while files := self._take():
            done = 0
            try:
                if self._error is None:
                    self._disk.flush([aside for aside, _ in files])
                    for aside, target in files:
                        self._disk.move(aside, target, flushed=False)
                        _live.discard(aside.name)
                        done += 1
                    self._disk.flush_folder(self._folder)
            except BaseException as error:  # reported through `error`
                if isinstance(error, OSError) and error.errno is not None:
                    error.filename = str(files[done][1])
                self._error = error
            for aside, _ in files[done:]:
                with contextlib.suppress(BaseException):
                    self._drop(aside)
            with self._condition:
                self._moving = 0
                self._written += done
            self._stored()

    def _take(self) -> list[tuple[Path, Path]]:
        """Wait for files and return all of them; none at the end."""
        with self._condition:
            self._condition.wait_for(lambda: self._added or self._is_closing)
            files, self._added = self._added, []
            self._moving = len(files)
            return files

    def _drop(self, aside: Path) -> None:
        try:
            with contextlib.suppress(OSError):
                self._disk.remove(aside)
        finally:
            _live.discard(aside.name)


def write_part(aside: Path, data: bytes, disk: Disk | None = None) -> None:
    """Create a part file, unflushed, and its folder again if that was deleted. An error may leave a piece of the file.

    Raises
    ------
    OSError
        If the system refuses.
    """
    disk = disk or Disk()
    try:
        disk.write(aside, data, flushed=False)
    except FileNotFoundError:
        aside.parent.mkdir(parents=True, exist_ok=True)
        disk.write(aside, data, flushed=False)


def _link_target(path: Path) -> Path:
    """Return the file that a symbolic link leads to, which may be missing; any other path unchanged."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def part_name(name: str, pid: int) -> str:
    """Return a new name for the part file of a target, written by a process of this machine; of a long name a part."""
    end = f".{machine_tag()}-{pid}-{os.urandom(4).hex()}.part"
    return f".{cut_name(name, MAX_NAME_NBYTES - len(end) - 1)}{end}"


def cut_name(name: str, nbytes: int) -> str:
    """Return the beginning of a file's name that has so many bytes at most."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= nbytes else encoded[:nbytes].decode("utf-8", "ignore")


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
    if match.re is _PART and match["host"] == machine_tag():
        pid = int(match["pid"])
        if pid == os.getpid():
            return path.name not in _live
        if not process_is_running(pid):
            return True
    return time.time() - path.lstat().st_mtime > _ABANDONED_S


@functools.cache
def _sync_of_file_systems() -> Callable[[int], int] | None:
    """Return Linux's syncfs, which takes a descriptor of any file there and returns 0 on success; None elsewhere."""
    if sys.platform != "linux":
        return None
    import ctypes  # here, since most starts write no group of files

    sync = getattr(ctypes.CDLL(None), "syncfs", None)
    return None if sync is None else lambda number: int(sync(number))
