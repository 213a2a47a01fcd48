"""What a scanner finds in a picture file without decoding its pixels, and bounded access to such a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from explorer_app.exporting.errors import PictureError
from gpu_backend import dataclass


@dataclass(frozen=True, slots=True)
class PictureScan:
    """The structure of a picture file.

    Attributes
    ----------
    width, height
        In pixels; 0 if the file does not say.
    text
        The recipe's JSON; None without one, or if it cannot be read.
    is_whole
        Nothing is missing at the end of the file, and nothing follows it.
    text_problem
        Why the recipe cannot be read, as the end of a sentence; empty if there is none, or it was read.
    """

    width: int
    height: int
    text: str | None
    is_whole: bool
    text_problem: str = ""


Scanner = Callable[[BinaryIO, int, int], PictureScan]
"""Scans an open file from its first byte, given the file's length and the longest text to return, both in bytes.

A scanner reads headers and skips the rest by seeking. Every length in the file is checked against the file's own.
"""


def scan_file(path: Path, scanner_for: Callable[[bytes], Scanner | None], expected: str, max_text: int) -> PictureScan:
    """Scan a regular file with the scanner that its first 16 bytes choose.

    Parameters
    ----------
    expected
        What the file should be, for the error: "a PNG or JPEG file".

    Raises
    ------
    PictureError
        If the file is missing, not a regular file, unreadable, or of no format that has a scanner.
    """
    try:
        # Checked before opening: opening a pipe would wait for its other end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise PictureError(f"A picture should be {expected}, but {path} is a folder or a device.")
        with path.open("rb") as file:
            scanner = scanner_for(file.read(16))
            if scanner is None:
                raise PictureError(f"A picture should be {expected}, but {path.name} starts like something else.")
            file.seek(0)
            return scanner(file, os.fstat(file.fileno()).st_size, max_text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PictureError(f"The picture {path} cannot be opened ({reason}).", details=str(error)) from error


class RecipeError(Exception):
    """A file holds a recipe that cannot be read; the message is the end of a sentence."""

    @classmethod
    def too_long(cls, limit: int) -> RecipeError:
        """Return the error of a recipe that is longer than the limit in bytes."""
        return cls(f"is longer than the {limit / (1 << 20):g} MB that a recipe may have")

    @classmethod
    def damaged(cls) -> RecipeError:
        """Return the error of a recipe whose bytes are not what was written."""
        return cls("is damaged")


def recipe_text(data: bytes, limit: int) -> str:
    """Return the text of the bytes of a recipe, which are ASCII. Raises RecipeError."""
    if len(data) > limit:
        raise RecipeError.too_long(limit)
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise RecipeError.damaged() from None
