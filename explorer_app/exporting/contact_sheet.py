"""A contact sheet: some frames of a sequence on one picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from explorer_app.exporting.output_file import write_output

_GAP_PX = 4


def write_contact_sheet(path: Path, pictures: Sequence[Path], *, columns: int, side_px: int = 256) -> None:
    """Lay pictures out in rows, in reading order, and write them as one PNG.

    Parameters
    ----------
    columns
        Pictures in a row.
    side_px
        Each picture is fitted into a square of this side.

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
    sheet.save(target, "PNG", compress_level=4)
    write_output(path, target.getvalue())
