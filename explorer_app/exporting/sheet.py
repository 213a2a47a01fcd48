"""A sheet: many pictures on one, laid out in rows. The file holds the recipe of each, so that each opens alone.

A sheet's text is JSON::

    {"format": "latent-loom-sheet", "version": 1, "columns": 3, "cell": [256, 256], "gap": 4, "at": [0, 0],
     "sequence": "", "cells": [the document of a picture, or null, …]}

`cells` are in reading order; `cell` and `gap` are in pixels, and `at` is where the first gap begins.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from explorer_app.exporting.errors import ExportError, PictureError
from explorer_app.exporting.formats.picture_format import FormatName, PictureFormat, Size, check_sides, format_of_path
from explorer_app.exporting.output_file import write_output
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.picture_document import PictureDocument, document_from_text, document_to_text
from gpu_backend import (
    PICTURE_LIMITS,
    Frame,
    FrameTimings,
    LazyModule,
    LimitError,
    RenderRequest,
    check_json_size,
    dataclass,
    parse_json,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image
else:
    np = LazyModule("numpy")

FORMAT = "latent-loom-sheet"
VERSION = 1

SHEET_FORMATS: tuple[FormatName, ...] = ("png", "jpeg", "webp", "tiff")
"""Formats that a sheet can be written in."""

ENDINGS = (".png", ".jpg", ".jpeg")
"""What the name of a contact sheet may end in, in small letters."""

Paper = Literal["black", "white"]

MAX_COLUMNS = 100
MAX_CELLS = 4096
MAX_PIXELS = 1 << 28
MAX_GAP_PX = 1000

_JPEG_QUALITY = 90
_WHAT = "a sheet's recipes"
_NO_REQUEST = RenderRequest("", ())


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """Layout of a sequence's frames on a sheet.

    Attributes
    ----------
    columns
        Pictures in a row.
    gap_px
        Between pictures and around them.
    paper
        What is behind them.
    """

    columns: int
    gap_px: int = 4
    paper: Paper = "black"

    def __post_init__(self) -> None:
        if not 1 <= self.columns <= MAX_COLUMNS or not 0 <= self.gap_px <= MAX_GAP_PX:
            raise ExportError(f"A sheet has 1 to {MAX_COLUMNS} columns and gaps of 0 to {MAX_GAP_PX:,} pixels.")
        if self.paper not in ("black", "white"):
            raise ExportError(f"A sheet's paper is black or white, not {str(self.paper)[:20]}.")

    def rows(self, count: int) -> int:
        """Return the number of rows for a number of pictures."""
        return max(1, -(-count // self.columns))

    def cell_side(self, count: int, sheet: Size) -> int:
        """Return the largest side of square pictures that fit on a sheet of a size; below 1 if none do."""
        rows = self.rows(count)
        across = (sheet[0] - self.gap_px * (self.columns + 1)) // self.columns
        return min(across, (sheet[1] - self.gap_px * (rows + 1)) // rows)

    def size_of(self, count: int, cell: Size) -> Size:
        """Return the size of a sheet of pictures of a size."""
        rows = self.rows(count)
        return (
            self.columns * (cell[0] + self.gap_px) + self.gap_px,
            rows * (cell[1] + self.gap_px) + self.gap_px,
        )


@dataclass(frozen=True, slots=True)
class SheetDocument:
    """The recipes of a sheet's pictures, and their cells.

    Attributes
    ----------
    cell
        Width and height of each picture in pixels.
    at
        The left upper corner of the laid out pictures with the gap around them.
    cells
        In reading order; None where there is no recipe.
    sequence
        Which sequence the sheet was exported from; empty for other sheets.
    """

    columns: int
    gap_px: int
    cell: Size
    at: tuple[int, int]
    cells: tuple[PictureDocument | None, ...]
    sequence: str = ""

    def corner(self, place: int) -> tuple[int, int]:
        """Return the left upper corner of a picture, (x, y) in pixels."""
        row, column = divmod(place, self.columns)
        return (
            self.at[0] + self.gap_px + column * (self.cell[0] + self.gap_px),
            self.at[1] + self.gap_px + row * (self.cell[1] + self.gap_px),
        )

    def place_at(self, x: float, y: float) -> int | None:
        """Return the picture with a recipe at a point; None if there is none."""
        column = int((x - self.at[0] - self.gap_px) // (self.cell[0] + self.gap_px))
        row = int((y - self.at[1] - self.gap_px) // (self.cell[1] + self.gap_px))
        place = row * self.columns + column
        if not (0 <= column < self.columns and 0 <= place < len(self.cells)) or self.cells[place] is None:
            return None
        left, top = self.corner(place)
        return place if x < left + self.cell[0] and y < top + self.cell[1] else None


def sheet_to_text(sheet: SheetDocument) -> str:
    """Return a sheet's recipes as JSON in ASCII. Raises PictureError if they are more than the reader allows."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "columns": sheet.columns,
        "cell": list(sheet.cell),
        "gap": sheet.gap_px,
        "at": list(sheet.at),
        "sequence": sheet.sequence,
    }
    cells = ",".join("null" if cell is None else document_to_text(cell) for cell in sheet.cells)
    text = f'{json.dumps(head, separators=(",", ":"))[:-1]},"cells":[{cells}]}}'
    try:
        check_json_size(text, PICTURE_LIMITS, _WHAT)
    except LimitError as error:
        raise PictureError(f"{error.sentence.rstrip('.')}; put fewer pictures on a sheet.") from error
    return text


def sheet_from_text(text: str) -> SheetDocument:
    """Read what `sheet_to_text` wrote. Raises PictureError if the text is not such a document."""
    try:
        data = parse_json(text, PICTURE_LIMITS, _WHAT)
    except LimitError as error:
        raise PictureError(error.sentence, error.details) from error
    except ValueError as error:
        raise PictureError("The recipes of this sheet cannot be read because they are not JSON.", str(error)) from error
    if not isinstance(data, Mapping) or data.get("format") != FORMAT or data.get("version") != VERSION:
        raise PictureError("This sheet was saved by another version of Latent Loom; update Latent Loom.")
    numbers = [data.get("columns"), data.get("gap"), *_pair(data.get("cell")), *_pair(data.get("at"))]
    cells = data.get("cells")
    if not all(type(number) is int and 0 <= number <= 1 << 20 for number in numbers) or not isinstance(cells, list):
        raise PictureError("The recipes of this sheet are damaged: it should list the places of its pictures.")
    columns, gap_px, width, height, left, top = numbers
    if not columns or not width or not height or len(cells) > MAX_CELLS:
        raise PictureError(f"A sheet has 1 to {MAX_CELLS:,} pictures of at least one pixel, but this one does not.")
    documents = [None if cell is None else document_from_text(json.dumps(cell)) for cell in cells]
    sequence = data.get("sequence")
    return SheetDocument(
        columns, gap_px, (width, height), (left, top), tuple(documents), sequence if isinstance(sequence, str) else ""
    )


def _pair(value: object) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (None, None)


def is_sheet_text(text: str) -> bool:
    """Return whether a picture file's text is that of a sheet."""
    return text.startswith(f'{{"format":"{FORMAT}"')


def read_sheet(path: Path) -> SheetDocument | None:
    """Return the recipes of a sheet; None if the file is a picture of another kind.

    Raises
    ------
    PictureError
        If the file is no picture, or a sheet that is damaged or too new.
    """
    from explorer_app.exporting.formats.codecs import scan_picture  # when the first picture is read

    text = scan_picture(path, PICTURE_LIMITS.nbytes).text
    return sheet_from_text(text) if text is not None and is_sheet_text(text) else None


def read_picture_or_sheet(path: Path) -> PictureDocument | SheetDocument:
    """Return the recipe of a picture, or the recipes of a sheet. Raises PictureError as `read_picture`."""
    return read_sheet(path) or read_picture(path)


def check_sheet_size(size: Size, count: int, form: PictureFormat) -> None:
    """Raise ExportError if a sheet of a size with `count` pictures cannot be written."""
    width, height = size
    if width * height > MAX_PIXELS or count > MAX_CELLS:
        raise ExportError(
            f"A sheet has up to {MAX_CELLS:,} pictures and {MAX_PIXELS // 10**6} million pixels, but this one "
            f"would have {count:,} and {width * height / 1e6:.0f} million; take fewer or smaller pictures."
        )
    check_sides(form.facts.label, form.facts.max_side_px, size)


class SheetPainter:
    """Lays pictures out on paper, to be written in a format.

    Parameters
    ----------
    size
        Of the sheet; None for one that just holds the pictures.

    Raises
    ------
    ExportError
        If such a sheet cannot be written.
    """

    def __init__(
        self, layout: SheetLayout, count: int, cell: Size, form: PictureFormat, size: Size | None = None
    ) -> None:
        needed = layout.size_of(count, cell)
        width, height = size or needed
        check_sheet_size((width, height), count, form)
        self._form = form
        at = (width - needed[0]) // 2, (height - needed[1]) // 2
        self._where = SheetDocument(layout.columns, layout.gap_px, cell, at, ())
        self._pixels = np.full((height, width, 4), 255 if layout.paper == "white" else 0, np.uint8)
        self._pixels[..., 3] = 255

    def put(self, place: int, pixels: NDArray[np.uint8]) -> None:
        """Put a picture of the cells' size, (height, width, 3 or 4) B, G, R, at a place in reading order."""
        left, top = self._where.corner(place)
        height, width = pixels.shape[:2]
        self._pixels[top : top + height, left : left + width, :3] = pixels[..., :3]

    def encode(self, cells: Sequence[PictureDocument | None], sequence: str = "") -> bytes:
        """Return the sheet as a file with the recipes of its pictures."""
        from explorer_app.exporting.formats.codecs import encode_frame  # when the first picture is written

        where = self._where
        document = SheetDocument(where.columns, where.gap_px, where.cell, where.at, tuple(cells), sequence)
        frame = Frame(_NO_REQUEST, self._pixels, FrameTimings(0.0, 0.0, 0.0))
        return encode_frame(frame, sheet_to_text(document), self._form)


def write_contact_sheet(
    path: Path, pictures: Sequence[Path], *, columns: int, side_px: int = 256, dpi: int | None = None
) -> None:
    """Lay picture files out in rows, in reading order, and write them as one file with the recipes that they hold.

    Transparent parts show the paper.

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
    from PIL import Image  # when the first sheet is made

    from explorer_app.exporting.formats.resize import over_background

    sizes = [fitted_size(size_of_picture(picture), side_px) for picture in pictures]
    width, height = (max(side) for side in zip(*sizes, strict=True))
    layout = SheetLayout(columns)
    painter = SheetPainter(layout, len(pictures), (width, height), _form_of(path, dpi))
    cells: list[PictureDocument | None] = []
    for place, (picture, size) in enumerate(zip(pictures, sizes, strict=True)):
        with _opened(picture) as image:
            small = np.asarray(image.convert("RGBA").resize(size, Image.Resampling.LANCZOS))[..., (2, 1, 0, 3)]
        top, left = (height - size[1]) // 2, (width - size[0]) // 2
        cell = np.zeros((height, width, 4), np.uint8)
        cell[top : top + size[1], left : left + size[0]] = over_background(small, layout.paper)
        painter.put(place, cell)
        cells.append(_recipe_of(picture))
    write_output(path, painter.encode(cells))


def fitted_size(size: Size, side_px: int) -> Size:
    """Return the size of a picture that is scaled until its longer side is `side_px`."""
    longer = max(size)
    return max(1, round(size[0] * side_px / longer)), max(1, round(size[1] * side_px / longer))


def size_of_picture(path: Path) -> Size:
    """Return width and height of a picture file in pixels."""
    with _opened(path) as image:
        return image.size


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open a picture file that was written here, also where Pillow warns of its size. For one thread at a time."""
    from PIL import Image

    usual, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        with Image.open(path) as image:
            yield image
    finally:
        Image.MAX_IMAGE_PIXELS = usual


def write_grid_sheet(
    path: Path, frames: Mapping[tuple[int, int], Frame], *, side_px: int, model_name: str = ""
) -> None:
    """Lay the frames of a grid out by (row, column), counted from 0, and write them as one file with their recipes.

    Places without a frame, and transparent parts of frames, stay black. Path and errors: see `write_contact_sheet`.
    """
    from explorer_app.exporting.formats.resize import over_background, resized

    rows, columns = (1 + max((place[axis] for place in frames), default=0) for axis in (0, 1))
    layout = SheetLayout(columns)
    painter = SheetPainter(layout, rows * columns, (side_px, side_px), _form_of(path, None))
    cells: list[PictureDocument | None] = [None] * (rows * columns)
    for (row, column), frame in frames.items():
        pixels = over_background(frame.pixels, layout.paper) if frame.has_alpha else frame.pixels
        painter.put(row * columns + column, resized(pixels, (side_px, side_px)))
        cells[row * columns + column] = PictureDocument(frame.request, model_name)
    write_output(path, painter.encode(cells))


def _form_of(path: Path, dpi: int | None) -> PictureFormat:
    name = format_of_path(path).name
    return PictureFormat(name, _JPEG_QUALITY if name == "jpeg" else None, dpi=dpi)


def _recipe_of(picture: Path) -> PictureDocument | None:
    try:
        return read_picture(picture)
    except PictureError:
        return None
