"""A contact sheet: many pictures, small, on one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from explorer_app.exporting.output_file import write_output

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
    target = io.BytesIO()
    density = {} if dpi is None else {"dpi": (dpi, dpi)}
    kind = ENDINGS[path.suffix.lower()]
    if kind == "PNG":
        sheet.save(target, kind, compress_level=4, **density)
    else:
        sheet.save(target, kind, quality=_JPEG_QUALITY, **density)
    write_output(path, target.getvalue())
