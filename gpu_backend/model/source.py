"""Random-access byte sources: a file, or bytes in memory.

Files are not memory-mapped: if a file shrinks during reading, a short read is refused, where a mapping would raise
SIGBUS.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from gpu_backend.model.refusal import Refusal
from gpu_backend.model.watch import Watch
from gpu_backend.plain_text import system_reason
from gpu_backend.quick_dataclass import dataclass

_CHUNK = 1 << 20
"""Bytes per read, and between two checks for cancellation."""

MODEL_FILE = "a model file (.pkl, .pt or .safetensors)"
"""Kind of file that readers expect, for messages."""


class Source(Protocol):
    """A source of bytes with random access."""

    known_digest: str
    """SHA-256 in hexadecimal where it is known without reading; otherwise empty."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        ...

    def read(self, start: int, count: int) -> bytes:
        """Read up to `count` bytes from `start`; fewer only at the end."""
        ...


class BytesSource:
    """A source over bytes in memory."""

    def __init__(self, content: bytes) -> None:
        self.known_digest = ""
        self._content = content

    @property
    def size(self) -> int:
        """Bytes in all."""
        return len(self._content)

    def read(self, start: int, count: int) -> bytes:
        """Read up to `count` bytes from `start`."""
        return self._content[start : start + count]


class FileSource:
    """A source over an open, unbuffered file."""

    def __init__(self, file: BinaryIO, path: Path, status: os.stat_result) -> None:
        self.known_digest = ""
        self.opened = os.fstat(file.fileno())
        """Status of the open file, even if another file has replaced it at its path."""
        self._file = file
        self._path = path
        self._status = status
        self._size = self.opened.st_size

    @property
    def path(self) -> Path:
        """Where the file is, for a library that opens it by itself."""
        return self._path

    @property
    def size(self) -> int:
        """Bytes in all, as they were when the file was opened."""
        return self._size

    def check_unchanged(self) -> None:
        """Refuse if the file was written to, or another one took its place, since it was opened.

        A reader that reads it more than once, or opens it again by its path, calls this at the end.
        """
        if _version(self._path.stat()) != _version(self._status):
            raise Refusal("a file that stays as it is while it is read", "it was changed")

    def read(self, start: int, count: int) -> bytes:
        """Read up to `count` bytes from `start`."""
        count = min(count, self._size - start)
        if count <= 0:
            return b""
        self._file.seek(start)
        content = self._file.read(count)
        while len(content) < count:
            more = self._file.read(count - len(content))
            if not more:
                raise Refusal("a file that stays as it is while it is read", "it became shorter")
            content += more
        return content


@contextmanager
def open_source(path: Path, expected: str = MODEL_FILE) -> Iterator[FileSource]:
    """Open a regular file for reading; `expected` says in a refusal what it should be.

    Raises
    ------
    Refusal
        If there is no such file, or it is a folder, a device, or may not be read.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise Refusal(expected, "this is a folder")
        if not stat.S_ISREG(status.st_mode):
            raise Refusal(expected, "this is a device or a pipe")
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise Refusal(expected, "there is no file of that name") from None
    except PermissionError:
        raise Refusal(expected, "this account may not read it") from None
    except (OSError, ValueError) as error:
        raise Refusal(expected, f"the system could not open it ({system_reason(error)})") from error
    with file:
        try:
            yield FileSource(file, path, status)
        except OSError as error:
            raise Refusal("a file that can be read to its end", f"the system says {system_reason(error)}") from error


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Bytes [start, start + len(target)) of the source, to be copied into `target` (a flat writable byte view)."""

    start: int
    target: memoryview


def read_through(source: Source, wanted: Sequence[ReadRange], watch: Watch) -> str:
    """Read the whole source once, sequentially, and copy the requested ranges.

    Returns
    -------
    str
        SHA-256 of the source in hexadecimal; the known one if there is one.
    """
    digest = None if source.known_digest else hashlib.sha256()
    waiting = sorted(wanted, key=lambda piece: piece.start, reverse=True)
    active: list[ReadRange] = []
    watch.advance(0, source.size)
    for start in range(0, source.size, _CHUNK):
        chunk = source.read(start, _CHUNK)
        if digest is not None:
            digest.update(chunk)
        stop = start + len(chunk)
        while waiting and waiting[-1].start < stop:
            active.append(waiting.pop())
        for piece in active:
            first = max(start, piece.start)
            last = min(stop, piece.start + len(piece.target))
            piece.target[first - piece.start : last - piece.start] = chunk[first - start : last - start]
        active = [piece for piece in active if piece.start + len(piece.target) > stop]
        watch.advance(stop, source.size)
    return source.known_digest if digest is None else digest.hexdigest()
