"""Interface between the render thread and a job that writes frames to files. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_backend import Frame, RenderRequest


class ExportJob(Protocol):
    """A job that needs every one of its frames.

    No method blocks: scanning a folder, encoding and writing run on the
    job's own threads.
    """

    @property
    def total(self) -> int:
        """Number of frames in all."""
        ...

    @property
    def shown(self) -> int:
        """Number of frames that progress counts."""
        ...

    @property
    def is_joining(self) -> bool:
        """Whether every frame is stored, and the parts of one file are put together."""
        ...

    def start(self, changed: Callable[[], None]) -> None:
        """Begin. `changed` is called, on any thread, whenever one of the properties may have changed."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether `next_request` has one to give."""
        ...

    def next_request(self) -> RenderRequest | None:
        """Return the next frame to render; None if there is none now: all were requested, or writing lags behind."""
        ...

    def deliver(self, frame: Frame) -> None:
        """Take a requested frame. An exception stops the job."""
        ...

    def stop(self, *, cancelled: bool) -> None:
        """Accept no more frames: the user `cancelled` it, or it is to be resumed later. May be called twice."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself: every frame is stored, or there was an `error`."""
        ...

    @property
    def error(self) -> BaseException | None:
        """What went wrong."""
        ...
