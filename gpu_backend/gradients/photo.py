"""Picture files as targets of a projection."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gpu_backend.errors import RequestError
from gpu_backend.gradients.projection_settings import Crop
from gpu_backend.picture_file import PictureFileError, opened_picture, orientation, upright_in_eight_bits

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
LEAST_PHOTO_PX = 16
"""Smallest side of a photo whose latent is searched, in pixels of the file."""
_TURNED = (5, 6, 7, 8)
"""Values of EXIF's orientation that exchange width and height."""


def read_photo(
    path: str | os.PathLike[str], side: int, channels: int = 3, crop: Crop | None = None
) -> NDArray[np.float32]:
    """Read a square of a picture, turned as its EXIF data says, transparent parts on black, 16 bits and floats as 8.

    Parameters
    ----------
    crop
        The part, kept inside the picture; None for the largest centred square.

    Returns
    -------
    (channels, side, side) float32 in -1..1.

    Raises
    ------
    PictureFileError
        If the file cannot be read as a picture, or a side has fewer pixels than `LEAST_PHOTO_PX`.
    RequestError
        If pictures have another number of channels than 1, 3 or 4.
    """
    if channels not in _MODES:
        raise RequestError(f"Pictures of 1, 3 or 4 channels can be projected, but this network's have {channels}.")
    whole, size = open_photo(path, _MODES[channels])
    check_photo_size(path, size)
    short = min(whole.size)
    if crop is None:
        crop = Crop((whole.width - short) // 2, (whole.height - short) // 2, short)
    edge = round(min(max(crop.side, 1.0), short))
    left, top = (
        round(min(max(at, 0.0), size - edge)) for at, size in zip((crop.left, crop.top), whole.size, strict=True)
    )
    # Cropped first: a filter over the whole picture would mix in pixels from outside.
    square = whole.crop((left, top, left + edge, top + edge)).resize((side, side), Image.Resampling.LANCZOS)
    pixels = np.asarray(square, dtype=np.float32).reshape(side, side, channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) / 127.5 - 1.0)


def check_photo_size(path: str | os.PathLike[str], size: tuple[int, int]) -> None:
    """Raise PictureFileError if a photo's width or height is less than `LEAST_PHOTO_PX`."""
    if min(size) < LEAST_PHOTO_PX:
        least, found = f"{LEAST_PHOTO_PX} x {LEAST_PHOTO_PX}", f"{size[0]} x {size[1]}"
        raise PictureFileError(f"{Path(path).name} should have at least {least} pixels, but has {found}.")


def open_photo(
    path: str | os.PathLike[str], mode: str = "RGB", longest: int | None = None
) -> tuple[Image.Image, tuple[int, int]]:
    """Open a picture file, turned as its EXIF data says, transparent parts on black, 16 bits and floats as 8.

    Parameters
    ----------
    mode
        Pillow's ``L``, ``RGB``, or ``RGBA``, which stays transparent.
    longest
        Reduces the picture to this longer side; None keeps its size.

    Returns
    -------
    The picture, and its whole width and height.

    Raises
    ------
    PictureFileError
        If the file cannot be read as a picture.
    """
    path = Path(path)
    with opened_picture(path, path.name) as file:
        across, down = file.size
        is_turned = orientation(file) in _TURNED
        if longest is not None:
            file.draft(None, (longest, longest))  # a JPEG of twelve megapixels is decoded at a quarter
        picture = upright_in_eight_bits(file)
        if longest is not None:
            picture.thumbnail((longest, longest))
        if mode != "RGBA" and picture.has_transparency_data:
            black = Image.new("RGBA", picture.size, (0, 0, 0, 255))
            picture = Image.alpha_composite(black, picture.convert("RGBA"))
        return picture.convert(mode), (down, across) if is_turned else (across, down)
