"""The exports: a list of sequences, rendered one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.export_jobs import ExportJobs
from explorer_app.controller.export_run import ExportRun, ExportRuns
from explorer_app.controller.farm_export import FarmExport
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.job_models import JobModels
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.pending_document import PendingDocument
from explorer_app.controller.progress import ExportProgress
from explorer_app.exporting.export_list import (
    HERE,
    MAX_JOBS,
    ExportPlace,
    ExportRecord,
    Jobs,
    JobState,
    moved,
    with_changes,
    without,
)
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.manifest import Manifest, read_manifest
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.video.hardware import hardware_encoders
from explorer_app.messages import Action, Level, MessageLog, describe
from explorer_app.rendering.render_events import ExportAdvanced, ExportEnded
from gpu_backend import LoomError

if TYPE_CHECKING:
    from explorer_app.farm.job import FarmJob

_END_S = 10.0
"""Files under way are finished before the program ends, but a disk that hangs must not block the exit."""

_MAX_NAMED = 3


class ExportQueueController(QObject):
    """The list of exports: runs its jobs one at a time (`ExportRun`) and reports their progress and ends.

    A job begins when it is the first that waits and its model is open. The list survives the program: see `ExportJobs`.
    """

    changed = Signal()
    """`progress`."""
    jobs_changed = Signal()
    """`jobs`."""
    encoders_found = Signal(object)
    """The hardware encoders of this machine, after `find_encoders`."""
    log_arrived = Signal(str, object)
    """Name of a worker of the farm and what it logged last, after `request_log`; None if it is not there."""
    finished = Signal()
    """The last job that could begin has ended."""

    def __init__(
        self,
        runs: ExportRuns,
        model: ModelOpener,
        pending: PendingDocument,
        worker: FileWorker,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._runs = runs
        self._model = model
        self._models = JobModels(model, messages)
        self._pending = pending
        self._worker = worker
        self._messages = messages
        self._list = ExportJobs(worker, messages, parent=self)
        self._list.changed.connect(self.jobs_changed)
        self._current = ""
        """The job that runs, or whose settings are being read."""
        self._end: JobState = "cancelled"
        """State that the current job gets when it is stopped."""
        self._run: ExportRun | None = None
        """None while the current job's settings are being read."""
        self._stopped: SequenceJob | FarmJob | None = None
        """The last stopped job; it may still have files open."""
        self._is_closed = False
        self._has_succeeded = False
        self._ended: list[tuple[str, JobState]] = []
        """Jobs that ended since the last `finished`, with their final states."""
        self._last_run: Jobs = ()
        self._progress: ExportProgress | None = None
        model.loading_changed.connect(self._advance)

    @property
    def progress(self) -> ExportProgress | None:
        """Progress of the sequence under way; None without one."""
        return self._progress

    @property
    def has_succeeded(self) -> bool:
        """Whether all sequences of the last uninterrupted run were exported completely."""
        return self._has_succeeded

    @property
    def last_run(self) -> Jobs:
        """The jobs that ended one after the other before the last `finished`, with their final states."""
        return self._last_run

    @property
    def jobs(self) -> Jobs:
        """All exports, including other windows' exports; the waiting ones begin in this order."""
        return self._list.jobs

    @property
    def current(self) -> str:
        """The id of the job that runs; empty without one."""
        return self._current

    def is_own(self, job: ExportRecord) -> bool:
        """Return whether a job belongs to this window, and not to another one that is open."""
        return job.owner == self._list.owner

    def unfinished_in(self, folder: Path) -> dict[str, JobState]:
        """Return the names of the exports into a folder that run, wait or are paused, in whichever window."""
        place = str(folder.absolute())
        return {job.name: job.state for job in self.jobs if job.folder == place and job.is_unfinished}

    def waits_for(self, job: ExportRecord) -> str:
        """Return the name of the model that a waiting job needs to be opened; empty if it only waits for its turn."""
        return self._models.missing(job)

    # -- the list ---------------------------------------------------------------------------------------------------

    @Slot(object, object)
    def start(self, settings: SequenceSettings, place: ExportPlace = HERE) -> None:
        """Write a sequence in the background with the open model, after the waiting ones; the preview continues."""
        facts = self._model.facts
        if facts is None or settings.model.model_id != facts.model_id:
            self._messages.warning("An export needs the model that its keyframes were made with; open it first.")
            return
        self._put(settings, place)

    def find_encoders(self) -> None:
        """Look for hardware encoders in the background, which loads drivers; `encoders_found` delivers them."""
        self._worker.fetch(hardware_encoders, self.encoders_found.emit)

    def request_log(self, worker: str) -> None:
        """Fetch the latest log lines of a worker of the current export's farm; `log_arrived` delivers them."""
        if isinstance(self._run, FarmExport):
            self._run.request_log(worker)
        else:
            self.log_arrived.emit(worker, None)

    def open_list(self, shared: Path | None, folder: Path | None) -> None:
        """Read the list of a state folder and keep it there from now on; offer to continue interrupted exports."""
        if shared is not None and folder is not None:
            self._list.open(shared, folder, self._offer)

    @Slot()
    def refresh(self) -> None:
        """Read what other windows have done to the list."""
        self._list.refresh()

    @Slot(object)
    def resume(self, manifest: Path | str) -> None:
        """Continue the sequence of a manifest, with its model, which is opened first if its file is found."""
        path = Path(manifest)
        self._pending.read(lambda: read_manifest(path), self._resume_manifest, path)

    @Slot(str)
    def resume_job(self, job_id: str) -> None:
        """Queue a paused, failed or cancelled job again; existing frames are not rendered again."""
        record = self._list.find(job_id)
        if record is None or record.state not in ("paused", "failed", "cancelled") or not self.is_own(record):
            return
        self._set(job_id, state="waiting", error="")
        self._advance()
        if not self._current:
            self._models.open_for(record, Path(record.folder))

    def with_settings(self, job_id: str, take: Callable[[SequenceSettings], None]) -> None:
        """Pass on what a job makes, later if a file is read; a message says why if that is not known."""
        record = self._list.find(job_id)

        def taken(settings: SequenceSettings | LoomError) -> None:
            if isinstance(settings, LoomError):
                self._messages.exception(settings)
            else:
                take(settings)

        if record is not None:
            self._list.with_settings(record, taken)

    def redirect(self, job_id: str, settings: SequenceSettings, place: ExportPlace) -> None:
        """Let a paused, failed or cancelled job begin again with another folder, or on another device."""
        record = self._list.find(job_id)
        if record is None or record.state not in ("paused", "failed", "cancelled") or not self.is_own(record):
            return
        self._list.redirect(record, settings, place)
        self._advance()
        if not self._current:
            self._models.open_for(record, settings.folder)

    @Slot(str)
    def open_model_of(self, job_id: str) -> None:
        """Open the model that a waiting job needs, unless an export runs with another one."""
        record = self._list.find(job_id)
        if record is not None and self._current:
            self._messages.info(f"{record.model or 'Its model'} can be opened when the export that runs has ended.")
        elif record is not None:
            self._models.open_for(record, Path(record.folder))

    @Slot(str)
    def pause(self, job_id: str) -> None:
        """Stop a job after the frames that are made; it stays in the list until it is resumed."""
        self._stop(job_id, "paused")

    @Slot()
    def cancel(self, job_id: str = "") -> None:
        """Stop a job and the frame that is being made, the running one if none is named; it can be resumed later."""
        self._stop(job_id or self._current, "cancelled")

    @Slot(str)
    def remove(self, job_id: str) -> None:
        """Remove a job that does not run from the list; its files stay."""
        record = self._list.find(job_id)
        if record is not None and job_id != self._current and self.is_own(record):
            self._list.change(lambda jobs: without(jobs, (job_id,)))
            self._count_waiting()

    @Slot()
    def clear(self) -> None:
        """Remove finished, failed and cancelled exports from the list; their files stay."""
        ended = {job.job_id for job in self.jobs if not job.is_unfinished and self.is_own(job)}
        self._list.change(lambda jobs: without(jobs, ended))

    @Slot(str, int)
    def move(self, job_id: str, step: Literal[-1, 1]) -> None:
        """Let a waiting job begin before the waiting one before it (-1), or after the one after it (1)."""
        self._list.change(lambda jobs: moved(jobs, job_id, step))

    @Slot(str, int)
    def set_priority(self, job_id: str, priority: int) -> None:
        """Let the frames of a job on a farm come before or after those of others, from the next ones on."""
        record = self._list.find(job_id)
        if record is None or not self.is_own(record):
            return
        if job_id == self._current and isinstance(self._run, FarmExport):
            self._run.job.set_priority(priority)
        self._set(job_id, priority=priority)

    @Slot()
    def model_opened(self) -> None:
        """Begin the first job that waits for the model that is open now."""
        self._advance()
        self._models.note_opened(self.jobs)

    def close(self) -> None:
        """Wait for a limited time until files under way are complete. May be called twice."""
        self._is_closed = True
        running = None if self._run is None else self._run.job
        for job in (running, self._stopped):
            if job is not None:
                job.stop(cancelled=False)
                job.join(_END_S)
        if running is not None:
            self._set(self._current, done=running.done)
        self._list.close()

    # -- the running job ----------------------------------------------------------------------------------------------

    def take_advanced(self, event: ExportAdvanced) -> None:
        """Update the progress of a job on the render thread."""
        if self._run is not None and event.job is self._run.job and self._progress is not None:
            self._show(self._run.updated(self._progress))

    def take_ended(self, event: ExportEnded) -> None:
        """Report the end of a job on the render thread, and begin the next."""
        if event.error is not None:
            self._messages.exception(event.error)
        if self._run is not None and event.job is self._run.job:
            self._end_job(self._run, event.error, is_cancelled=event.is_cancelled)

    @Slot()
    def _take_farm_advanced(self) -> None:
        run = self._run
        if not isinstance(run, FarmExport) or self._progress is None:
            return
        for sentence in run.job.take_messages():
            self._messages.warning(sentence)
        record = self._list.find(self._current)
        if record is not None and record.priority != run.job.priority:
            self._set(self._current, priority=run.job.priority)
        self._show(run.updated(self._progress))

    @Slot()
    def _take_farm_ended(self) -> None:
        run = self._run
        if not isinstance(run, FarmExport):
            return
        check, error = run.job.spot_check, run.job.error
        if check is not None and not check.is_fine:
            self._messages.warning(check.sentence)
        if error is not None:
            self._messages.exception(error)
        self._end_job(run, error, is_cancelled=not run.job.has_ended)
        run.deleteLater()

    def _end_job(self, run: ExportRun, error: BaseException | None, *, is_cancelled: bool) -> None:
        """Report the end of the current job, and begin the next."""
        self._run = None
        job = self._stopped = run.job
        if error is not None:
            self._close_current("failed", job.done, describe(error)[0])
        elif is_cancelled:
            self._tell_stopped(self._current, run)
        else:
            self._close_current("done", job.total)
            self._tell_done(job.settings)
        self._advance()
        if not self._current:
            self._finish()

    def _tell_done(self, settings: SequenceSettings) -> None:
        """Say where the files of a complete job are."""
        total, folder, file = settings.frame_count, settings.folder, settings.single_path
        if file is not None:
            self._messages.info(f"Exported {_frames(total)} to {file}.", file=file)
        elif total == 1:
            picture = settings.frame_path(0)
            self._messages.info(f"Exported {picture}.", file=picture)
        else:
            last = settings.frame_path(total - 1)
            self._messages.info(f"Exported {_frames(total)} to {folder}.", file=folder, picture=last)

    def _tell_stopped(self, job_id: str, run: ExportRun) -> None:
        """Note how far the current job came, and offer to resume it."""
        job = run.job
        again = _again_text(job.delivered, job.delivered - run.kept)
        self._close_current(self._end, run.kept)

        def is_left() -> bool:
            record = self._list.find(job_id)
            return record is not None and record.state in ("paused", "cancelled")

        self._messages.post(
            Level.INFO,
            f"The export “{job.settings.name}” was {'paused' if self._end == 'paused' else 'stopped'} after "
            f"{job.delivered:,} of {_frames(job.total)}{again}.",
            action=Action("Resume export", lambda: self.resume_job(job_id), is_left),
        )

    # -- inside -----------------------------------------------------------------------------------------------------

    def _put(self, settings: SequenceSettings, place: ExportPlace = HERE) -> None:
        """Add a job behind the others, and begin it if none runs."""
        if sum(job.is_unfinished for job in self.jobs) >= MAX_JOBS:
            self._messages.warning(f"The list holds {MAX_JOBS:,} exports; wait until some of them are done.")
            return
        if self._run is not None and self._run.job.settings == settings and self._end_is_open:
            self._messages.info(f"The export “{settings.name}” is running already.")
            return
        if self._list.is_waiting(settings):
            self._messages.info(f"The export “{settings.name}” is waiting already.")
            return
        self._list.add(settings, place)
        self._advance()
        waits = self._progress is not None and self._progress.waiting
        if waits:
            self._messages.info(f"The export “{settings.name}” starts when the exports before it are done.")

    @property
    def _end_is_open(self) -> bool:
        return self._progress is not None and not self._progress.is_stopping

    @Slot()
    def _advance(self) -> None:
        """Begin the first job that waits for the open model, unless one runs."""
        facts = self._model.facts
        if not self._current and facts is not None and self._model.loading is None and not self._is_closed:
            waiting = (job for job in self.jobs if job.state == "waiting" and self.is_own(job))
            record = next((job for job in waiting if job.model_id == facts.model_id), None)
            if record is not None:
                self._begin(record)
        self._count_waiting()

    def _begin(self, record: ExportRecord) -> None:
        self._current, self._end = record.job_id, "cancelled"
        self._set(record.job_id, state="running", error="")
        self._show(ExportProgress(record.name, 0, record.total))

        def take(settings: SequenceSettings | LoomError) -> None:
            if self._current != record.job_id or self._is_closed:
                return
            if isinstance(settings, LoomError):
                self._messages.exception(settings)
                self._close_current("failed", 0, settings.sentence)
            elif not self._end_is_open:
                self._close_current(self._end, 0)
            elif self._start_run(record, settings):
                return
            self._advance()
            if not self._current:
                self._finish()

        self._list.with_settings(record, take)

    def _start_run(self, record: ExportRecord, settings: SequenceSettings) -> bool:
        """Start to render the current job where its record says; return whether that was possible."""
        if record.where == "here":
            self._run = self._runs.here(settings, self._stopped)
        else:
            try:
                self._run = farm = self._runs.on_farm(settings, record.place, self._stopped, self)
            except LoomError as error:
                self._messages.exception(error)
                self._close_current("failed", 0, error.sentence)
                return False
            farm.advanced.connect(self._take_farm_advanced)
            farm.log_arrived.connect(self.log_arrived)
            farm.ended.connect(self._take_farm_ended)
        self._run.start()
        return True

    def _stop(self, job_id: str, end: JobState) -> None:
        record = self._list.find(job_id)
        if record is None or not self.is_own(record) or not record.is_unfinished:
            return
        if job_id != self._current:
            self._set(job_id, state=end)
            self._count_waiting()
        elif self._end_is_open and self._progress is not None:
            self._end = end
            if self._run is not None:
                self._run.stop(pauses=end == "paused")
            self._show(replace(self._progress, is_stopping=True))

    def _close_current(self, state: JobState, done: int, error: str = "") -> None:
        self._set(self._current, state=state, done=done, error=error)
        self._ended.append((self._current, state))
        self._current = ""

    def _finish(self) -> None:
        self._has_succeeded = all(state == "done" for _, state in self._ended)
        self._last_run = tuple(filter(None, (self._list.find(job_id) for job_id, _ in self._ended)))
        self._ended = []
        self._show(None)
        self.finished.emit()

    def _set(self, job_id: str, **changes: object) -> None:
        self._list.change(lambda jobs: with_changes(jobs, job_id, **changes))

    def _count_waiting(self) -> None:
        """Show how many jobs come after the current one."""
        if self._progress is not None:
            waiting = sum(job.state == "waiting" and self.is_own(job) for job in self.jobs)
            self._show(replace(self._progress, waiting=waiting))

    def _resume_manifest(self, manifest: Manifest) -> None:
        settings = manifest.settings
        self._put(settings)
        record = next((job for job in reversed(self.jobs) if job.name == settings.name), None)
        if record is not None and record.state == "waiting" and not self._current:
            self._models.open_for(record, settings.folder)

    def _offer(self, interrupted: frozenset[str]) -> None:
        """Offer to resume the jobs that the last run left."""
        jobs = [job for job in self.jobs if job.job_id in interrupted]
        if not jobs:
            return

        def left() -> list[str]:
            return [job.job_id for job in self.jobs if job.job_id in interrupted and job.state == "paused"]

        def resume() -> None:
            for job_id in left():
                self.resume_job(job_id)

        words = "Resume export" if len(jobs) == 1 else "Resume exports"
        self._messages.post(Level.INFO, _offer_sentence(jobs), action=Action(words, resume, lambda: bool(left())))

    def _show(self, progress: ExportProgress | None) -> None:
        if progress != self._progress:
            self._progress = progress
            self.changed.emit()


def _offer_sentence(jobs: list[ExportRecord]) -> str:
    """Return the message about exports that are not finished."""
    if len(jobs) == 1:
        job = jobs[0]
        return f"The export “{job.name}” of {_frames(job.total)} in {job.folder} is not finished."
    names = ", ".join(f"“{job.name}”" for job in jobs[:_MAX_NAMED])
    return f"{len(jobs):,} exports are not finished: {names}{' and more' if len(jobs) > _MAX_NAMED else ''}."


def _again_text(delivered: int, lost: int) -> str:
    """Return what follows on the number of frames that were delivered, if the last ones of them were lost."""
    if not lost:
        return ""
    if delivered == 1:
        which = "which"
    elif lost == delivered:
        which = "all of which"
    else:
        which = "the last of which" if lost == 1 else f"the last {lost:,} of which"
    return f", {which} {'is' if lost == 1 else 'are'} rendered again"


def _frames(count: int) -> str:
    return f"{count:,} frame{'' if count == 1 else 's'}"
