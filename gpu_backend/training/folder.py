"""The folder that results go into."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.errors import RequestError


def make_folder(folder: Path) -> None:
    """Make a folder if it is not there.

    Raises
    ------
    RequestError
        If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"A folder to write to is wanted, but {folder} is none: {error.strerror}.") from None
