"""The formats that a picture can be written in, and the choices that each of them has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args

from explorer_app.exporting.errors import ExportError
from gpu_backend import dataclass

FormatName = Literal["png", "png16", "jpeg", "webp", "avif", "tiff", "exr"]

Compression = Literal["fast", "small"]
"""Of PNG. ``fast``: the filter "up" and isa-l. ``small``: the best filter for each row and zlib, about 15 % smaller."""

Background = str
"""What is behind the transparent parts of a picture: "white", "black", "checkerboard", or a colour like "#rrggbb"."""

Size = tuple[int, int]
"""Width and height in pixels."""

MAX_DPI = 10_000

MAX_SIDE_PX = 16_384


@dataclass(frozen=True, slots=True)
class FormatFacts:
    """What is fixed for a format.

    Attributes
    ----------
    label, about
        For people: the name, and when to choose it.
    endings
        File name extensions; the first one is written.
    default_quality
        None if the format has no quality.
    needs_values
        It stores more than 8 bits a sample, so it takes `gpu_backend.Frame.image`.
    max_side_px
        Longest side that a file can have; None for more than any picture here has.
    """

    label: str
    about: str
    endings: tuple[str, ...]
    default_quality: int | None = None
    needs_values: bool = False
    max_side_px: int | None = None


MAX_WEBP_SIDE_PX = 16_383
_MAX_JPEG_SIDE_PX = 65_500

FORMATS: dict[FormatName, FormatFacts] = {
    "png": FormatFacts("PNG", "Exact, and read by every program.", (".png",)),
    "png16": FormatFacts("PNG 16 bit", "Exact, without bands after strong grading.", (".png",), needs_values=True),
    "jpeg": FormatFacts(
        "JPEG", "A quarter of the size of PNG at quality 95.", (".jpg", ".jpeg"), 95, max_side_px=_MAX_JPEG_SIDE_PX
    ),
    "webp": FormatFacts(
        "WebP", "Smaller than JPEG; quality 100 is exact.", (".webp",), 90, max_side_px=MAX_WEBP_SIDE_PX
    ),
    "avif": FormatFacts("AVIF", "The smallest files, for browsers of today; slow to write.", (".avif",), 80),
    "tiff": FormatFacts("TIFF", "Exact, for print and layout programs.", (".tif", ".tiff")),
    "exr": FormatFacts("EXR", "Linear light as floats, not clamped, for compositing.", (".exr",), needs_values=True),
}

BACKGROUNDS = ("white", "black", "checkerboard")

PICTURE_ENDINGS = tuple(dict.fromkeys(ending for facts in FORMATS.values() for ending in facts.endings))
"""What the name of a picture with a recipe may end in, in small letters."""


@dataclass(frozen=True, slots=True)
class PictureFormat:
    """How a picture is written.

    Attributes
    ----------
    quality
        1 to 100, of JPEG, WebP and AVIF; None for the format's usual one.
    compression
        Of PNG. It changes no pixel, so one sequence may contain files of both kinds.
    dpi
        Pixels an inch, as print and layout programs read them from the file; None says nothing.
    background
        What a network's transparent parts are put on; None keeps them transparent, and makes them white in a JPEG.
    """

    name: FormatName = "png"
    quality: int | None = None
    compression: Compression = "fast"
    dpi: int | None = None
    background: Background | None = None

    def __post_init__(self) -> None:
        if self.name not in FORMATS or self.compression not in get_args(Compression):
            raise ExportError(f"A picture's format is one of {', '.join(FORMATS)}, but is {str(self.name)[:20]!r}.")
        if self.quality is not None and self.facts.default_quality is None:
            raise ExportError(f"{self.facts.label} has no quality, because it is exact; leave the quality out.")
        if self.quality is not None and not 1 <= self.quality <= 100:
            raise ExportError(f"A quality must be 1 to 100, not {self.quality}.")
        if self.dpi is not None and not 1 <= self.dpi <= MAX_DPI:
            raise ExportError(f"A picture has 1 to {MAX_DPI:,} pixels an inch, but {self.dpi} came.")
        if self.background is not None and not is_background(self.background):
            raise ExportError(
                f"A background is {', '.join(BACKGROUNDS)} or a colour like #rrggbb, but {self.background[:20]!r} came."
            )

    @property
    def facts(self) -> FormatFacts:
        """What is fixed for the format."""
        return FORMATS[self.name]

    @property
    def ending(self) -> str:
        """What file names end in, with the dot."""
        return self.facts.endings[0]

    @property
    def chosen_quality(self) -> int:
        """The quality, or the format's usual one; 0 for a format without."""
        return self.facts.default_quality or 0 if self.quality is None else self.quality

    @property
    def without_compression(self) -> PictureFormat:
        """What changes pixels: formats that agree here give equal pictures."""
        return PictureFormat(self.name, self.chosen_quality or None, dpi=self.dpi, background=self.background)


def check_sides(label: str, max_side_px: int | None, size: Size) -> None:
    """Raise ExportError if a side is longer than a format, by its label, can store."""
    if max_side_px is not None and max(size) > max_side_px:
        raise ExportError(
            f"A {label} file has sides of up to {max_side_px:,} pixels, but this one would have "
            f"{size[0]:,} × {size[1]:,}; choose a smaller size or another format."
        )


def is_background(text: str) -> bool:
    """Return whether a text names a background."""
    return text in BACKGROUNDS or re.fullmatch("#[0-9a-fA-F]{6}", text) is not None


def pixels_of_print(text: str, dpi: int) -> Size | None:
    """Return the pixels of a size in print, such as ``210x297mm`` or ``8 × 10 in``; None if the text is something else.

    Raises
    ------
    ExportError
        If the picture would be too large or too small.
    """
    number = r"([0-9]{1,5}(?:\.[0-9]{1,3})?)"
    match = re.fullmatch(rf"{number}(?:\s*[x×]\s*{number})?\s*(mm|cm|in)", text.strip(), re.ASCII)
    if match is None:
        return None
    inches = {"mm": 25.4, "cm": 2.54, "in": 1.0}[match[3]]
    width, height = (round(float(side) / inches * dpi) for side in (match[1], match[2] or match[1]))
    if not (1 <= width <= MAX_SIDE_PX and 1 <= height <= MAX_SIDE_PX):
        raise ExportError(
            f"{text.strip()} at {dpi} pixels an inch would be {width:,} × {height:,} pixels; "
            f"a side has 1 to {MAX_SIDE_PX:,}."
        )
    return width, height


def written_as(form: PictureFormat, size: Size | None) -> str:
    """Return what a frame's recipe says of its file; empty for the first format, 8-bit PNG of the full size."""
    parts = ["" if form.name == "png" else form.name, str(form.chosen_quality or "")]
    parts.append("" if size is None else f"{size[0]}x{size[1]}")
    parts.append("" if form.dpi is None else f"{form.dpi}dpi")
    parts.append("" if form.background is None else f"on {form.background}")
    return " ".join(part for part in parts if part)


def format_of_path(path: Path) -> PictureFormat:
    """Return the format of a file name, by its suffix.

    Raises
    ------
    ExportError
        If no format has that ending.
    """
    ending = path.suffix.lower()
    for name, facts in FORMATS.items():
        if ending in facts.endings:
            return PictureFormat(name)
    raise ExportError(
        f"{path.name} should end in one of {', '.join(PICTURE_ENDINGS)}, which says the format; choose another name."
    )
