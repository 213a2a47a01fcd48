"""Picture files of other programs, opened by Pillow in ordinary formats only.

Pillow chooses a format by a file's content, whatever its name. Some of its formats run another program: for EPS
Ghostscript, which executes what is in the file. They are left out here, so opening a picture runs nothing.
"""

from __future__ import annotations

import io
import stat
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_backend.errors import LoomError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP", "AVIF", "TIFF", "GIF", "BMP", "PPM", "TGA")
"""Names of Pillow's formats that are opened."""

MAX_PICTURE_PIXELS = 89_478_485
"""Pixels of the largest picture, 256 MB as RGB. A small file may hold many more."""

_ORIENTATION = 0x0112
"""EXIF's tag of it."""

_filters = threading.Lock()
"""The warning filters belong to all threads."""


class PictureFileError(LoomError):
    """A file is no picture of an ordinary format, is damaged, or has too many pixels."""


@contextmanager
def opened_picture(source: Path | bytes, name: str) -> Iterator[Image.Image]:
    """Open a picture for the body of a `with` statement, which decodes it.

    Parameters
    ----------
    source
        The file or its bytes. A pipe is refused, as opening one would wait for its other end.
    name
        What errors call the picture.

    Raises
    ------
    PictureFileError
        Also for errors of decoding in the body.
    """
    # Imported here: it costs the start of the program.
    from PIL import Image

    try:
        if isinstance(source, Path) and not stat.S_ISREG(source.stat().st_mode):
            raise PictureFileError(f"{name} should be a picture, but is a folder, a pipe or a device.")
        with _filters, warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=FORMATS)
        with picture:
            if picture.width * picture.height > MAX_PICTURE_PIXELS:
                raise PictureFileError(
                    f"{name} has {picture.width} x {picture.height} pixels, but may have "
                    f"{MAX_PICTURE_PIXELS // 1_000_000} million; make it smaller."
                )
            yield picture
    except Image.DecompressionBombError as error:  # more than twice Pillow's own limit, found before the size is known
        raise PictureFileError(
            f"{name} has too many pixels: more than {MAX_PICTURE_PIXELS // 1_000_000} million; make it smaller.",
            str(error),
        ) from error
    # libavif's errors are RuntimeError; a decoder that allocates by a forged header raises MemoryError.
    except (OSError, ValueError, SyntaxError, RuntimeError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno:  # of the system; Pillow's have no number
            raise PictureFileError(f"{name} cannot be read ({error.strerror}).", str(error)) from error
        raise PictureFileError(f"{name} should be a picture, but cannot be read as one.", str(error)) from error


def orientation(picture: Image.Image) -> int:
    """Return EXIF's orientation of a picture, 1 to 8; 1, upright, where EXIF data is missing or damaged."""
    try:
        found = picture.getexif().get(_ORIENTATION, 1)
    except Exception:  # Pillow raises many types of damaged EXIF data; the picture itself is whole
        return 1
    return found if found in range(1, 9) else 1


def upright_in_eight_bits(picture: Image.Image) -> Image.Image:
    """Return a picture turned as its EXIF data says; grey of 16 bits, and floats in 0..1, as grey of 8 bits.

    Pillow's own conversion makes integers above 255 white, and such floats black.
    """
    from PIL import Image, ImageOps

    if orientation(picture) != 1:
        picture = ImageOps.exif_transpose(picture)
    if picture.mode != "F" and not picture.mode.startswith("I"):
        return picture
    import numpy as np

    if picture.mode == "F":
        floats = np.nan_to_num(np.asarray(picture, np.float32))
        scale = 255.0 if floats.max(initial=0.0) <= 1.0 else 1.0
        return Image.fromarray(np.rint((floats * scale).clip(0.0, 255.0)).astype(np.uint8))
    return Image.fromarray((np.asarray(picture).clip(0, 65535) // 257).astype(np.uint8))
