"""TIFF (revision 6.0 with the supplements on deflate): one strip, horizontal differences, deflate.

The recipe is the tag ImageDescription.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from explorer_app.exporting.formats.deflate import deflate_fast
from explorer_app.exporting.formats.scan import PictureScan, RecipeError, recipe_text
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

SIGNATURE = b"II*\0"

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _DESCRIPTION = 256, 257, 258, 259, 262, 270
_STRIP_OFFSET, _CHANNELS, _STRIP_ROWS, _STRIP_NBYTES, _PLANAR, _PREDICTOR, _EXTRA = 273, 277, 278, 279, 284, 317, 338
_X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT, _INCH = 282, 283, 296, 2
_ASCII, _SHORT, _LONG, _RATIONAL = 2, 3, 4, 5
_SIZES = {_ASCII: 1, _SHORT: 2, _LONG: 4}
_DEFLATE, _RGB, _CHUNKY, _HORIZONTAL, _UNASSOCIATED_ALPHA = 8, 2, 1, 2, 2
_MARK = b"latentloom "
_MAX_ENTRIES = 1000


def encode_tiff(samples: NDArray[np.uint8], text: str, dpi: int | None = None) -> bytes:
    """Return a TIFF file.

    Parameters
    ----------
    samples
        (height, width, 3 or 4) R, G, B and perhaps A.
    text
        The recipe: ASCII.
    dpi
        Pixels an inch; None says nothing.
    """
    height, width, channels = samples.shape
    differences = samples.copy()
    np.subtract(samples[:, 1:], samples[:, :-1], out=differences[:, 1:])
    strip = deflate_fast(differences)
    note = _MARK + text.encode("ascii") + b"\0"
    bits = struct.pack(f"<{channels}H", *[8] * channels)
    entries = [
        (_WIDTH, _LONG, 1, width),
        (_HEIGHT, _LONG, 1, height),
        (_BITS, _SHORT, channels, "bits"),
        (_COMPRESSION, _SHORT, 1, _DEFLATE),
        (_PHOTOMETRIC, _SHORT, 1, _RGB),
        (_DESCRIPTION, _ASCII, len(note), "note"),
        (_STRIP_OFFSET, _LONG, 1, "strip"),
        (_CHANNELS, _SHORT, 1, channels),
        (_STRIP_ROWS, _LONG, 1, height),
        (_STRIP_NBYTES, _LONG, 1, len(strip)),
        *(() if dpi is None else ((_X_RESOLUTION, _RATIONAL, 1, "dpi"), (_Y_RESOLUTION, _RATIONAL, 1, "dpi"))),
        (_PLANAR, _SHORT, 1, _CHUNKY),
        *(() if dpi is None else ((_RESOLUTION_UNIT, _SHORT, 1, _INCH),)),
        (_PREDICTOR, _SHORT, 1, _HORIZONTAL),
    ]
    if channels == 4:
        entries.append((_EXTRA, _SHORT, 1, _UNASSOCIATED_ALPHA))
    note += b"\0" * (len(note) % 2)  # offsets are even
    first = 8 + 2 + 12 * len(entries) + 4
    density = b"" if dpi is None else struct.pack("<II", dpi, 1)
    offsets = {"bits": first, "dpi": first + len(bits)}
    offsets["note"] = offsets["dpi"] + len(density)
    offsets["strip"] = offsets["note"] + len(note)
    parts = [SIGNATURE, struct.pack("<IH", 8, len(entries))]
    for tag, kind, count, value in entries:
        parts.append(struct.pack("<HHII", tag, kind, count, offsets[value] if isinstance(value, str) else value))
    return b"".join((*parts, bytes(4), bits, density, note, strip))


def scan_tiff(file: BinaryIO, nbytes: int, max_text: int) -> PictureScan:
    """Implements `Scanner`: reads the first directory of a little-endian file."""
    fields: dict[int, int] = {}
    text: str | None = None
    problem = ""
    file.seek(4)
    start = int.from_bytes(file.read(4), "little")
    file.seek(min(start, nbytes))
    count = int.from_bytes(file.read(2), "little")
    directory = file.read(12 * min(count, _MAX_ENTRIES))
    for first in range(0, len(directory) - 11, 12):
        tag, kind, length, value = struct.unpack("<HHII", directory[first : first + 12])
        if tag == _DESCRIPTION and kind == _ASCII and length > len(_MARK):
            file.seek(min(value, nbytes))
            data = file.read(min(length, max_text + len(_MARK) + 2))
            if data.startswith(_MARK):
                try:
                    text = recipe_text(data[len(_MARK) :].removesuffix(b"\0"), max_text)
                except RecipeError as error:
                    problem = str(error)
        elif kind in _SIZES and length == 1:
            fields[tag] = value & 0xFFFF if kind == _SHORT else value
    end = fields.get(_STRIP_OFFSET, 0) + fields.get(_STRIP_NBYTES, 0)
    width, height = fields.get(_WIDTH, 0), fields.get(_HEIGHT, 0)
    return PictureScan(width, height, text, width > 0 and end == nbytes, problem)
