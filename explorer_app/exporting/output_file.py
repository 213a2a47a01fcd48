"""The exporter's files: written whole, and a refusal of the system told in a sentence."""

from __future__ import annotations

import errno
from pathlib import Path

from explorer_app.exporting.errors import ExportError
from gpu_backend import Disk, write_whole

_FULL = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})


def write_output(path: Path, data: bytes, disk: Disk | None = None) -> None:
    """Write a file in one piece, making its folder if there is none.

    Raises
    ------
    ExportError
        If the disk is full or the system refuses; nothing of the new file is left, an older one is untouched.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data, disk)
    except OSError as error:
        raise ExportError(_sentence(error, path), details=str(error)) from error


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
