"""Photos, reduced for the screen; read on a thread, since one of many megapixels takes seconds."""

from __future__ import annotations

from pathlib import Path

import gpu_backend
from gpu_backend import LoomError, dataclass

_SHOWN_PX = 1024
"""Longer side of the photo as it is shown, in px."""


class PhotoError(LoomError):
    """A file cannot be shown as a picture."""


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo, upright.

    Attributes
    ----------
    path
        The file.
    pixels
        Lines of red, green and blue bytes, `shown_width` x `shown_height` pixels, reduced for the screen.
    width, height
        In pixels of the file.
    """

    path: Path
    pixels: bytes
    shown_width: int
    shown_height: int
    width: int
    height: int


def load_photo(path: Path) -> Photo:
    """Read a photo as the search reads it, reduced for the screen. Raises PhotoError."""
    try:
        picture, (width, height) = gpu_backend.open_photo(path, longest=_SHOWN_PX)
        gpu_backend.check_photo_size(path, (width, height))
    except LoomError as error:
        raise PhotoError(error.sentence, error.details) from error
    return Photo(path, picture.tobytes(), picture.width, picture.height, width, height)
