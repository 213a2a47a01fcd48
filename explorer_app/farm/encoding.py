"""What a chunk's frames become: pictures of their own, or segments of a video.

Both are made of the same parts as an export in one process, so their bytes are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, Protocol

from explorer_app.exporting.picture import encode_picture
from explorer_app.exporting.sequence import SequencePlan
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from explorer_app.exporting.sinks.video_file import VideoFile
from explorer_app.exporting.video.segment_codec import SegmentCodec
from gpu_backend import Frame


class UnitEncoder(Protocol):
    """Makes the files of a job; a unit is a picture or a segment."""

    @property
    def unit_frames(self) -> int:
        """Frames of a unit; the last of a job may have fewer."""
        ...

    def prepare(self, index: int, frame: Frame) -> Any:
        """Return a frame encoded or converted; runs on several threads at a time."""
        ...

    def units(self, prepared: Iterator[tuple[int, Future[Any]]], total: int) -> Iterator[tuple[int, Any]]:
        """Return number and file of each unit, from prepared frames in order; `total` is that of the job."""
        ...


class PictureEncoder:
    """Implements `UnitEncoder`: a picture is a unit."""

    unit_frames = 1

    def __init__(self, plan: SequencePlan) -> None:
        self._plan = plan

    def prepare(self, index: int, frame: Frame) -> bytes:
        """Return the file of a frame."""
        settings = self._plan.settings
        return encode_picture(frame, self._plan.document(index), settings.form, settings.size)

    def units(self, prepared: Iterator[tuple[int, Future[Any]]], total: int) -> Iterator[tuple[int, Any]]:
        """Return the results of the frames unchanged: their files, or what the caller made of the files."""
        for index, file in prepared:
            yield index, file.result()


class SegmentUnits:
    """Implements `UnitEncoder`: a segment of a video is a unit."""

    def __init__(self, codec: SegmentCodec, segment_frames: int) -> None:
        self._codec = codec
        self.unit_frames = segment_frames

    def prepare(self, index: int, frame: Frame) -> Any:
        """Return a frame in the encoder's pixel format."""
        return self._codec.converted(frame)

    def units(self, prepared: Iterator[tuple[int, Future[Any]]], total: int) -> Iterator[tuple[int, bytes]]:
        """Encode segment by segment, in order."""
        encoder = None
        for index, picture in prepared:
            encoder = encoder or self._codec.encoder()
            encoder.add(picture.result())
            unit = index // self.unit_frames
            if index + 1 in (total, (unit + 1) * self.unit_frames):
                yield unit, encoder.finish()
                encoder = None


def encoder_of(plan: SequencePlan, sink: PictureFolder | VideoFile) -> UnitEncoder:
    """Return the encoder that makes the files of a job's sink."""
    if isinstance(sink, VideoFile):
        return SegmentUnits(sink.codec, sink.segment_frames)
    return PictureEncoder(plan)
