"""Interface between a video sink and a codec."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from gpu_backend import Frame


class SegmentEncoder(Protocol):
    """Encodes the frames of one segment, in order. Used on one thread."""

    def add(self, picture: Any) -> None:
        """Encode the next frame, as `SegmentCodec.converted` returned it."""
        ...

    def finish(self) -> bytes:
        """Return the segment as a file."""
        ...


class SegmentCodec(Protocol):
    """Encodes segments and joins them. Segments are independent: equal frames give equal bytes.

    Errors are those of the library, or ExportError.
    """

    @property
    def segment_ending(self) -> str:
        """What segment files end in."""
        ...

    def converted(self, frame: Frame) -> Any:
        """Return a frame at its size and in the encoder's pixel format. May run on several threads at a time."""
        ...

    def encoder(self) -> SegmentEncoder:
        """Return an encoder for the next segment."""
        ...

    def join(self, segments: Sequence[Path], total: int, target: Path, comment: str) -> None:
        """Write the file of `total` frames from its segments, without encoding videos again, with a comment in it."""
        ...

    def comment_of(self, path: Path) -> str | None:
        """Return the comment of a joined file; None if it has none, or is no such file."""
        ...
