"""How much disk an export will take, from pictures of the bundled model; right within a factor of about two."""

from __future__ import annotations

import shutil
from pathlib import Path

from explorer_app.exporting.formats.picture_format import FormatName, PictureFormat, Size
from explorer_app.exporting.video.video_format import CodecName, VideoFormat

_PICTURE_NBYTES: dict[FormatName, float] = {
    "png": 1.4,
    "png16": 4.8,
    "jpeg": 0.35,
    "webp": 0.1,
    "avif": 0.09,
    "tiff": 1.5,
    "exr": 11.9,
}
"""Bytes a pixel at the usual quality."""

_VIDEO_NBYTES: dict[CodecName, float] = {
    "av1": 0.03,
    "vp9": 0.05,
    "prores": 0.48,
    "prores4444": 0.9,
    "h264": 0.045,
    "h265": 0.04,
    "gif": 0.7,
    "apng": 1.4,
    "webp": 0.055,
}
"""Bytes a pixel of a frame at the usual quality."""

_ALPHA_NBYTES: dict[FormatName | CodecName, float] = {
    "png": 0.35,
    "png16": 1.5,
    "webp": 0.1,
    "avif": 0.06,
    "tiff": 0.35,
    "exr": 3.9,
    "vp9": 0.002,
    "prores4444": 0.18,
    "apng": 0.35,
}
"""Bytes a pixel that alpha adds: a cut-out figure with soft edges. WebP stores alpha exactly at every quality."""

_SMALL = 0.86
_DOUBLING = 15
"""So much more quality doubles a file, roughly."""


def picture_nbytes(form: PictureFormat, size: Size, *, has_alpha: bool = False) -> float:
    """Return about how many bytes one picture takes; a background leaves no alpha to store."""
    share = _SMALL if form.compression == "small" else 1.0
    alpha = _ALPHA_NBYTES.get(form.name, 0.0) if has_alpha and form.background is None else 0.0
    colours = _PICTURE_NBYTES[form.name] * _factor(form.quality, form.facts.default_quality)
    return share * (colours + alpha) * size[0] * size[1]


def video_nbytes(form: VideoFormat, size: Size, frames: int, *, has_alpha: bool = False) -> float:
    """Return about how many bytes a video takes."""
    alpha = _ALPHA_NBYTES.get(form.codec, 0.0) if has_alpha and form.facts.keeps_alpha else 0.0
    colours = _VIDEO_NBYTES[form.codec] * _factor(form.quality, form.facts.default_quality)
    return (colours + alpha) * size[0] * size[1] * frames


def nbytes_text(nbytes: float) -> str:
    """Return an estimate for users: "40 kB", "1.2 MB", "3.4 GB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}" if nbytes < 10 * size else f"{nbytes / size:.0f} {unit}"
    return f"{max(1, round(nbytes / 1e3))} kB"


def shortage_text(folder: Path, nbytes: float) -> str:
    """Return a sentence for users if the disk of a folder, which may be made later, has less room; otherwise empty."""
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    try:
        free = shutil.disk_usage(there).free
    except OSError:
        return ""
    return f"Only {nbytes_text(free)} are free on this disk." if free < nbytes else ""


def _factor(quality: int | None, usual: int | None) -> float:
    return 1.0 if quality is None or usual is None else float(2.0 ** ((quality - usual) / _DOUBLING))
