"""The exporter's files: written whole; errors of the system become one sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from explorer_app.exporting.errors import ExportError
from gpu_backend import FULL_DISK, MAX_NAME_NBYTES, Disk, FileGroup, part_name, write_whole

_MAX_PARTS = 300
"""Folders in a path: Python makes missing ones by one call in another, up to about a thousand."""


def write_output(path: Path, data: bytes, disk: Disk | None = None) -> None:
    """Write a file in one piece, making its folder if there is none.

    Raises
    ------
    ExportError
        If the disk is full or the system refuses; nothing of the new file is left, an older one is untouched.
    """
    with as_export_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data, disk)


def write_outputs(files: Mapping[Path, bytes], disk: Disk | None = None) -> None:
    """Write files of one folder, each in one piece, and flush them together. Raises ExportError as `write_output`."""
    group: FileGroup | None = None
    try:
        for path, data in files.items():
            with as_export_error(path):
                group = group or FileGroup(path.parent, disk)
                group.add(path.name, data)
    finally:
        if group is not None:
            group.close()
    error = None if group is None else group.error
    if isinstance(error, OSError):
        raise output_error(error, next(iter(files)).with_name(Path(str(error.filename)).name)) from error
    if error is not None:
        raise error


@contextlib.contextmanager
def as_export_error(path: Path) -> Iterator[None]:
    """Raise an OSError of writing `path` as an ExportError whose sentence names a remedy."""
    try:
        yield
    except OSError as error:
        raise output_error(error, path) from error


def output_error(error: OSError, path: Path) -> ExportError:
    """Return an OSError of writing `path` as an ExportError whose sentence names a remedy."""
    return ExportError(_sentence(error, path), details=str(error))


def check_output_path(path: Path) -> None:
    """Refuse a file that the system would not let us write, before the work that the file is for.

    A full disk, a quota or a folder that vanishes meanwhile are found by `write_output`.

    Raises
    ------
    ExportError
        If the path is too long, leads through something that is no folder or to a folder without permission to write,
        or is that of a folder, a pipe or a device.
    """
    aside = path.with_name(part_name(path.name, os.getpid()))
    try:
        is_too_long = any(len(os.fsencode(part)) > MAX_NAME_NBYTES for part in path.parts)
        if is_too_long or len(path.parts) > _MAX_PARTS:  # missing folders hide it from lstat
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        os.lstat(aside)
    except FileNotFoundError:
        pass
    except OSError as error:
        shown = f"{str(path)[:40]}…{str(path)[-20:]}" if len(str(path)) > 200 else str(path)
        raise ExportError(
            f"{shown} cannot be written ({error.strerror}); choose another name or folder.", str(error)
        ) from error
    if path.exists() and not path.is_file():
        raise ExportError(f"{path} cannot be written, since it is a folder, a pipe or a device; choose another name.")
    folder = next((parent for parent in path.absolute().parents if parent.exists()), path.absolute().parent)
    if not stat.S_ISDIR(folder.stat().st_mode):
        raise ExportError(f"{path.name} cannot be written to {folder}, which is not a folder; choose another folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ExportError(
            f"{path.name} cannot be written below {folder} (Permission denied); choose a folder that can be written to."
        )


def _sentence(error: OSError, path: Path) -> str:
    where = f"{path.name} in {path.parent}"
    if error.errno in FULL_DISK:
        return (
            f"The disk is full, so {where} could not be written; "
            "everything before it is kept: make room and do the same again."
        )
    if error.errno == errno.EFBIG:
        return f"The system allows no file as large as {where}; choose a smaller picture or another disk."
    reason = error.strerror or type(error).__name__
    return f"{path.name} could not be written to {path.parent} ({reason}); choose a folder that can be written to."
