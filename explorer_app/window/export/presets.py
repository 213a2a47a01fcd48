"""Export presets, their formats and sizes: pure functions."""

from __future__ import annotations

import re
from typing import Literal

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import FORMATS, MAX_SIDE_PX, Size, pixels_of_print
from explorer_app.exporting.sheet import SHEET_FORMATS
from explorer_app.exporting.video.video_format import CODECS
from gpu_backend import dataclass

PresetName = Literal["still", "sheet", "sequence", "web", "editing", "gif"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A purpose of an export.

    Attributes
    ----------
    label, tip
        Text and tooltip of its button.
    formats
        Names in `FORMATS`, or in `CODECS` if `is_video`; the first is the default.
    size
        The default size as text; empty for the network's resolution.
    """

    label: str
    tip: str
    formats: tuple[str, ...]
    is_video: bool = True
    size: str = ""


PRESETS: dict[PresetName, Preset] = {
    "still": Preset("Still", "One picture: what the canvas shows now.", tuple(FORMATS), is_video=False),
    "sheet": Preset(
        "Sheet",
        "Many pictures on one sheet, to compare or to print; each keeps its recipe.",
        SHEET_FORMATS,
        is_video=False,
    ),
    "sequence": Preset("Sequence", "One file per frame, for editing programs.", tuple(FORMATS), is_video=False),
    "web": Preset("Video for the web", "One file that browsers and phones play.", ("av1", "vp9", "h264", "h265")),
    "editing": Preset("Video for editing", "One file of high quality for editing programs.", ("prores", "prores4444")),
    "gif": Preset("GIF", "A short animation that plays everywhere.", ("gif", "webp", "apng")),
}

SIZES = ("512 × 512", "1080 × 1080", "1920 × 1080", "1080 × 1920", "2048 × 2048", "3840 × 2160")
PRINT_SIZES = ("210 × 297 mm", "297 × 420 mm", "8 × 10 in")

PRINT_DPI = 300
"""Usual for photographs in print."""


def format_label(name: str, *, is_video: bool) -> str:
    """Return the label of a format: "AV1 (.webm)"."""
    facts = CODECS[name] if is_video else FORMATS[name]  # type: ignore[index]
    return f"{facts.label} ({facts.endings[0]})"


def format_about(name: str, *, is_video: bool) -> str:
    """Return a description of a format's use."""
    return (CODECS[name] if is_video else FORMATS[name]).about  # type: ignore[index]


def parse_size(text: str, dpi: int = PRINT_DPI) -> Size | None:
    """Parse a size such as ``1920 × 1080``, ``512`` or ``210 × 297 mm``; None for a text that begins with a letter.

    `dpi` is the number of pixels an inch of a size in print.

    Raises
    ------
    ValueError
        With a sentence for the user, if the text is not a valid size.
    """
    text = text.strip()
    if not text or text[0].isalpha():
        return None
    try:
        in_print = pixels_of_print(text.replace(",", "x"), dpi)
    except ExportError as error:
        raise ValueError(error.sentence) from error
    if in_print is not None:
        return in_print
    match = re.fullmatch(r"(\d{1,5})(?:\s*[x×,]\s*(\d{1,5}))?(?:\s*px)?", text, re.IGNORECASE | re.ASCII)
    sides = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not all(1 <= side <= MAX_SIDE_PX for side in sides):
        raise ValueError(
            f"A size is like 512, 1920 × 1080 or 210 × 297 mm, up to {MAX_SIDE_PX:,} pixels, not “{text}”."
        )
    return sides
