"""Frames for files: jobs in order, a frame a step, as long as the files keep up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition

from explorer_app.rendering.export_job import ExportJob
from explorer_app.rendering.pipeline import Pipeline
from explorer_app.rendering.render_events import ExportAdvanced, ExportEnded, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import Priority, RenderTask
from gpu_backend import CancelledError


class _Entry:
    """A job in the queue."""

    def __init__(self, job: ExportJob) -> None:
        self.job = job
        self.pipeline = Pipeline(job.next_request)
        self.is_started = False
        self.is_cancelled = False
        self.reported = 0, False
        """The newest progress that was reported."""

    @property
    def progress(self) -> tuple[int, bool]:
        """How many frames count, and whether they are being joined."""
        return self.job.shown, self.job.is_joining

    @property
    def is_brief(self) -> bool:
        """Whether it is to be started or ended."""
        return not self.is_started or self.is_cancelled or self.job.has_ended

    @property
    def is_ready(self) -> bool:
        has_advanced = self.progress != self.reported  # files may be stored long after the last frame was rendered
        return self.is_brief or has_advanced or self.job.is_ready or self.pipeline.has_in_flight


class ExportTask(RenderTask):
    """Runs jobs in order; the first one runs until it has ended.

    A job whose files lag behind is not ready, and so yields to everything else. A step renders one frame: where a
    renderer takes several requests at a time, `Pipeline` is the place to take as many from the job.

    Parameters
    ----------
    condition
        The render thread's.
    report
        Receives the progress and the end of each job.
    recovers
        Switches to another device if the error is the device's; returns whether it did. The job then continues with
        the next renderer.
    """

    priority = Priority.EXPORT
    yields_to = frozenset()
    preview_share = 0.05

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        self._condition = condition
        self._report = report
        self._recovers = recovers
        self._entries: deque[_Entry] = deque()

    def __len__(self) -> int:
        with self._condition:
            return len(self._entries)

    def put(self, job: ExportJob) -> None:
        """Add a job behind the others."""
        with self._condition:
            self._entries.append(_Entry(job))
            self._condition.notify_all()

    def cancel(self, job: ExportJob) -> None:
        """End a job at the next step, whatever its state; a job that has left the queue is ignored."""
        with self._condition:
            for entry in self._entries:
                if entry.job is job:
                    entry.is_cancelled = True
            self._condition.notify_all()

    def close(self) -> None:
        """End every job; they can be resumed later."""
        with self._condition:
            entries = list(self._entries)
        for entry in entries:
            self._stop(entry)

    @property
    def is_brief(self) -> bool:
        """Whether a job is to be started or ended."""
        is_cancelled = any(entry.is_cancelled for entry in self._entries)
        return is_cancelled or (len(self._entries) > 0 and self._entries[0].is_brief)

    def seconds_until_ready(self) -> float | None:
        """Return 0 if the first job needs a frame, or a job is to end."""
        return 0.0 if self.is_brief or (self._entries and self._entries[0].is_ready) else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Render a frame of the first job, or end one."""
        entry = self._next_entry()
        if entry is None or renderer is None:
            return True
        if entry.is_cancelled:
            self._stop(entry)
        elif not entry.is_started:
            entry.is_started = True
            entry.job.start(self._notify)
        elif entry.job.has_ended:
            self._remove(entry)
            self._report(ExportEnded(entry.job, False, entry.job.error))
        else:
            return self._render(entry, renderer, should_yield)
        return True

    def _render(self, entry: _Entry, renderer: RendererLike, should_yield: Callable[[], bool]) -> bool:
        try:
            frame = entry.pipeline.next_frame(renderer, should_cancel=lambda: entry.is_cancelled or should_yield())
            if frame is not None:
                entry.job.deliver(frame)
            self._report_advance(entry)
        except CancelledError:
            return False
        except Exception as error:
            if not self._recovers(error):
                self._stop(entry, error)
        return True

    def _report_advance(self, entry: _Entry) -> None:
        progress = entry.progress
        if progress != entry.reported:
            entry.reported = progress
            self._report(ExportAdvanced(entry.job))

    def _next_entry(self) -> _Entry | None:
        with self._condition:
            cancelled = (entry for entry in self._entries if entry.is_cancelled)
            return next(cancelled, self._entries[0] if self._entries else None)

    def _stop(self, entry: _Entry, error: Exception | None = None) -> None:
        """End a job before its last frame."""
        self._remove(entry)
        entry.job.stop(cancelled=entry.is_cancelled)
        self._report(ExportEnded(entry.job, error is None, error))

    def _remove(self, entry: _Entry) -> None:
        with self._condition:
            if entry in self._entries:
                self._entries.remove(entry)
        entry.pipeline.close()

    def _notify(self) -> None:
        with self._condition:
            self._condition.notify_all()


class SavePictureTask(ExportTask):
    """Serves single pictures, which pass the frames of sequences and are finished before the program ends."""

    priority = Priority.PICTURE
    preview_share = 0.5
    finishes_on_close = True
