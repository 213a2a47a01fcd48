"""The folder that results go into."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gpu_backend.errors import RequestError


def make_folder(folder: Path) -> None:
    """Make a folder if it is not there, and see that it takes files.

    Raises
    ------
    RequestError
        If it does not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RequestError(f"A folder to write to is wanted, but {folder} is none: {error.strerror}.") from None
