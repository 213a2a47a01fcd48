"""A contact sheet: many pictures, small, on one."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image

from explorer_app.exporting.output_file import write_output
from gpu_backend import Frame

ENDINGS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
"""What a sheet's name may end in, in small letters, and what Pillow calls the format."""

_GAP_PX = 4
_JPEG_QUALITY = 90


def write_contact_sheet(
    path: Path, pictures: Sequence[Path], *, columns: int, side_px: int = 256, dpi: int | None = None
) -> None:
    """Lay pictures out in rows, in reading order, and write them as one.

    Parameters
    ----------
    path
        Its ending, one of `ENDINGS`, says the format; a JPEG is the smaller file.
    columns
        Pictures in a row.
    side_px
        Each picture is fitted into a square of this side.
    dpi
        Pixels an inch, for print; None says nothing.

    Raises
    ------
    ExportError
        If the sheet cannot be written.
    """
    rows = -(-len(pictures) // columns)
    cell = side_px + _GAP_PX
    sheet = Image.new("RGB", (columns * cell + _GAP_PX, rows * cell + _GAP_PX))
    for place, picture in enumerate(pictures):
        with Image.open(picture) as image:
            small = image.convert("RGB").resize((side_px, side_px), Image.Resampling.LANCZOS)
        sheet.paste(small, (_GAP_PX + place % columns * cell, _GAP_PX + place // columns * cell))
    _write(path, sheet, dpi)


def write_grid_sheet(path: Path, frames: Mapping[tuple[int, int], Frame], *, side_px: int) -> None:
    """Lay the frames of a grid out by (row, column), counted from 0, and write them as one picture.

    Places without a frame stay black. Path and errors are those of `write_contact_sheet`.
    """
    cell = side_px + _GAP_PX
    rows, columns = (1 + max((place[axis] for place in frames), default=0) for axis in (0, 1))
    sheet = Image.new("RGB", (columns * cell + _GAP_PX, rows * cell + _GAP_PX))
    for (row, column), frame in frames.items():
        picture = Image.fromarray(frame.pixels[..., 2::-1]).resize((side_px, side_px), Image.Resampling.LANCZOS)
        sheet.paste(picture, (_GAP_PX + column * cell, _GAP_PX + row * cell))
    _write(path, sheet, None)


def _write(path: Path, sheet: Image.Image, dpi: int | None) -> None:
    target = io.BytesIO()
    density = {} if dpi is None else {"dpi": (dpi, dpi)}
    kind = ENDINGS[path.suffix.lower()]
    if kind == "PNG":
        sheet.save(target, kind, compress_level=4, **density)
    else:
        sheet.save(target, kind, quality=_JPEG_QUALITY, **density)
    write_output(path, target.getvalue())
