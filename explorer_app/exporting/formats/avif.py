"""AVIF (ISO/IEC 23000-22) by Pillow; the recipe is an XMP item."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.formats.scan import PictureScan, RecipeError
from explorer_app.exporting.formats.webp import exif_of, text_of_xmp, xmp_packet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SPEED = 8
"""0 to 10: below 8 a picture takes twice as long and gets 5 % smaller."""

_MAX_BOXES = 10_000
_MAX_META_NBYTES = 1 << 20
_PACKET_START = b"<?xpacket begin"


def has_avif() -> bool:
    """Return whether this Pillow encodes AVIF; its wheels do from 11.3 on."""
    from PIL import features

    return bool(features.check("avif"))


def encode_avif(samples: NDArray[np.uint8], text: str, quality: int, dpi: int | None = None) -> bytes:
    """Return an AVIF file without chroma subsampling.

    Parameters
    ----------
    samples
        (height, width, 3 or 4) R, G, B and perhaps A.
    text
        The recipe: ASCII.
    quality
        1 to 100.
    dpi
        Pixels an inch, as EXIF; None says nothing.

    Raises
    ------
    PictureError
        If Pillow was built without AVIF.
    """
    from PIL import Image

    if not has_avif():
        raise PictureError("This Pillow was built without AVIF; install one of its wheels, or choose WebP.")
    target = io.BytesIO()
    Image.fromarray(samples).save(
        target,
        "AVIF",
        quality=quality,
        speed=_SPEED,
        subsampling="4:4:4",
        max_threads=1,  # pictures are encoded side by side
        xmp=xmp_packet(text),
        **({} if dpi is None else {"exif": exif_of(dpi)}),
    )
    return target.getvalue()


def scan_avif(file: BinaryIO, nbytes: int, max_text: int) -> PictureScan:
    """Implements `Scanner`. Checks the top-level boxes and the items' extents (ISO/IEC 14496-12, 8.11)."""
    width = height = 0
    text: str | None = None
    problem = ""
    end = 0
    kinds = set()
    for kind, start, stop in _boxes(file, nbytes):
        kinds.add(kind)
        end = stop
        file.seek(start)
        if kind == b"meta":
            meta = file.read(min(stop - start, _MAX_META_NBYTES))
            place = meta.find(b"ispe")
            if 0 <= place <= len(meta) - 16:
                width = int.from_bytes(meta[place + 8 : place + 12], "big")
                height = int.from_bytes(meta[place + 12 : place + 16], "big")
        elif kind == b"mdat" and text is None:
            packet = _find(file, start, stop)
            if packet is not None:
                file.seek(packet)
                try:
                    text = text_of_xmp(file, stop - packet, max_text)
                except RecipeError as error:
                    problem = str(error)
    is_whole = end == nbytes and kinds >= {b"ftyp", b"meta", b"mdat"} and width > 0
    return PictureScan(width, height, text, is_whole, "" if text is not None else problem)


def _boxes(file: BinaryIO, nbytes: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start of the content and end of each top-level box that is complete."""
    position = 0
    for _ in range(_MAX_BOXES):
        file.seek(position)
        head = file.read(16)
        if len(head) < 8:
            return
        length, kind, start = int.from_bytes(head[:4], "big"), head[4:8], position + 8
        if length == 1:
            length, start = int.from_bytes(head[8:16], "big"), position + 16
        stop = position + length
        if stop < start or stop > nbytes:
            return
        yield kind, start, stop
        position = stop


def _find(file: BinaryIO, start: int, stop: int) -> int | None:
    """Return where an XMP packet begins between two places, None if there is none."""
    step, overlap = 1 << 20, len(_PACKET_START) - 1
    for first in range(start, stop, step):
        file.seek(first)
        data = file.read(min(step + overlap, stop - first))
        place = data.find(_PACKET_START)
        if place >= 0:
            return first + place
    return None
