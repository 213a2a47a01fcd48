"""WebP (RFC 9649) by Pillow; the recipe is in the XMP chunk."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, BinaryIO

from explorer_app.exporting.formats.scan import PictureScan, RecipeError, recipe_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOSSLESS_QUALITY = 100
"""At this quality no byte of a pixel changes."""

_METHOD = 2
"""Effort, 0 to 6: above 2 a picture takes twice as long and gets 3 % smaller."""

_X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT, _INCH = 282, 283, 296, 2
_MAX_CHUNKS = 1000
_PACKET = (
    '<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:ll="urn:latentloom:picture"><ll:recipe>{}</ll:recipe></rdf:Description>'
    '</rdf:RDF></x:xmpmeta><?xpacket end="r"?>'
)
_RECIPE = re.compile(rb"<ll:recipe>([^<]*)</ll:recipe>")
_START = b"<ll:recipe>"
_GROWTH = 5
"""Escaping makes a text at most this many times as long."""


def encode_webp(samples: NDArray[np.uint8], text: str, quality: int, dpi: int | None = None) -> bytes:
    """Return a WebP file.

    Parameters
    ----------
    samples
        (height, width, 3 or 4) R, G, B and perhaps A.
    text
        The recipe: ASCII.
    quality
        1 to 99; 100 is lossless.
    dpi
        Pixels an inch, as EXIF; None says nothing.
    """
    from PIL import Image

    target = io.BytesIO()
    Image.fromarray(samples).save(
        target,
        "WEBP",
        quality=75 if quality == LOSSLESS_QUALITY else quality,
        lossless=quality == LOSSLESS_QUALITY,
        exact=True,
        method=_METHOD,
        xmp=xmp_packet(text),
        **({} if dpi is None else {"exif": exif_of(dpi)}),
    )
    return target.getvalue()


def scan_webp(file: BinaryIO, nbytes: int, max_text: int) -> PictureScan:
    """Implements `Scanner`. Chunks of the RIFF container are looked at."""
    width = height = 0
    text: str | None = None
    problem = ""
    has_pixels = False
    head = file.read(12)
    end = 8 + int.from_bytes(head[4:8], "little")
    position = 12
    for _ in range(_MAX_CHUNKS):
        file.seek(position)
        head = file.read(8)
        length = int.from_bytes(head[4:], "little")
        if len(head) < 8 or position + 8 + length > nbytes:
            break
        if head[:4] == b"VP8X" and length >= 10:
            data = file.read(10)
            width = 1 + int.from_bytes(data[4:7], "little")
            height = 1 + int.from_bytes(data[7:10], "little")
        elif head[:4] == b"XMP " and text is None:
            try:
                text = text_of_xmp(file, length, max_text)
            except RecipeError as error:
                problem = str(error)
        has_pixels = has_pixels or head[:4] in (b"VP8 ", b"VP8L", b"ANMF")
        position += 8 + length + length % 2
    is_whole = has_pixels and width > 0 and position == end == nbytes
    return PictureScan(width, height, text, is_whole, "" if text is not None else problem)


def xmp_packet(text: str) -> bytes:
    """Return an XMP packet that holds a recipe."""
    return _PACKET.format(_escaped(text)).encode("ascii")


def exif_of(dpi: int) -> bytes:
    """Return EXIF with the resolution in pixels per inch."""
    from PIL import Image

    exif = Image.Exif()
    exif[_X_RESOLUTION] = exif[_Y_RESOLUTION] = float(dpi)
    exif[_RESOLUTION_UNIT] = _INCH
    return exif.tobytes()


def text_of_xmp(file: BinaryIO, length: int, max_text: int) -> str | None:
    """Return the recipe of an XMP packet that begins at the file's position, None without one. Raises RecipeError."""
    data = file.read(min(length, _GROWTH * max_text + len(_PACKET)))
    match = _RECIPE.search(data)
    if match is None:
        if _START in data:
            raise RecipeError.too_long(max_text) if len(data) < length else RecipeError.damaged()
        return None
    return recipe_text(_unescaped(match[1]), max_text)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unescaped(data: bytes) -> bytes:
    return data.replace(b"&lt;", b"<").replace(b"&gt;", b">").replace(b"&amp;", b"&")
