"""What the rendering thread does for exports: a frame a turn, delivered in order, and how each job ends."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.rendering.export_queue import ExportJob, ExportQueue
from explorer_app.rendering.news import ExportAdvanced, ExportEnded, News
from explorer_app.rendering.pipeline import Pipeline
from explorer_app.rendering.renderer_like import PROCESSOR_ID, RendererLike
from gpu_backend import CancelledError, DeviceLostError, DeviceMemoryError


class ExportWork:
    """Serves the jobs of a queue, each through a pipeline of its own. Touched by the rendering thread alone.

    Parameters
    ----------
    queue
        Where the jobs wait.
    tell
        Takes news.
    """

    def __init__(self, queue: ExportQueue, tell: Callable[[News], None]) -> None:
        self._queue = queue
        self._tell = tell
        self._pipelines: dict[int, Pipeline] = {}

    def advance(self, job: ExportJob, renderer: RendererLike, *, is_closing: Callable[[], bool]) -> None:
        """Render and deliver the next frame of a job, or end it after its last.

        What goes wrong ends the job.

        Raises
        ------
        DeviceLostError, DeviceMemoryError
            If a GPU failed; the job goes on with the next renderer where it was.
        """
        pipeline = self._pipelines.setdefault(id(job), Pipeline(job.next_request))
        try:
            frame = pipeline.next_frame(renderer, abandoned=lambda: self._queue.is_over(job, is_closing=is_closing()))
            if frame is not None:
                job.deliver(frame)
        except CancelledError:
            self.end(job, is_cancelled=True)
        except Exception as error:
            if isinstance(error, DeviceLostError | DeviceMemoryError) and renderer.device.id != PROCESSOR_ID:
                raise
            self.end(job, is_cancelled=False, error=error)
        else:
            if frame is None:
                self.end(job, is_cancelled=False)
            else:
                self._tell(ExportAdvanced(job))

    def end(self, job: ExportJob, *, is_cancelled: bool, error: Exception | None = None) -> None:
        """Take a job out of the queue and close it."""
        self._queue.finish(job)
        pipeline = self._pipelines.pop(id(job), None)
        if pipeline is not None:
            pipeline.close()
        try:
            job.close(cancelled=is_cancelled)
        except Exception as closing_error:
            error = error or closing_error
        self._tell(ExportEnded(job, is_cancelled, error))

    def end_all(self) -> None:
        """End every job that is left as cancelled."""
        for job in self._queue.drain():
            self.end(job, is_cancelled=True)
