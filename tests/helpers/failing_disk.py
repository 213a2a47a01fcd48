"""Disks that fail at a chosen operation."""

from __future__ import annotations

import errno
from pathlib import Path

from gpu_backend import Disk
from gpu_backend.whole_file import part_name

NO_PROCESS = 999_999_999
"""Larger than any process number that a system gives."""


def dead_part(name: str) -> str:
    """Return the name of the part file of a target that a killed program of this machine leaves."""
    return part_name(name, NO_PROCESS)


class PowerCutError(BaseException):
    """Simulated death of the program: none of its clean-up runs."""


class MortalDisk(Disk):
    """The program dies at operation number `last`: a write stores half of its bytes, a move or removal does not happen.

    Afterwards every operation fails, as nothing of a dead program runs.
    """

    def __init__(self, last: int) -> None:
        self._left = last
        self.died = False

    def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
        """Write, or die half way."""
        if self._dies():
            path.write_bytes(data[: len(data) // 2])
            raise PowerCutError
        super().write(path, data, flushed=flushed)

    def move(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Move, or die before."""
        if self._dies():
            raise PowerCutError
        super().move(source, target, flushed=flushed)

    def remove(self, path: Path) -> None:
        """Remove, or die before."""
        if self._dies():
            raise PowerCutError
        super().remove(path)

    def _dies(self) -> bool:
        if self.died:
            raise PowerCutError
        self._left -= 1
        self.died = self._left < 0
        return self.died


class FullDisk(Disk):
    """Has room for `room` files; afterwards writing or moving fails with `number`, having written half.

    `stage` says which operation finds out.
    """

    def __init__(self, room: int, stage: str = "write", number: int = errno.ENOSPC) -> None:
        self._room = room
        self._stage = stage
        self._number = number

    def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
        """Write while there is room."""
        if self._stage == "write" and self._room == 0:
            path.write_bytes(data[: len(data) // 2])
            raise OSError(self._number, "no room")
        super().write(path, data, flushed=flushed)

    def move(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Move while there is room."""
        if self._room == 0:
            raise OSError(self._number, "no room")
        super().move(source, target, flushed=flushed)
        self._room -= 1
