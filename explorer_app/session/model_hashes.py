"""SHA-256 of model files that were read before, so that an unchanged file is not hashed again.

A file is recognised by its path, size, time of change and inode. A file that was changed moments before it was read is
not noted: a second change in the same tick of the file system's clock could leave size and time as they are.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from explorer_app.file_lock import HeldLock
from gpu_backend import SETTINGS_LIMITS, LimitError, parse_json, read_regular_file, write_whole

MAX_FILES = 500
"""Files that are noted; the ones noted longest ago go first."""

_FORMAT = "latent-loom-model-hashes"
_SETTLED_NS = 3_000_000_000
"""Age of the last change from which on the clock's ticks, of two seconds on FAT, cannot hide another one."""

_Entry = tuple[int, int, int, str]
"""Size, time of change in ns, inode, SHA-256."""


class ModelHashes:
    """The table and its file. Reading never fails: a damaged table is an empty one, and is rewritten.

    Parameters
    ----------
    path
        The file; None keeps the table in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._files: dict[str, _Entry] | None = None

    def find(self, file: Path, status: os.stat_result) -> str:
        """Return the SHA-256 of a file of this status; empty if it is not known or the file has changed."""
        known = self._read().get(_key(file))
        return known[3] if known is not None and known[:3] == _version(status) else ""

    def remember(self, file: Path, status: os.stat_result, sha256: str) -> None:
        """Note the SHA-256 that was computed of a file of this status, and write the table.

        Nothing is noted if the file changed since or shortly before. Raises OSError if the system refuses.
        """
        key, entry = _key(file), (*_version(status), sha256)
        if self._read().get(key) == entry:
            return
        if _version(file.stat()) != entry[:3] or time.time_ns() - status.st_mtime_ns < _SETTLED_NS:
            return
        if self._path is None:
            self._read()[key] = entry
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with HeldLock(self._path.with_suffix(".lock")):
            files = _files_of(self._path)  # again: another program may have written since
            files.pop(key, None)
            files[key] = entry
            self._files = dict(list(files.items())[-MAX_FILES:])
            write_whole(self._path, json.dumps({"format": _FORMAT, "files": self._files}, indent=0).encode())

    def _read(self) -> dict[str, _Entry]:
        if self._files is None:
            self._files = {} if self._path is None else _files_of(self._path)
        return self._files


def _key(file: Path) -> str:
    return str(file.absolute())


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _files_of(path: Path) -> dict[str, _Entry]:
    try:
        data = parse_json(read_regular_file(path, SETTINGS_LIMITS.nbytes, "a table of models"), SETTINGS_LIMITS, "it")
    except (OSError, ValueError, LimitError):
        return {}
    files = data.get("files") if isinstance(data, Mapping) and data.get("format") == _FORMAT else None
    if not isinstance(files, Mapping):
        return {}
    return {key: entry for key, value in files.items() if (entry := _entry(value)) is not None}


def _entry(value: object) -> _Entry | None:
    match value:
        case [int(size), int(time_ns), int(inode), str(sha256)] if re.fullmatch("[0-9a-f]{64}", sha256):
            return size, time_ns, inode, sha256
    return None
