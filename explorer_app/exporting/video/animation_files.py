"""GIF and APNG files put together from files of single frames, one frame in memory at a time; the header of a WebP.

Nothing is decoded: a GIF frame is moved with its colour table, and an APNG frame as its deflated rows. Sources: GIF89a
specification, sections 17 to 26; PNG specification (third edition), section 11.3.6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from explorer_app.exporting.formats.png import SIGNATURE, png_chunk

_Item = TypeVar("_Item")

_MOST_DELAY = 0xFFFF
"""Both formats store the time of a frame in 16 bits."""

_EXTENSION, _IMAGE = 0x21, 0x2C
_LOCAL_TABLE = _GLOBAL_TABLE = 0x80
_TABLE_SIZE = 0x07
_KEEP = 1 << 2
"""Disposal method: the next frame is drawn over this one."""
_LOOP_FOREVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_MS = 1000
_WEBP_FLAGS, _WEBP_ALPHA = 20, 0x10
"""Place of a WebP's flags, and the one for alpha."""


@dataclass(frozen=True)
class _GifFrame:
    """A picture of a GIF.

    Attributes
    ----------
    screen
        Width and height, as stored.
    size_bits
        The table has 2 << size_bits colours.
    place
        Left, top, width and height, as stored.
    """

    screen: bytes
    size_bits: int
    table: bytes
    place: bytes
    data: bytes


def write_gif(frames: Sequence[Path], delays: Sequence[int], comment: str, file: BinaryIO) -> None:
    """Write an endless GIF from GIFs of one frame each.

    Parameters
    ----------
    delays
        How long each frame is shown, in hundredths of a second.
    comment
        ASCII, at most 255 characters.
    """
    for place, (frame, delay) in enumerate(_merged(map(_gif_frame, frames), delays)):
        if place == 0:
            screen = frame.screen + bytes((_GLOBAL_TABLE | frame.size_bits, 0, 0))
            note = b"\x21\xfe" + bytes((len(comment),)) + comment.encode("ascii") + b"\0"
            file.write(b"GIF89a" + screen + frame.table + _LOOP_FOREVER + note)
        file.write(struct.pack("<BBBBHBB", _EXTENSION, 0xF9, 4, _KEEP, delay, 0, 0))
        file.write(bytes((_IMAGE,)) + frame.place + bytes((_LOCAL_TABLE | frame.size_bits,)))
        file.write(frame.table + frame.data)
    file.write(b";")


def _gif_frame(path: Path) -> _GifFrame:
    """Return the picture of a GIF that has one, with a global colour table."""
    data = path.read_bytes()
    size_bits = data[10] & _TABLE_SIZE
    end = 13 + (6 << size_bits)
    table = data[13:end]
    while data[end] == _EXTENSION:
        end += 2
        while data[end]:
            end += 1 + data[end]
        end += 1
    if data[end] != _IMAGE or data[end + 9] or data[-1:] != b";":
        raise ValueError(f"{path.name} is no GIF of one frame, not interlaced, with a global colour table alone")
    return _GifFrame(data[6:10], size_bits, table, data[end + 1 : end + 9], data[end + 10 : -1])


def write_apng(frames: Sequence[Path], delays_ms: Sequence[int], comment: str, file: BinaryIO) -> None:
    """Write an endless APNG from PNGs of one size and one kind of pixels.

    Parameters
    ----------
    delays_ms
        How long each frame is shown.
    comment
        Latin-1.
    """
    head = b""
    count = sequence = 0
    place_of_count = 0
    for place, ((here, rows), delay) in enumerate(_merged(map(_png_frame, frames), delays_ms)):
        if place == 0:
            head = here
            file.write(SIGNATURE)
            _write_chunk(file, b"IHDR", head)
            place_of_count = file.tell()
            _write_chunk(file, b"acTL", struct.pack(">II", 1, 0))
            _write_chunk(file, b"tEXt", b"Comment\0" + comment.encode("latin-1"))
        elif here != head:
            raise ValueError(f"{frames[place].name} has another size or kind of pixels")
        width, height = struct.unpack(">II", head[:8])
        control = struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, delay, _MS, 0, 0)
        _write_chunk(file, b"fcTL", control)
        sequence += 1
        if place == 0:
            _write_chunk(file, b"IDAT", rows)
        else:
            _write_chunk(file, b"fdAT", struct.pack(">I", sequence) + rows)
            sequence += 1
        count = place + 1
    _write_chunk(file, b"IEND", b"")
    file.seek(place_of_count)
    _write_chunk(file, b"acTL", struct.pack(">II", count, 0))


def mark_webp_alpha(file: BinaryIO) -> None:
    """Say in the header of a WebP with metadata that it has alpha (RFC 9649, section 2.7).

    libwebp does not if all that is transparent lies outside the rectangles that it stores of frames, and then readers
    take the whole for opaque.
    """
    file.seek(_WEBP_FLAGS)
    flags = file.read(1)[0]
    file.seek(_WEBP_FLAGS)
    file.write(bytes([flags | _WEBP_ALPHA]))


def _write_chunk(file: BinaryIO, kind: bytes, data: bytes) -> None:
    for part in png_chunk(kind, data):
        file.write(part)


def _png_frame(path: Path) -> tuple[bytes, bytes]:
    """Return the header of a PNG and its deflated rows."""
    data = path.read_bytes()
    head, rows = b"", []
    end = len(SIGNATURE)
    while (kind := data[end + 4 : end + 8]) != b"IEND":
        start, end = end + 8, end + 12 + int.from_bytes(data[end : end + 4], "big")
        if not kind or end > len(data):
            raise ValueError(f"{path.name} is cut off")
        if kind == b"IHDR":
            head = data[start : end - 4]
        elif kind == b"IDAT":
            rows.append(data[start : end - 4])
    return head, b"".join(rows)


def _merged(items: Iterable[_Item], delays: Sequence[int]) -> Iterator[tuple[_Item, int]]:
    """Pair items with their delays. Equal neighbours become one with the sum of theirs, if that can be stored."""
    pairs = zip(items, delays, strict=True)
    last, time = next(pairs)
    for item, delay in pairs:
        if item == last and time + delay <= _MOST_DELAY:
            time += delay
        else:
            yield last, time
            last, time = item, delay
    yield last, time
