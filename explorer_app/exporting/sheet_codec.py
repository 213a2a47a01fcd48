"""A sheet of the frames of a sequence: each frame is stored as a file of its own until all are there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.formats.picture_format import Size
from explorer_app.exporting.formats.resize import over_background, resized
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.sheet import SheetLayout, SheetPainter, check_sheet_size, read_sheet
from explorer_app.exporting.video.animation import StillSegment, png_segment
from gpu_backend import Frame, LazyModule

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")


class SheetCodec:
    """Implements `SegmentCodec`: a segment is a picture, and joining lays them out.

    Parameters
    ----------
    settings
        Of a sequence with a `sheet`. Nothing is planned before `join`.
    """

    segment_ending = ".png"

    def __init__(self, settings: SequenceSettings) -> None:
        assert settings.sheet is not None
        self._settings = settings
        self._layout: SheetLayout = settings.sheet
        self._cell: Size | None = None
        if settings.size is not None:
            side = max(1, self._layout.cell_side(settings.frame_count, settings.size))
            self._cell = side, side

    def converted(self, frame: Frame) -> bytes:
        """Return a frame at the size of a cell as a PNG. Raises ExportError if the sheet would be too large."""
        paper = self._settings.form.background or self._layout.paper
        if self._cell is None:  # now, not when all pictures are there
            settings = self._settings
            size = self._layout.size_of(settings.frame_count, (frame.width, frame.height))
            check_sheet_size(size, settings.frame_count, settings.form)
        pixels = over_background(frame.pixels, paper) if frame.has_alpha else frame.pixels
        return png_segment(pixels if self._cell is None else resized(pixels, self._cell))

    def encoder(self) -> StillSegment:
        """Return an encoder for the next picture."""
        return StillSegment()

    def join(self, segments: Sequence[Path], total: int, target: Path, comment: str) -> None:
        """Lay the pictures out, and write them with the recipe of each."""
        from PIL import Image

        plan = plan_sequence(self._settings)
        painter: SheetPainter | None = None
        for place, segment in enumerate(segments):
            with Image.open(segment) as image:
                painter = painter or SheetPainter(
                    self._layout, total, image.size, self._settings.form, self._settings.size
                )
                painter.put(place, np.asarray(image.convert("RGB"))[..., ::-1])
        assert painter is not None
        cells = [plan.document(index) for index in range(total)]
        target.write_bytes(painter.encode(cells, comment))

    def comment_of(self, path: Path) -> str | None:
        """Return the comment of a sheet."""
        try:
            sheet = read_sheet(path)
        except PictureError:
            return None
        return None if sheet is None else sheet.sequence or None
