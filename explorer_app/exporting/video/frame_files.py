"""Files of single frames as one image of many, for Pillow; imported when an animated WebP is joined."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image


class FrameFiles(Image.Image):
    """An image of many frames that holds the pixels of one: `seek` reads them, as in Pillow's own readers.

    Parameters
    ----------
    paths
        A file for each frame; all of one size, and with alpha or without as the first.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self._paths = paths
        self._place = -1
        with Image.open(paths[0]) as first:
            self._mode = "RGBA" if "A" in first.getbands() else "RGB"
        self.seek(0)

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self._paths)

    def seek(self, frame: int) -> None:
        """Read a frame; EOFError past the last one."""
        if frame >= len(self._paths):
            raise EOFError
        if frame != self._place:
            with Image.open(self._paths[frame]) as picture:
                shown = picture.convert(self._mode)
            self.im, self._size, self._place = shown.im, shown.size, frame

    def tell(self) -> int:
        """Return which frame it shows."""
        return self._place
