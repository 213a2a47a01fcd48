"""``latentloom render --sheet``: the pictures together on one file, or on several of a fixed number of rows."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from explorer_app.cli.arguments import UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.source import Source
from explorer_app.exporting.sheet import ENDINGS, write_contact_sheet

_SIDE_PX = 128
_ASSUMED_PX = 1024
"""Side of a picture whose size is not known before it is rendered."""
_MOST_PICTURES = 4096
_MOST_PIXELS = 1 << 28


def check_sheet_options(options: argparse.Namespace) -> None:
    """Refuse what does not go together before anything is opened. Raises UsageError."""
    if options.sheet is None:
        if options.grid is not None:
            raise UsageError("--grid lays out the pictures of --sheet; give --sheet too.")
        return
    if options.path is not None or options.project is not None:
        raise UsageError("--sheet lays out single pictures, so it cannot be given with --path or --project.")
    if options.sheet.suffix.lower() not in ENDINGS:
        raise UsageError(f"The sheet should end in .png or .jpg, but {options.sheet.name} does not.")
    if options.form == "exr":
        raise UsageError("--sheet cannot show EXR files; choose another --format, or leave --sheet out.")


def sheet_paths(options: argparse.Namespace, count: int) -> list[Path]:
    """Return the paths of the sheets: FILE, or FILE_1, FILE_2 and so on if the pictures need several."""
    if options.grid is None:
        return [options.sheet]
    sheets = -(-count // math.prod(options.grid))
    if sheets == 1:
        return [options.sheet]
    sheet: Path = options.sheet
    return [sheet.with_name(f"{sheet.stem}_{number}{sheet.suffix}") for number in range(1, sheets + 1)]


def check_sheets(options: argparse.Namespace, sources: Sequence[Source], targets: Sequence[Path]) -> None:
    """Refuse sheets that would take the place of a picture, or would be too large. Raises UsageError."""
    pictures = {path.absolute() for path in (*targets, *(source.path for source in sources))}
    for sheet in sheet_paths(options, len(targets)):
        if sheet.absolute() in pictures:
            raise UsageError(f"{sheet} would overwrite one of the pictures; choose another --sheet.")
    if options.grid is None and len(targets) > _MOST_PICTURES:
        raise UsageError(f"A sheet takes {_MOST_PICTURES:,} pictures, but there are {len(targets):,}.")
    if options.grid is not None and math.prod(options.grid) * max(options.size or (_ASSUMED_PX,)) ** 2 > _MOST_PIXELS:
        raise UsageError("A sheet of that --grid and --size has too many pixels; take fewer or smaller pictures.")


def write_sheets(options: argparse.Namespace, targets: Sequence[Path], console: Console) -> None:
    """Lay the pictures out. Raises ExportError if a sheet cannot be written."""
    sheets = sheet_paths(options, len(targets))
    columns, rows = options.grid or (math.ceil(math.sqrt(len(targets))), len(targets))
    side_px = _SIDE_PX if options.grid is None else _side_of(targets[0])
    for number, sheet in enumerate(sheets):
        shown = targets[number * columns * rows : (number + 1) * columns * rows]
        write_contact_sheet(sheet, shown, columns=columns, side_px=side_px, dpi=options.dpi)
    if len(sheets) == 1:
        console.conclude(f"See {sheets[0]} for all of them at a glance.")
    else:
        console.conclude(f"See {sheets[0]} to {sheets[-1].name} for all of them.")


def _side_of(picture: Path) -> int:
    """Return the longer side of a picture file in pixels."""
    from PIL import Image  # when the first sheet is made

    with Image.open(picture) as image:
        return max(image.size)
