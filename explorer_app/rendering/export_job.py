"""What the render thread asks of something that wants frames for files. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_backend import Frame, RenderRequest


class ExportJob(Protocol):
    """Something that wants frames, every one of them.

    No method waits: what takes time (a folder that is looked through, a picture that is encoded and written) happens on
    the job's own threads.
    """

    @property
    def total(self) -> int:
        """Number of frames in all."""
        ...

    def start(self, changed: Callable[[], None]) -> None:
        """Begin. `changed` is called, on any thread, whenever `is_ready` or `has_ended` may have changed."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether `next_request` has one to give."""
        ...

    def next_request(self) -> RenderRequest | None:
        """Return the next frame to render, None if there is none now: all were asked for, or the files lag behind."""
        ...

    def deliver(self, frame: Frame) -> None:
        """Take a frame that was asked for. What this raises stops the job."""
        ...

    def stop(self, *, cancelled: bool) -> None:
        """Want no more frames: a person `cancelled` it, or it is to be resumed later. May be called twice."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself: every frame is where it belongs, or there was an `error`."""
        ...

    @property
    def error(self) -> BaseException | None:
        """What went wrong."""
        ...
