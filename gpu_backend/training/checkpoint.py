"""Checkpoints: one atomically written file with all state; the newest few are kept.

They are read with torch's restricted unpickler, which builds only tensors and plain values and executes no code.
"""

from __future__ import annotations

import io
import os
import pickle
import re
from pathlib import Path
from typing import Any

import torch

from gpu_backend.errors import LoomError
from gpu_backend.whole_file import write_whole

_VERSION = 1
_NAME = re.compile(r"checkpoint-([0-9]{9})\.pt", re.ASCII)
_KEPT = 2


class CheckpointError(LoomError):
    """A checkpoint cannot be written or is invalid."""


def write_checkpoint(folder: Path, options: dict[str, Any], state: dict[str, Any]) -> Path:
    """Write a checkpoint, named after the number of pictures seen, and delete all but the newest ones.

    Raises
    ------
    CheckpointError
        If it cannot be written.
    """
    path = folder / f"checkpoint-{state['pictures_seen']:09d}.pt"
    buffer = io.BytesIO()
    torch.save({"version": _VERSION, "options": options, "state": state}, buffer)
    try:
        write_whole(path, buffer.getvalue())
        _make_newest(path)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path.name} was not written: the system says {error.strerror}."
        ) from error
    for old in checkpoints(folder)[:-_KEPT]:
        old.unlink(missing_ok=True)
    return path


def _make_newest(path: Path) -> None:
    """Date a checkpoint after all others of its folder: a clock that was set back dates it before them."""
    others = [other.stat().st_mtime_ns for other in checkpoints(path.parent) if other != path]
    newest_ns = max(others, default=0)
    if path.stat().st_mtime_ns <= newest_ns:
        later_ns = newest_ns + 1_000_000_000  # file systems may store whole seconds
        os.utime(path, ns=(later_ns, later_ns))


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, in the order of writing.

    The last one need not have seen the most pictures, because a training can be resumed from an older one.
    """
    found = (path for path in folder.glob("checkpoint-*.pt") if _NAME.fullmatch(path.name))
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))


def find_checkpoint(place: Path) -> Path:
    """Return a checkpoint file, or the newest of a folder.

    Raises
    ------
    CheckpointError
        If there is none.
    """
    if place.is_file():
        return place
    found = checkpoints(place)
    if not found:
        raise CheckpointError(f"There is no checkpoint to resume from in {place}; start without --resume.")
    return found[-1]


def read_checkpoint(path: Path, device: torch.device) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options and state.

    Raises
    ------
    CheckpointError
        If the file is no checkpoint, damaged, or of another version.
    """
    try:
        if not path.is_file():  # opening a pipe would wait for its other end
            raise ValueError("no file, but a folder, a pipe or a device")
        read = torch.load(path, map_location=device, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise CheckpointError(
            f"A complete checkpoint is needed to resume, but {path.name} is not one; choose an older one.", str(error)
        ) from error
    if not isinstance(read, dict) or not {"version", "options", "state"} <= set(read):
        raise CheckpointError(f"A checkpoint of this program is needed to resume, but {path.name} is not one.")
    if read["version"] != _VERSION:
        raise CheckpointError(
            f"A checkpoint of version {_VERSION} is needed to resume, but {path.name} has version {read['version']}."
        )
    return read["options"], read["state"]
