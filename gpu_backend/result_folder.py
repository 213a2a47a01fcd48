"""Creation of result folders."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gpu_backend.errors import RequestError


def make_folder(folder: Path) -> None:
    """Create a folder if it is missing, and check that files can be written into it.

    Raises
    ------
    RequestError
        If the folder cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RequestError(f"The output must be a folder, but {folder} is none: {error.strerror}.") from None
