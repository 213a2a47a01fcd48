"""``latentloom render --sheet``: the pictures together on one file, or on several of a fixed number of rows."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from explorer_app.cli.arguments import UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.source import Source
from explorer_app.exporting.formats.picture_format import Size, format_of_path
from explorer_app.exporting.sheet import ENDINGS, MAX_CELLS, SheetLayout, check_sheet_size, write_contact_sheet

_CELL = (128, 128)


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


def check_sheets(
    options: argparse.Namespace, sources: Sequence[Source], targets: Sequence[Path], resolution: int
) -> None:
    """Refuse sheets that would take the place of a picture, or that cannot be written.

    Parameters
    ----------
    resolution
        Side of a picture of the network in pixels.

    Raises
    ------
    UsageError, ExportError
        With what to change.
    """
    pictures = {path.absolute() for path in (*targets, *(source.path for source in sources))}
    for sheet in sheet_paths(options, len(targets)):
        if sheet.absolute() in pictures:
            raise UsageError(f"{sheet} would overwrite one of the pictures; choose another --sheet.")
    count = len(targets)
    if options.grid is None and count > MAX_CELLS:
        raise UsageError(f"A sheet takes {MAX_CELLS:,} pictures, but there are {count:,}.")
    columns, rows = _grid_of(options, count)
    cell = _CELL if options.grid is None else options.size or (resolution, resolution)
    shown = min(count, columns * rows)
    check_sheet_size(SheetLayout(columns).size_of(shown, cell), shown, format_of_path(options.sheet))


def _grid_of(options: argparse.Namespace, count: int) -> tuple[int, int]:
    """Return columns and rows of a sheet."""
    return options.grid or (math.ceil(math.sqrt(count)), count)


def write_sheets(options: argparse.Namespace, targets: Sequence[Path], console: Console) -> None:
    """Lay the pictures out. Raises ExportError if a sheet cannot be written."""
    sheets = sheet_paths(options, len(targets))
    columns, rows = _grid_of(options, len(targets))
    cell = _CELL if options.grid is None else _size_of(targets[0])
    for number, sheet in enumerate(sheets):
        shown = targets[number * columns * rows : (number + 1) * columns * rows]
        write_contact_sheet(sheet, shown, columns=columns, cell=cell, dpi=options.dpi)
    if len(sheets) == 1:
        console.conclude(f"See {sheets[0]} for all of them at a glance.")
    else:
        console.conclude(f"See {sheets[0]} to {sheets[-1].name} for all of them.")


def _size_of(picture: Path) -> Size:
    """Return width and height of a picture file in pixels."""
    from PIL import Image  # when the first sheet is made

    with Image.open(picture) as image:
        return image.size
