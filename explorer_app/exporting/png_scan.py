"""Looking into a PNG without decoding its pixels (PNG specification, third edition, sections 5 and 11).

Only chunk headers and small chunks are read; the rest is skipped by seeking, so that a file made to exhaust memory
or time meets bounds everywhere.
"""

from __future__ import annotations

import os
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from explorer_app.exporting.errors import PictureError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MAX_CHUNKS = 100_000
_TRAILER = b"\x00\x00\x00\x00IEND\xaeB`\x82"


@dataclass(frozen=True, slots=True)
class PngScan:
    """What the chunks say.

    Attributes
    ----------
    width, height
        From the header, in pixels; 0 without one.
    text
        Text of the first iTXt chunk with the wanted keyword, None without one.
    is_whole
        The chunks follow each other without a gap, there are pixels, and the trailer is the end of the file.
    """

    width: int
    height: int
    text: str | None
    is_whole: bool


def scan_png(path: Path, keyword: str, max_text_nbytes: int) -> PngScan:
    """Read a PNG's structure and one text.

    Raises
    ------
    PictureError
        If the file is missing, not a regular file, unreadable or no PNG.
    """
    try:
        # Asked before opening: opening a pipe would wait for its other end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise PictureError(f"A picture should be a PNG file, but {path} is a folder or a device.")
        with path.open("rb") as file:
            if file.read(len(SIGNATURE)) != SIGNATURE:
                raise PictureError(f"A picture should be a PNG file, but {path.name} starts like something else.")
            return _scan(file, os.fstat(file.fileno()).st_size, keyword.encode("latin-1"), max_text_nbytes)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PictureError(f"The picture {path} cannot be opened ({reason}).", details=str(error)) from error


def _scan(file: BinaryIO, nbytes: int, keyword: bytes, max_text_nbytes: int) -> PngScan:
    width = height = 0
    text: str | None = None
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
        elif kind == b"iTXt" and text is None and length <= max_text_nbytes + 1024:
            data = _checked(file, kind, length)
            if data is not None and data.startswith(keyword + b"\0"):
                text = _international_text(data[len(keyword) + 1 :], max_text_nbytes)
        has_pixels = has_pixels or kind == b"IDAT"
        position = end
        file.seek(position)
    return PngScan(width, height, text, is_whole)


def _checked(file: BinaryIO, kind: bytes, length: int) -> bytes | None:
    """Return a chunk's data if its checksum is right."""
    data = file.read(length)
    checksum = int.from_bytes(file.read(4), "big")
    return data if zlib.crc32(data, zlib.crc32(kind)) == checksum else None


def _international_text(data: bytes, max_nbytes: int) -> str | None:
    """Return the text after the keyword of an iTXt chunk: flag, method, language, translated keyword, text."""
    parts = data[2:].split(b"\0", 2)
    if len(data) < 2 or len(parts) != 3:
        return None
    text = parts[2]
    if data[0] == 1:
        # We write plain text; programs that optimise PNGs may have compressed it since.
        try:
            text = zlib.decompressobj().decompress(text, max_nbytes + 1)
        except zlib.error:
            return None
    if len(text) > max_nbytes:
        return None
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return None
