"""Jobs for the rendering thread: a single picture, and a sequence that is planned there."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.sequence import SequenceSettings
from gpu_backend import Frame, RenderRequest


class PictureJob:
    """One frame, handed on."""

    def __init__(self, request: RenderRequest, deliver: Callable[[Frame], None]) -> None:
        self._request: RenderRequest | None = request
        self._deliver = deliver

    @property
    def total(self) -> int:
        """One."""
        return 1

    def next_request(self) -> RenderRequest | None:
        """Return the request the first time."""
        request, self._request = self._request, None
        return request

    def deliver(self, frame: Frame) -> None:
        """Hand the frame on."""
        self._deliver(frame)

    def close(self, cancelled: bool) -> None:
        """Nothing is left open."""


class PlannedSequenceJob:
    """A sequence that is planned when its turn comes: 100,000 frames take a moment, which the window does not have."""

    def __init__(self, settings: SequenceSettings) -> None:
        self.settings = settings
        self._job: SequenceJob | None = None

    @property
    def total(self) -> int:
        """Number of frames of the whole sequence."""
        return self.settings.frame_count

    @property
    def done(self) -> int:
        """Frames whose files are there."""
        return self._job.done if self._job else 0

    @property
    def found(self) -> int:
        """Frames that an earlier run left."""
        return self._job.found if self._job else 0

    def next_request(self) -> RenderRequest | None:
        """Plan the sequence the first time, and return the next picture to render. Raises ExportError, RequestError."""
        if self._job is None:
            self._job = SequenceJob(self.settings)
        return self._job.next_request()

    def deliver(self, frame: Frame) -> None:
        """Take a frame. Raises ExportError."""
        if self._job is not None:
            self._job.deliver(frame)

    def close(self, cancelled: bool) -> None:
        """Finish writing. Raises ExportError. May be called twice."""
        if self._job is not None:
            self._job.close(cancelled)
