"""Writing a file so that it is there whole or not at all.

The bytes go into a hidden file beside the target, are flushed to the disk and moved into place by one atomic
`os.replace`. Whatever stops the program, a file under its real name is complete; what may be left is a hidden
``.<name>.<token>.part``, which `remove_leftovers` takes away.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from explorer_app.exporting.errors import ExportError

_FULL = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})


class Disk:
    """The file operations that writing needs, in one place so that a test can let them fail."""

    def write(self, path: Path, data: bytes) -> None:
        """Create a new file with these bytes and wait until the disk has them."""
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def move(self, source: Path, target: Path) -> None:
        """Put a file in the place of another, in one step."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete a file; one that is gone already is fine."""
        path.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes, disk: Disk | None = None) -> None:
    """Write a file in one piece, making its folder if there is none.

    Raises
    ------
    ExportError
        If the disk is full or the system refuses; nothing of the new file is left, an older one is untouched.
    """
    disk = disk or Disk()
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write(aside, data)
        disk.move(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            disk.remove(aside)
        if isinstance(error, OSError):
            raise ExportError(_sentence(error, path), details=str(error)) from error
        raise


def remove_leftovers(folder: Path, is_target: Callable[[str], bool], disk: Disk | None = None) -> None:
    """Delete what interrupted writes left in a folder, for the file names that `is_target` knows."""
    disk = disk or Disk()
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return
    for name in names:
        match = re.fullmatch(r"\.(.+)\.[0-9a-f]{8}\.part", name, re.DOTALL)
        if match is not None and is_target(match[1]):
            with contextlib.suppress(OSError):
                disk.remove(folder / name)


def _sentence(error: OSError, path: Path) -> str:
    where = f"{path.name} in {path.parent}"
    if error.errno in _FULL:
        return (
            f"The disk is full, so {where} could not be written; "
            "everything before it is kept: make room and start the same export again."
        )
    if error.errno == errno.EFBIG:
        return f"The system allows no file as large as {where}; choose a smaller picture or another disk."
    reason = error.strerror or type(error).__name__
    return f"{path.name} could not be written to {path.parent} ({reason}); choose a folder that can be written to."
