"""Encoding a frame in any picture format, and scanning a file of any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.formats.avif import encode_avif, scan_avif
from explorer_app.exporting.formats.exr import SIGNATURE as EXR_SIGNATURE, encode_exr, scan_exr
from explorer_app.exporting.formats.jpeg import SIGNATURE as JPEG_SIGNATURE, encode_jpeg, scan_jpeg
from explorer_app.exporting.formats.picture_format import PictureFormat, Size, check_sides
from explorer_app.exporting.formats.png import SIGNATURE as PNG_SIGNATURE, encode_png, scan_png
from explorer_app.exporting.formats.resize import over_background, resized, values_over_background
from explorer_app.exporting.formats.scan import PictureScan, Scanner, scan_file
from explorer_app.exporting.formats.tiff import SIGNATURE as TIFF_SIGNATURE, encode_tiff, scan_tiff
from explorer_app.exporting.formats.webp import encode_webp, scan_webp
from gpu_backend import Frame, LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

_SCANNERS: tuple[tuple[bytes, Scanner], ...] = (
    (PNG_SIGNATURE, scan_png),
    (JPEG_SIGNATURE, scan_jpeg),
    (TIFF_SIGNATURE, scan_tiff),
    (EXR_SIGNATURE, scan_exr),
)
_EXPECTED = "a PNG, JPEG, WebP, AVIF, TIFF or EXR file"


def encode_frame(frame: Frame, text: str, form: PictureFormat, size: Size | None = None) -> bytes:
    """Return a file with the picture of a frame and a recipe. Equal arguments give equal bytes.

    Parameters
    ----------
    text
        The recipe's JSON, in ASCII.
    size
        Width and height to scale to; what does not fit their shape is cropped on both sides. None keeps the frame's.

    Raises
    ------
    PictureError
        If the format stores more than bytes, and the frame lacks the floats.
    ExportError
        If a side is longer than the format can store.
    """
    check_sides(form.facts.label, form.facts.max_side_px, size or (frame.width, frame.height))
    if form.facts.needs_values:
        values = _values(frame)
        values = values if size is None else resized(values, size)
        if form.background is not None and values.shape[2] == 4:
            values = values_over_background(values, form.background)
        if form.name == "exr":
            return encode_exr(values, text, form.dpi)
        samples = np.rint(values.clip(0.0, 1.0) * 65535.0).astype(np.uint16)
        return encode_png(samples, text, channels=range(values.shape[2]), compression=form.compression, dpi=form.dpi)
    pixels = frame.pixels if size is None else resized(frame.pixels, size)
    has_alpha = frame.has_alpha
    background = "white" if form.name == "jpeg" and form.background is None else form.background
    if has_alpha and background is not None:
        pixels, has_alpha = over_background(pixels, background), False
    if form.name == "jpeg":
        return encode_jpeg(pixels, text, form.chosen_quality, form.dpi)
    order = (2, 1, 0, 3) if has_alpha else (2, 1, 0)
    if form.name == "png":
        return encode_png(pixels, text, channels=order, compression=form.compression, dpi=form.dpi)
    samples_of_bytes = np.ascontiguousarray(pixels[..., list(order)])
    if form.name == "webp":
        return encode_webp(samples_of_bytes, text, form.chosen_quality, form.dpi)
    if form.name == "avif":
        return encode_avif(samples_of_bytes, text, form.chosen_quality, form.dpi)
    return encode_tiff(samples_of_bytes, text, form.dpi)


def scan_picture(path: Path, max_text: int) -> PictureScan:
    """Return the recipe in a picture file, whatever its extension.

    Parameters
    ----------
    max_text
        Longest recipe in bytes; a longer one is not returned.

    Raises
    ------
    PictureError
        If the file is missing, not a regular file, unreadable, or of another format.
    """
    return scan_file(path, _scanner_for, _EXPECTED, max_text)


def _scanner_for(head: bytes) -> Scanner | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return scan_webp
    if head[4:12] == b"ftypavif":
        return scan_avif
    return next((scanner for signature, scanner in _SCANNERS if head.startswith(signature)), None)


def _values(frame: Frame) -> NDArray[Any]:
    """Return the picture as floats, (height, width, 3 or 4), nominally 0..1; a tapped layer has bytes only.

    As in bytes, the first of any other number of channels is shown as grey.
    """
    if frame.image is not None:
        image = frame.image if frame.image.shape[2] in (3, 4) else np.repeat(frame.image[..., :1], 3, axis=2)
        return image * np.float32(0.5) + np.float32(0.5)
    if frame.request.tap is None:
        raise PictureError("This format needs the network's output as floats, which the frame lacks; render it again.")
    return frame.to_rgb().astype(np.float32) / np.float32(255.0)
