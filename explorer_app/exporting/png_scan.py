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
_MAX_HEAD = 1024
"""Keyword, language and translated keyword of a text chunk."""

_TRAILER = b"\x00\x00\x00\x00IEND\xaeB`\x82"


@dataclass(frozen=True, slots=True)
class PngScan:
    """What the chunks say.

    Attributes
    ----------
    width, height
        From the header, in pixels; 0 without one.
    text
        Text of the first iTXt chunk with the wanted keyword, None without one, or if it cannot be read.
    text_problem
        Why the text cannot be read, as the end of a sentence; empty if there is none, or it was read.
    is_whole
        The chunks follow each other without a gap, there are pixels, and the trailer is the end of the file.
    """

    width: int
    height: int
    text: str | None
    is_whole: bool
    text_problem: str = ""


class _TextError(Exception):
    """A text chunk with the wanted keyword cannot be read; the message is the end of a sentence."""


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
                text = _international_text(file, len(keyword) + 1, length, max_text_nbytes)
            except _TextError as error:
                problem = problem or str(error)
        has_pixels = has_pixels or kind == b"IDAT"
        position = end
        file.seek(position)
    return PngScan(width, height, text, is_whole, "" if text is not None else problem)


def _checked(file: BinaryIO, kind: bytes, length: int) -> bytes | None:
    """Return a chunk's data if its checksum is right."""
    data = file.read(length)
    checksum = int.from_bytes(file.read(4), "big")
    return data if zlib.crc32(data, zlib.crc32(kind)) == checksum else None


def _starts_with(file: BinaryIO, keyword: bytes, length: int) -> bool:
    """Return whether a chunk's data starts with a keyword. The file stays at the start of the data."""
    start = file.read(min(length, len(keyword)))
    file.seek(-len(start), os.SEEK_CUR)
    return start == keyword


def _international_text(file: BinaryIO, start: int, length: int, max_nbytes: int) -> str:
    """Return the text of an iTXt chunk; after the keyword follow flag, method, language, translated keyword, text.

    Raises
    ------
    _TextError
        If the text is too long or damaged.
    """
    too_long = f"is longer than the {max_nbytes / (1 << 20):g} MB that a recipe may have"
    if length > max_nbytes + _MAX_HEAD:
        raise _TextError(too_long)
    data = _checked(file, b"iTXt", length)
    parts = [] if data is None else data[start + 2 :].split(b"\0", 2)
    if data is None or len(parts) != 3:
        raise _TextError("is damaged")
    text = parts[2]
    try:
        if data[start] == 1:
            # We write plain text; programs that optimise PNGs may have compressed it since.
            text = zlib.decompressobj().decompress(text, max_nbytes + 1)
        if len(text) > max_nbytes:
            raise _TextError(too_long)
        return text.decode("utf-8")
    except (zlib.error, UnicodeDecodeError):
        raise _TextError("is damaged") from None
