"""Temporary folders of farm processes: a killed process leaves its own, which the next start of one removes."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile

from gpu_backend import machine_tag, process_is_running

_PREFIX = "latentloom-farm-"
_NAME = re.compile(re.escape(_PREFIX) + r"(?P<machine>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-[a-z0-9_]+")


def new_temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Make an empty folder that only this account can read, named by this process; remove those of dead ones."""
    _remove_abandoned(tempfile.gettempdir())
    prefix = f"{_PREFIX}{machine_tag()}-{os.getpid()}-"
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def _remove_abandoned(parent: str) -> None:
    """Remove this account's folders whose processes, of this machine, are dead."""
    try:
        entries = list(os.scandir(parent))
    except OSError:
        return
    for entry in entries:
        match = _NAME.fullmatch(entry.name)
        if match is None or match["machine"] != machine_tag() or process_is_running(int(match["pid"])):
            continue
        if entry.is_dir(follow_symlinks=False) and _is_own(entry):
            shutil.rmtree(entry.path, ignore_errors=True)


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Return whether a folder is this account's; on Windows each account has a temporary folder of its own."""
    try:
        return sys.platform == "win32" or entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:  # removed meanwhile
        return False
