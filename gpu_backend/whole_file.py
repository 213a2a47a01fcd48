"""Writing a file so that it is there whole or not at all.

The bytes go into a hidden file beside the target, are flushed to the disk and moved into place by one atomic
`os.replace`. Whatever stops the program, a file under its real name is complete; what may be left is a hidden
``.<name>.<token>.part``, which `remove_leftovers` takes away.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path


class Disk:
    """The file operations that writing needs, in one place so that a test can let them fail."""

    def write(self, path: Path, data: bytes) -> None:
        """Create a new file with these bytes and wait until the disk has them."""
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def write_by(self, path: Path, fill: Callable[[Path], None]) -> None:
        """Create a new file, let `fill` write it and wait until the disk has it.

        `fill` may put another file in the place of the new one; that gets the permissions of the new one, which are
        the ordinary ones.
        """
        path.touch(exist_ok=False)
        mode = stat.S_IMODE(path.stat().st_mode)
        fill(path)
        path.chmod(mode)
        with path.open("rb+") as file:
            os.fsync(file.fileno())

    def move(self, source: Path, target: Path) -> None:
        """Put a file in the place of another, in one step."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete a file; one that is gone already is fine."""
        path.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | Callable[[Path], None], disk: Disk | None = None) -> None:
    """Write a file in one piece, into a folder that is there.

    Parameters
    ----------
    content
        The bytes, or a function that writes the file of the path that it is given.

    Raises
    ------
    OSError
        If the system refuses. After this or any other error nothing of the new file is left, and an older one is
        untouched.
    """
    disk = disk or Disk()
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        if isinstance(content, bytes):
            disk.write(aside, content)
        else:
            disk.write_by(aside, content)
        disk.move(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            disk.remove(aside)
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
