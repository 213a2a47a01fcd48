"""A video, an animation or a sheet: segments in a folder beside it, joined when all are there."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from explorer_app.exporting.errors import ExportError, TakenError
from explorer_app.exporting.output_file import as_export_error, write_output
from explorer_app.exporting.sinks.frame_sink import Claim, FramePlan
from explorer_app.exporting.sinks.picture_folder import remove_replaced_frames
from explorer_app.exporting.video.segment_codec import SegmentCodec
from explorer_app.exporting.writers import WriterPool
from gpu_backend import Disk, Frame, LoomError, remove_leftovers, write_whole

_MARK = "latentloom "
_SURPLUS = 2
"""Converted frames that may wait for the encoder, for each thread that converts."""


class VideoFile:
    """Implements `FrameSink`: ``<folder>/<name>.mp4`` from ``<folder>/.<name>.<identity>.segments/00000.mp4`` and on.

    Frames are scaled and converted on several threads and encoded in order on one. A segment is written aside and moved
    into place when it is complete, so a kill costs the frames of one segment. The video carries the sequence's identity
    in its comment: a video of something else is never taken for this one.

    Parameters
    ----------
    path
        Where the video goes.
    identity
        Hexadecimal digits that identify this sequence.
    segment_frames
        Frames of a segment.
    """

    def __init__(
        self,
        path: Path,
        codec: SegmentCodec,
        identity: str,
        segment_frames: int,
        *,
        disk: Disk | None = None,
        threads: int = 2,
    ) -> None:
        self._path = path
        self.codec = codec
        self._identity = identity
        self.segment_frames = segment_frames
        self._disk = disk or Disk()
        self._thread_count = threads
        self._folder = path.with_name(f".{path.stem}.{identity}.segments")
        self._plan: FramePlan | None = None
        self._changed: Callable[[], None] = lambda: None
        self._condition = threading.Condition()
        self._order: deque[int] = deque()
        """Accepted frames that the encoder has not taken, in order."""
        self._pictures: dict[int, Any] = {}
        """Those of them that are converted."""
        self._converters: WriterPool | None = None
        self._encoding: threading.Thread | None = None
        self._is_closing = self._is_discarding = self._is_closed = False
        self._is_whole = False
        self.is_joining = False
        """Whether the segments are put together."""
        self._written = 0
        self._stored_units: set[int] = set()
        """Segments that were found or written."""
        self._failure: BaseException | None = None

    @property
    def written(self) -> int:
        """Number of frames in the segments that were written."""
        return self._written

    @property
    def error(self) -> BaseException | None:
        """What the first frame to fail raised."""
        return self._failure or (None if self._converters is None else self._converters.error)

    @property
    def is_ready(self) -> bool:
        """Whether the encoder keeps up."""
        with self._condition:
            return (
                self._converters is not None
                and self._converters.has_room
                and len(self._order) < (1 + _SURPLUS) * self._thread_count + 1
            )

    def open(self, plan: FramePlan, claim: Claim, changed: Callable[[], None]) -> None:
        """Look at what is there and start the threads."""
        self._plan = plan
        self._changed = changed
        remove_leftovers(self._path.parent, self._path.name.__eq__, self._disk)
        remove_leftovers(self._folder, lambda name: True, self._disk)
        if self._path.exists() and not self._path.is_file():  # opening a pipe would wait for its other end
            raise ExportError(
                f"{self._path} should be a file, but is a folder, a pipe or a device; choose another name."
            )
        self._is_whole = self._path.exists() and self.codec.comment_of(self._path) == _MARK + self._identity
        if self._path.exists() and not self._is_whole and not claim.is_ours:
            raise TakenError(f"The folder {self._path.parent} holds a {self._path.name} that is not this sequence")
        self._remove_other_segments()
        if claim.replaced_total:
            remove_replaced_frames(self._path.parent, self._path.stem, claim.replaced_total, self._disk)
        self._converters = WriterPool(self._thread_count, self._note)
        self._encoding = threading.Thread(target=self._encode_all, name="export-encoder", daemon=True)
        self._encoding.start()

    def resumable_from(self, index: int, should_stop: Callable[[], bool]) -> int | None:
        """Return the first frame from `index` on without a stored segment."""
        assert self._plan is not None
        while index < len(self._plan) and not self._is_whole:
            if should_stop():
                return None
            if not self.unit_path(index // self.segment_frames).exists():
                return index
            self._stored_units.add(index // self.segment_frames)
            index = (index // self.segment_frames + 1) * self.segment_frames
        return None

    def accept(self, index: int, frame: Frame) -> None:
        """Leave a frame to the converters, and then to the encoder."""
        assert self._converters is not None
        with self._condition:
            self._order.append(index)
        self._converters.submit(partial(self._convert, index, frame))

    def close(self, *, discard: bool) -> None:
        """Finish or discard what waits, end the threads, and join the segments if all are there."""
        if self._is_closed or self._converters is None or self._encoding is None:
            return
        self._is_closed = True
        with self._condition:
            self._is_discarding = discard
        self._converters.close(discard=discard)
        with self._condition:
            self._is_closing = True
            self._condition.notify_all()
        self._encoding.join()
        if not discard and self.error is None and not self._is_whole:
            self._join()

    def check_whole(self) -> None:
        """Raise ExportError if the joined file is gone."""
        if not self._path.exists():
            raise ExportError(f"{self._path} was deleted when it had been written; start the same export again.")

    def _convert(self, index: int, frame: Frame) -> None:
        picture = self.codec.converted(frame)
        with self._condition:
            self._pictures[index] = picture
            self._condition.notify_all()

    def _encode_all(self) -> None:
        encoder = None
        try:
            while (taken := self._take()) is not None:
                index, picture = taken
                encoder = encoder or self.codec.encoder()
                encoder.add(picture)
                segment = index // self.segment_frames
                if index + 1 in (len(self._plan or ()), (segment + 1) * self.segment_frames):
                    write_output(self.unit_path(segment), encoder.finish(), self._disk)
                    self._stored_units.add(segment)
                    self._written += index + 1 - segment * self.segment_frames
                    encoder = None
                self._changed()
        except BaseException as error:  # reported through `error`
            self._failure = _told(error, self._path)
            self._changed()

    def _take(self) -> tuple[int, Any] | None:
        """Return the next converted frame; None at the end."""
        with self._condition:
            self._condition.wait_for(
                lambda: self._is_closing or self._is_discarding or (self._order and self._order[0] in self._pictures)
            )
            if self._is_discarding or not self._order or self._order[0] not in self._pictures:
                return None
            index = self._order.popleft()
            return index, self._pictures.pop(index)

    def _join(self) -> None:
        """Put the video together if all of its segments are there, and delete them."""
        assert self._plan is not None
        total = len(self._plan)
        paths = [self.unit_path(place) for place in range(-(-total // self.segment_frames))]
        missing = [path for path in paths if not path.exists()]
        if missing:
            if len(self._stored_units) == len(paths):  # otherwise the job was stopped before them
                self._failure = ExportError(
                    f"{missing[0].name} of {self._path.name} was deleted while it was exported; start the same export "
                    "again."
                )
            return
        self.is_joining = True
        self._changed()
        try:
            with as_export_error(self._path):
                write_whole(
                    self._path,
                    lambda target: self.codec.join(paths, total, target, _MARK + self._identity),
                    self._disk,
                    check=self._check,
                )
            self._remove_segments(self._folder)
        except (LoomError, OSError) as error:
            self._failure = error
        except Exception as error:
            self._failure = _told(error, self._path)
        finally:
            self.is_joining = False

    def _check(self, path: Path) -> None:
        if self.codec.comment_of(path) != _MARK + self._identity:
            raise ExportError(f"{self._path.name} could not be read back; export it again.")

    def unit_path(self, unit: int) -> Path:
        """Return where a segment goes."""
        return self._folder / f"{unit:05d}{self.codec.segment_ending}"

    def is_stored(self, unit: int, plan: FramePlan) -> bool:
        """Return whether a segment is there: it came into place whole."""
        return self.unit_path(unit).exists()

    def _remove_other_segments(self) -> None:
        """Delete segments of other sequences that would go to the same file."""
        pattern = re.compile(re.escape(f".{self._path.stem}.") + r"[0-9a-f]{16}\.segments")
        try:
            names = os.listdir(self._path.parent)
        except OSError:
            return
        for name in names:
            if pattern.fullmatch(name) and (self._is_whole or name != self._folder.name):
                self._remove_segments(self._path.parent / name)

    def _remove_segments(self, folder: Path) -> None:
        """Delete segments that are not needed. If the system refuses, the next export to the same file tries again."""
        with contextlib.suppress(OSError):
            self._disk.remove(folder)

    def _note(self) -> None:
        with self._condition:
            self._condition.notify_all()
        self._changed()


def _told(error: BaseException, path: Path) -> BaseException:
    """Return the error of an encoder as one of the export; others as they are."""
    if isinstance(error, LoomError) or not isinstance(error, Exception):
        return error
    return ExportError(
        f"{path.name} could not be encoded ({str(error).splitlines()[0] if str(error) else type(error).__name__}); "
        "choose another size or format.",
        details=str(error),
    )
