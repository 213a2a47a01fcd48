"""Exports: one sequence at a time, and single pictures beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.editing import Editing
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.pending_document import PendingDocument
from explorer_app.controller.picture_job import PictureJob
from explorer_app.controller.preview import Preview
from explorer_app.controller.progress import ExportProgress
from explorer_app.controller.unfinished_export import UnfinishedExport, stopped_sentence
from explorer_app.exporting.formats.picture_format import PICTURE_ENDINGS, PictureFormat, Size, format_of_path
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.manifest import Manifest, read_manifest
from explorer_app.exporting.picture import write_picture
from explorer_app.exporting.progress import ProgressMeter
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.sinks.picture_folder import frame_path
from explorer_app.exporting.writers import MAX_THREADS
from explorer_app.messages import Action, Level, MessageLog
from explorer_app.rendering.render_events import ExportAdvanced, ExportEnded
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.resolve import resolve, unobserved
from explorer_app.settings import Settings
from gpu_backend import Frame

_NOT_NOTED = "The export was not noted, so the next start will not offer to go on with it"

_END_S = 10.0
"""Files under way are finished before the program ends, but a disk that hangs must not block the exit."""


class ExportQueueController(QObject):
    """Starts and stops exports on the render thread, and reports their progress."""

    changed = Signal()
    """`progress`."""

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
        preview: Preview,
        editing: Editing,
        pending: PendingDocument,
        worker: FileWorker,
        settings: Settings,
        messages: MessageLog,
        clock: Callable[[], float],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._model = model
        self._preview = preview
        self._editing = editing
        self._pending = pending
        self._worker = worker
        self._settings = settings
        self._messages = messages
        self._clock = clock
        self._unfinished: UnfinishedExport | None = None
        self._awaited: SequenceSettings | None = None
        """A sequence that waits for its model."""
        self._offered: Path | None = None
        self._job: SequenceJob | None = None
        self._stopped: SequenceJob | None = None
        """The last stopped job; it may still have files open."""
        self._has_succeeded = False
        self._meter = ProgressMeter(0)
        self._progress: ExportProgress | None = None

    @property
    def progress(self) -> ExportProgress | None:
        """Progress of the sequence under way; None without one."""
        return self._progress

    @property
    def has_succeeded(self) -> bool:
        """Whether the last sequence was exported completely."""
        return self._has_succeeded

    def save_picture(self, path: Path | str, form: PictureFormat | None = None, size: Size | None = None) -> None:
        """Write the picture in full with its recipe, or the layer on show; a message reports the end.

        `form` None means what the path's ending says, `size` None the network's own.
        """
        if self._model.facts is None:
            self._messages.warning("There is no picture to save: open a model first.")
            return
        path, session = Path(path), self._editing.effective
        request, shown = resolve(session), self._preview.frame
        if form is None and path.suffix.lower() in PICTURE_ENDINGS:
            form = format_of_path(path)
        needs_values = form is not None and form.facts.needs_values

        def write(frame: Frame) -> None:
            self._worker.submit(
                lambda: write_picture(
                    path, frame, model_name=session.model.name, session=session, form=form, size=size
                ),
                done=f"Saved {path.name}.",
                failed=f"{path.name} could not be saved",
                file=path,
            )

        if shown is not None and unobserved(shown.request) == request and not needs_values:
            write(shown)
        else:
            self._renders.export(PictureJob(replace(request, wants_image=needs_values), write), urgent=True)

    @Slot(object)
    def start(self, settings: SequenceSettings) -> None:
        """Write a sequence in the background with the open model, one at a time; the preview continues."""
        facts = self._model.facts
        if facts is None or settings.model.model_id != facts.model_id:
            self._messages.warning("An export needs the model that its keyframes were made with; open it first.")
            return
        if self._job is not None:
            self._messages.warning("An export is running; wait for its end or cancel it, then start another.")
            return
        self._awaited = self._offered = None
        self._job = SequenceJob(settings, threads=self._encoder_threads(), after=self._stopped)
        if self._unfinished is not None:
            self._worker.submit(partial(self._unfinished.note, settings.manifest_path), failed=_NOT_NOTED)
        self._meter = ProgressMeter(self._job.total)
        self._show(ExportProgress(settings.name, 0, self._job.total))
        self._renders.export(self._job)

    def offer_unfinished(self, folder: Path | None) -> None:
        """Offer to resume the unfinished export of a session folder, and record exports there from now on."""
        if folder is None:
            return
        self._unfinished = UnfinishedExport(folder)
        self._worker.fetch(self._unfinished.left, self._offer)

    @Slot(object)
    def resume(self, manifest: Path | str) -> None:
        """Continue the sequence of a manifest, with its model; that is opened first if it is at hand."""
        path = Path(manifest)
        self._pending.read(lambda: read_manifest(path), self._resume)

    def model_opened(self) -> None:
        """Begin the sequence that waits for a model; if another one is open now, the sequence waits no longer."""
        settings, self._awaited = self._awaited, None
        if settings is not None:
            self.start(settings)

    @Slot()
    def cancel(self) -> None:
        """Stop the sequence and the frame that is being made; the same export continues there another time."""
        if self._job is not None and self._progress is not None:
            self._renders.cancel_export(self._job)
            self._show(replace(self._progress, is_stopping=True))

    def close(self) -> None:
        """Wait for a limited time until files under way are complete. May be called twice."""
        for job in (self._job, self._stopped):
            if job is not None:
                job.stop(cancelled=False)
                job.join(_END_S)

    def take_advanced(self, event: ExportAdvanced) -> None:
        """Update the progress of a job."""
        if event.job is self._job and self._job is not None and self._progress is not None:
            progress = self._meter.update(self._job.done, self._job.found, self._clock())
            self._show(replace(self._progress, done=progress.done, seconds_left=progress.seconds_left))

    def take_ended(self, event: ExportEnded) -> None:
        """Report the end of a job."""
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
            settings, folder, video = job.settings, job.settings.folder, job.settings.video_path
            last = frame_path(folder, settings.name, settings.form, job.total - 1)
            if video is not None:
                self._messages.info(f"Exported {job.total:,} frames to {video}.", file=video)
            else:
                self._messages.info(f"Exported {job.total:,} frames to {folder}.", file=folder, picture=last)
        self._show(None)

    def _resume(self, manifest: Manifest) -> None:
        settings, facts, loading = manifest.settings, self._model.facts, self._model.loading
        if self._progress is not None:
            self._messages.warning("An export is running; wait for its end or cancel it, then resume another.")
            return
        if facts is not None and loading is None and settings.model.model_id == facts.model_id:
            self.start(settings)
            return
        model = settings.model
        path = self._model.known_path(model, settings.folder)
        if path is not None:
            self._awaited = settings
            if facts is not None:
                self._messages.info(f"The export “{settings.name}” goes on with {model.name}, which is being opened.")
            if loading is None or Path(loading.path) != path:
                self._model.open(path)
        elif facts is None or loading is not None:
            self._awaited = settings
        else:
            self._messages.warning(
                f"The export “{settings.name}” was made with {model.name or 'another model'}, which is not at hand; "
                "open that model, then resume the export.",
                f"Its model has the SHA-256 {model.model_id}.",
            )

    def _offer(self, manifest: Manifest | None) -> None:
        if manifest is not None and self._job is None:
            path = manifest.settings.manifest_path
            self._offered = path
            action = Action("Resume export", lambda: self.resume(path), lambda: self._offered is not None)
            self._messages.post(Level.INFO, stopped_sentence(manifest), action=action)

    def _encoder_threads(self) -> int | None:
        """Return how many threads a person wants to encode; None for all cores but one."""
        text = self._settings.choice("export.threads")
        return min(int(text), MAX_THREADS) if text.isdecimal() and 0 < len(text) < 5 and int(text) > 0 else None

    def _show(self, progress: ExportProgress | None) -> None:
        if progress != self._progress:
            self._progress = progress
            self.changed.emit()
