"""JPEG (ITU-T T.81) by libjpeg-turbo, without chroma subsampling; the recipe is in COM segments after SOI."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from explorer_app.exporting.formats.scan import PictureScan, RecipeError, recipe_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIGNATURE = b"\xff\xd8\xff"

_MARK = b"latentloom\0"
_MAX_SEGMENT = 0xFFFF - 2
_MAX_SEGMENTS = 100_000
_PER_INCH = 1
_COM, _SOS, _EOI = 0xFE, 0xDA, b"\xff\xd9"
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers SOF0 to SOF15, without the three of that range that mean something else."""


def encode_jpeg(pixels: NDArray[np.uint8], text: str, quality: int, dpi: int | None = None) -> bytes:
    """Return a JPEG file with 4:4:4 sampling.

    Parameters
    ----------
    pixels
        (height, width, 4) B, G, R, X.
    text
        The recipe: ASCII.
    quality
        1 to 100, on libjpeg's scale.
    dpi
        Pixels an inch, in the JFIF header; None says nothing.
    """
    import simplejpeg  # here, since most windows save no JPEG

    # Its module has types, but declares no exports.
    encode: Callable[..., bytes] = getattr(simplejpeg, "encode_jpeg")  # noqa: B009
    data = encode(pixels, quality=quality, colorspace="BGRX", colorsubsampling="444")
    if dpi is not None and data[6:11] == b"JFIF\0":
        data = data[:13] + struct.pack(">BHH", _PER_INCH, dpi, dpi) + data[18:]
    size = _MAX_SEGMENT - len(_MARK)
    note = text.encode("ascii")
    segments = [
        b"\xff\xfe" + struct.pack(">H", 2 + len(_MARK) + len(part)) + _MARK + part
        for part in (note[first : first + size] for first in range(0, len(note), size))
    ]
    whole = memoryview(data)
    return b"".join((whole[:2], *segments, whole[2:]))


def scan_jpeg(file: BinaryIO, nbytes: int, max_text: int) -> PictureScan:
    """Implements `Scanner`. Segments up to the first scan are looked at."""
    width = height = 0
    parts: list[bytes] = []
    length_of_text = 0
    has_scan = False
    position = 2
    for _ in range(_MAX_SEGMENTS):
        file.seek(position)
        head = file.read(4)
        if len(head) < 4 or head[0] != 0xFF:
            break
        marker, length = head[1], int.from_bytes(head[2:], "big")
        if marker == _SOS:
            has_scan = True
            break
        if length < 2 or position + 2 + length > nbytes:
            break
        if marker == _COM and length_of_text <= max_text:
            data = file.read(length - 2)
            if data.startswith(_MARK):
                parts.append(data[len(_MARK) :])
                length_of_text += len(parts[-1])
        elif marker in _FRAME_HEADERS and length >= 7:
            height, width = struct.unpack(">HH", file.read(5)[1:])
        position += 2 + length
    if nbytes >= 2:
        file.seek(nbytes - 2)
    is_whole = has_scan and width > 0 and file.read(2) == _EOI
    try:
        return PictureScan(width, height, recipe_text(b"".join(parts), max_text) if parts else None, is_whole)
    except RecipeError as error:
        return PictureScan(width, height, None, is_whole, str(error))
