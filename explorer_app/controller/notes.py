"""Small JSON files beside a window's session. They are a convenience: what the system refuses is not reported."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from gpu_backend import LoomError, read_regular_file, write_whole

_MAX_NBYTES = 1 << 16


class Runs(Protocol):
    """The part of `FileWorker` that writing a note needs."""

    def submit(self, task: Callable[[], object]) -> None:
        """Run a task soon, after those that were submitted before."""
        ...


def write_note(path: Path, said: Mapping[str, object] | None) -> None:
    """Write a note; None removes it."""
    with contextlib.suppress(OSError):
        if said is None:
            path.unlink(missing_ok=True)
        else:
            write_whole(path, json.dumps(said).encode())


def read_note(path: Path, what: str) -> dict[str, Any]:
    """Return what a note says; empty if there is none or the file is damaged. `what` names it in errors."""
    with contextlib.suppress(OSError, LoomError, ValueError, RecursionError):
        said = json.loads(read_regular_file(path, _MAX_NBYTES, what))
        if isinstance(said, dict):
            return said
    return {}
