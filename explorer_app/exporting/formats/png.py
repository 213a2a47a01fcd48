"""PNG (specification, third edition): row filters in NumPy, deflate by isa-l; and a scanner for the recipe.

Pillow filters and deflates a 256 x 256 picture at 29 MB/s per core at its fastest level, this encoder at 252 MB/s, with
files within 3 % of that size (assets/results/encoders.csv, made by packaging/encoder_times.py).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from explorer_app.exporting.formats.deflate import checksum, deflate_fast
from explorer_app.exporting.formats.picture_format import Compression
from explorer_app.exporting.formats.scan import PictureScan, RecipeError
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

SIGNATURE = b"\x89PNG\r\n\x1a\n"

KEYWORD = "latentloom"
"""Keyword of the iTXt chunk that holds the recipe."""

_MAX_CHUNKS = 100_000
_MAX_HEAD = 1024
"""Keyword, language and translated keyword of a text chunk."""

_TRAILER = b"\x00\x00\x00\x00IEND\xaeB`\x82"

_SMALL_ZLIB_LEVEL = 6
_MEMORY_LEVEL = 9
_UP = 2
_METRES_PER_INCH, _PER_METRE = 0.0254, 1
_COLOUR_TYPES = {3: 2, 4: 6}
"""Colour type of RGB and RGBA, by the number of channels."""


def encode_png(
    samples: NDArray[Any],
    text: str,
    *,
    channels: Sequence[int] = (0, 1, 2),
    compression: Compression = "fast",
    dpi: int | None = None,
) -> bytes:
    """Return a PNG with one iTXt chunk. Equal arguments give equal bytes with the same version of the deflate library.

    Parameters
    ----------
    samples
        (height, width, n) uint8 or uint16.
    text
        The recipe: ASCII.
    channels
        Which of the n samples of a pixel the file stores, in its order: three for RGB, four for RGBA.
    dpi
        Pixels an inch, in a pHYs chunk; None for none.
    """
    height, width = samples.shape[:2]
    sample_nbytes = samples.dtype.itemsize
    if sample_nbytes == 2:
        samples = np.ascontiguousarray(samples.astype(">u2")).view(np.uint8)
    places = [channel * sample_nbytes + byte for channel in channels for byte in range(sample_nbytes)]
    if compression == "fast":
        data = deflate_fast(_filtered_up(samples, places))
    else:
        # The strategy for filtered data gains 5 %: small differences are coded alone more often than by matches.
        deflate = zlib.compressobj(_SMALL_ZLIB_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS, _MEMORY_LEVEL, zlib.Z_FILTERED)
        data = deflate.compress(_filtered_by_row(samples[..., places]).data) + deflate.flush()
    head = struct.pack(">IIBBBBB", width, height, 8 * sample_nbytes, _COLOUR_TYPES[len(channels)], 0, 0, 0)
    note = KEYWORD.encode("latin-1") + b"\0\0\0\0\0" + text.encode("ascii")
    per_metre = 0 if dpi is None else round(dpi / _METRES_PER_INCH)
    density = () if dpi is None else (png_chunk(b"pHYs", struct.pack(">IIB", per_metre, per_metre, _PER_METRE)),)
    parts = (
        png_chunk(b"IHDR", head),
        *density,
        png_chunk(b"iTXt", note),
        png_chunk(b"IDAT", data),
        png_chunk(b"IEND", b""),
    )
    return b"".join((SIGNATURE, *(piece for part in parts for piece in part)))


def png_chunk(kind: bytes, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a chunk in three parts, so that its data is not copied: length and kind, data, checksum."""
    return struct.pack(">I", len(data)) + kind, data, struct.pack(">I", checksum(data, checksum(kind)))


def _filtered_up(samples: NDArray[np.uint8], places: Sequence[int]) -> NDArray[np.uint8]:
    """Return rows with filter type "up": every byte less the one above. (height, 1 + width * len(places)).

    The difference is taken in the order of the input, where it is one pass over contiguous memory.
    """
    height, width = samples.shape[:2]
    differences = np.empty_like(samples)
    differences[0] = samples[0]
    np.subtract(samples[1:], samples[:-1], out=differences[1:])
    rows = np.empty((height, 1 + width * len(places)), np.uint8)
    rows[:, 0] = _UP
    pixels = np.lib.stride_tricks.as_strided(rows[:, 1:], (height, width, len(places)), (rows.shape[1], len(places), 1))
    for position, place in enumerate(places):
        pixels[..., position] = differences[..., place]
    return rows


def _filtered_by_row(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return rows, each with the filter whose bytes, as signed numbers, have the smallest sum of magnitudes.

    That is the heuristic of the specification, section 12.7.

    Parameters
    ----------
    pixels
        (height, width, bytes of a pixel).
    """
    height, width, size = pixels.shape
    here = np.ascontiguousarray(pixels).reshape(height, width * size).astype(np.int16)
    left = np.zeros_like(here)
    left[:, size:] = here[:, :-size]
    above = np.zeros_like(here)
    above[1:] = here[:-1]
    corner = np.zeros_like(here)
    corner[1:, size:] = here[:-1, :-size]
    filtered = (here, here - left, here - above, here - (left + above) // 2, here - _paeth(left, above, corner))
    candidates = np.stack([item.astype(np.uint8) for item in filtered])
    costs = np.abs(candidates.view(np.int8).astype(np.int16)).sum(axis=2, dtype=np.int64)
    best = costs.argmin(axis=0)
    rows = np.empty((height, 1 + width * size), np.uint8)
    rows[:, 0] = best
    rows[:, 1:] = candidates[best, np.arange(height)]
    return rows


def _paeth(left: NDArray[np.int16], above: NDArray[np.int16], corner: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return the neighbour that is nearest to left + above - corner (section 9.4)."""
    to_left = np.abs(above - corner)
    to_above = np.abs(left - corner)
    to_corner = np.abs(left + above - 2 * corner)
    return np.where(
        (to_left <= to_above) & (to_left <= to_corner), left, np.where(to_above <= to_corner, above, corner)
    )


def scan_png(file: BinaryIO, nbytes: int, max_text: int) -> PictureScan:
    """Implements `Scanner`. Only chunk headers and small chunks are read (PNG specification, sections 5 and 11)."""
    keyword = KEYWORD.encode("latin-1")
    file.seek(len(SIGNATURE))
    width = height = 0
    text: str | None = None
    problem = ""
    has_pixels = is_whole = False
    position = len(SIGNATURE)
    for _ in range(_MAX_CHUNKS):
        head = file.read(8)
        if len(head) < 8:
            break
        length, kind = int.from_bytes(head[:4], "big"), head[4:]
        end = position + 8 + length + 4
        if end > nbytes or not kind.isalpha():
            break
        if kind == b"IEND":
            is_whole = has_pixels and width > 0 and end == nbytes and head + file.read(4) == _TRAILER
            break
        if kind == b"IHDR" and length == 13:
            data = _checked(file, kind, length)
            if data is not None:
                width, height = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
        elif kind == b"iTXt" and text is None and _starts_with(file, keyword + b"\0", length):
            try:
                text = _international_text(file, len(keyword) + 1, length, max_text)
            except RecipeError as error:
                problem = problem or str(error)
        has_pixels = has_pixels or kind == b"IDAT"
        position = end
        file.seek(position)
    return PictureScan(width, height, text, is_whole, "" if text is not None else problem)


def _checked(file: BinaryIO, kind: bytes, length: int) -> bytes | None:
    """Return a chunk's data if its checksum is right."""
    data = file.read(length)
    stored = int.from_bytes(file.read(4), "big")
    return data if checksum(data, checksum(kind)) == stored else None


def _starts_with(file: BinaryIO, keyword: bytes, length: int) -> bool:
    """Return whether a chunk's data starts with a keyword. The file stays at the start of the data."""
    start = file.read(min(length, len(keyword)))
    file.seek(-len(start), os.SEEK_CUR)
    return start == keyword


def _international_text(file: BinaryIO, start: int, length: int, max_nbytes: int) -> str:
    """Return the text of an iTXt chunk; after the keyword follow flag, method, language, translated keyword, text.

    Raises
    ------
    RecipeError
        If the text is too long or damaged.
    """
    if length > max_nbytes + _MAX_HEAD:
        raise RecipeError.too_long(max_nbytes)
    data = _checked(file, b"iTXt", length)
    parts = [] if data is None else data[start + 2 :].split(b"\0", 2)
    if data is None or len(parts) != 3:
        raise RecipeError.damaged()
    text = parts[2]
    try:
        if data[start] == 1:
            # We write plain text; programs that optimise PNGs may have compressed it since.
            text = zlib.decompressobj().decompress(text, max_nbytes + 1)
        if len(text) > max_nbytes:
            raise RecipeError.too_long(max_nbytes)
        return text.decode("utf-8")
    except (zlib.error, UnicodeDecodeError):
        raise RecipeError.damaged() from None
