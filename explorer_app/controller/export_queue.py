"""The sequence that is being exported, and single pictures that pass it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.picture_job import PictureJob
from explorer_app.controller.progress import ExportProgress
from explorer_app.controller.unfinished_export import UnfinishedExport, stopped_sentence
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.manifest import Manifest
from explorer_app.exporting.picture import write_picture
from explorer_app.exporting.progress import ProgressMeter
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Action, Level, MessageLog
from explorer_app.rendering.render_events import ExportAdvanced, ExportEnded
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.resolve import unobserved
from explorer_app.session.session import Session
from gpu_backend import Frame, ModelFacts, RenderRequest

_NOT_NOTED = "The export was not noted, so the next start will not offer to go on with it"

_END_S = 10.0
"""A file that is being written is finished before the program ends, but a disk that never answers must not keep it."""


class ExportQueueController(QObject):
    """Starts and stops what the rendering thread renders for files, and knows how far it is."""

    changed = Signal()
    resume_requested = Signal(object)
    """The path of a manifest, as Path."""

    def __init__(
        self,
        renders: RenderThread,
        worker: FileWorker,
        messages: MessageLog,
        clock: Callable[[], float],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._worker = worker
        self._messages = messages
        self._clock = clock
        self._unfinished: UnfinishedExport | None = None
        self._awaited: SequenceSettings | None = None
        """A sequence whose model is to be opened first."""
        self._offered: Path | None = None
        self._job: SequenceJob | None = None
        self._stopped: SequenceJob | None = None
        """The last job that was stopped; it may not have let go of its files yet."""
        self._has_succeeded = False
        self._meter = ProgressMeter(0)
        self._progress: ExportProgress | None = None

    @property
    def progress(self) -> ExportProgress | None:
        """The sequence on its way out."""
        return self._progress

    @property
    def has_succeeded(self) -> bool:
        """Whether the last sequence that ended has all of its frames."""
        return self._has_succeeded

    def save_picture(self, path: Path, request: RenderRequest, session: Session, shown: Frame | None) -> None:
        """Write a picture in full, or the layer that stands in for it.

        `shown` is the newest frame, which saves rendering if it is just that picture.
        """

        def write(frame: Frame) -> None:
            self._worker.submit(
                lambda: write_picture(path, frame, model_name=session.model.name, session=session),
                done=f"Saved {path.name}.",
                failed=f"{path.name} could not be saved",
                file=path,
            )

        if shown is not None and unobserved(shown.request) == request:
            write(shown)
        else:
            self._renders.export(PictureJob(request, write), urgent=True)

    def start(self, settings: SequenceSettings, facts: ModelFacts | None) -> None:
        """Begin a sequence with the model that is open, unless one is on its way."""
        if facts is None or settings.model.model_id != facts.model_id:
            self._messages.warning("An export needs the model that its keyframes were made with; open it first.")
            return
        if self._job is not None:
            self._messages.warning("An export is running; wait for its end or cancel it, then start another.")
            return
        self._awaited = self._offered = None
        self._job = SequenceJob(settings, after=self._stopped)
        if self._unfinished is not None:
            self._worker.submit(partial(self._unfinished.note, settings.manifest_path), failed=_NOT_NOTED)
        self._meter = ProgressMeter(self._job.total)
        self._show(ExportProgress(settings.name, 0, self._job.total))
        self._renders.export(self._job)

    def offer_unfinished(self, folder: Path | None) -> None:
        """Offer to go on with the export that the last window of a session folder left; note exports there."""
        if folder is None:
            return
        self._unfinished = UnfinishedExport(folder)
        self._worker.fetch(self._unfinished.left, self._offer)

    def start_when_open(self, settings: SequenceSettings) -> None:
        """Begin a sequence as soon as its model is open."""
        self._awaited = settings

    def take_opened(self, facts: ModelFacts) -> None:
        """Begin the sequence that waits, now that a model is open; if it is another one, the sequence waits no more."""
        settings, self._awaited = self._awaited, None
        if settings is not None:
            self.start(settings, facts)

    def cancel(self) -> None:
        """Stop the sequence; the frame that is being made is given up."""
        if self._job is not None and self._progress is not None:
            self._renders.cancel_export(self._job)
            self._show(replace(self._progress, is_stopping=True))

    def close(self) -> None:
        """Wait, for a while, until the files that are being written are whole. May be called twice."""
        for job in (self._job, self._stopped):
            if job is not None:
                job.stop(cancelled=False)
                job.join(_END_S)

    def take_advanced(self, event: ExportAdvanced) -> None:
        """A job got a frame."""
        if event.job is self._job and self._job is not None and self._progress is not None:
            progress = self._meter.update(self._job.done, self._job.found, self._clock())
            self._show(replace(self._progress, done=progress.done, seconds_left=progress.seconds_left))

    def take_ended(self, event: ExportEnded) -> None:
        """A job is closed."""
        if event.error is not None:
            self._messages.exception(event.error)
        if event.job is not self._job or self._job is None:
            return
        job, self._job = self._job, None
        self._stopped = job
        self._has_succeeded = event.error is None and not event.is_cancelled
        if event.error is None and self._unfinished is not None:
            self._worker.submit(self._unfinished.forget, failed=_NOT_NOTED)
        if event.error is None and event.is_cancelled:
            self._messages.info(
                f"The export was stopped after {job.delivered:,} of {job.total:,} frames; the same export goes on."
            )
        elif event.error is None:
            folder = job.settings.folder
            self._messages.info(f"Exported {job.total:,} frames to {folder}.", file=folder)
        self._show(None)

    def _offer(self, manifest: Manifest | None) -> None:
        if manifest is not None and self._job is None:
            path = manifest.settings.manifest_path
            self._offered = path
            action = Action(
                "Resume export", lambda: self.resume_requested.emit(path), lambda: self._offered is not None
            )
            self._messages.post(Level.INFO, stopped_sentence(manifest), action=action)

    def _show(self, progress: ExportProgress | None) -> None:
        if progress != self._progress:
            self._progress = progress
            self.changed.emit()
