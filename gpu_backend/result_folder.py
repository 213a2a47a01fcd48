"""Creation of result folders."""

from __future__ import annotations

import os
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
        if folder.is_dir():
            raise RequestError(f"The output folder {folder} takes no files: {error.strerror}.") from None
        if os.path.lexists(folder):
            raise RequestError(f"The output must be a folder, but {folder} is none.") from None
        raise RequestError(f"The output folder {folder} cannot be made: {error.strerror}.") from None
