"""Picture files as targets of a projection."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from gpu_backend.errors import LoomError, RequestError
from gpu_backend.gradients.projection_settings import Crop

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def read_photo(path: Path, side: int, channels: int = 3, crop: Crop | None = None) -> NDArray[np.float32]:
    """Read a square of a picture, turned as its EXIF data says, transparent parts on black.

    Parameters
    ----------
    crop
        The part, kept inside the picture; None for the largest centred square.

    Returns
    -------
    (channels, side, side) float32 in -1..1.

    Raises
    ------
    LoomError
        If the file cannot be read as a picture.
    RequestError
        If pictures have another number of channels than 1, 3 or 4.
    """
    if channels not in _MODES:
        raise RequestError(f"Pictures of 1, 3 or 4 channels can be projected, but this network's have {channels}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as file:
                whole = ImageOps.exif_transpose(file)
                if channels != 4 and whole.has_transparency_data:
                    black = Image.new("RGBA", whole.size, (0, 0, 0, 255))
                    whole = Image.alpha_composite(black, whole.convert("RGBA"))
                whole = whole.convert(_MODES[channels])
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise LoomError(f"{path.name} should be a picture, but cannot be read as one.", str(error)) from error
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
