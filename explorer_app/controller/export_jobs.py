"""The list of exports as a window has it: changed in memory at once, and on the disk by the files thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from explorer_app.controller.file_worker import FileWorker
from explorer_app.exporting.export_list import HERE, Change, ExportPlace, ExportRecord, Jobs, find, new_record, with_job
from explorer_app.exporting.export_store import ExportStore
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import MessageLog
from gpu_backend import LoomError

_NOT_NOTED = "The list of exports could not be saved, so the next start may not offer to continue them"


class ExportJobs(QObject):
    """The jobs of this window and, after `open`, of other windows and earlier starts.

    A change is applied to the list in memory and then, in the same order, to the file; what is read back from the file
    gets the changes that are still on their way there applied again.
    """

    changed = Signal()

    def __init__(self, worker: FileWorker, messages: MessageLog, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self._messages = messages
        self._store: ExportStore | None = None
        self._jobs: Jobs = ()
        self._on_their_way: list[Change] = []
        self._settings: dict[str, SequenceSettings] = {}
        """Settings of the jobs that this window added."""

    @property
    def jobs(self) -> Jobs:
        """All jobs, in the order in which waiting ones begin."""
        return self._jobs

    @property
    def owner(self) -> str:
        """How this window is named in the list."""
        return "" if self._store is None else self._store.owner

    def find(self, job_id: str) -> ExportRecord | None:
        """Return a job, None if it is not in the list."""
        return find(self._jobs, job_id)

    def is_waiting(self, settings: SequenceSettings) -> bool:
        """Return whether a job with these settings, which this window added, waits."""
        return any(job.state == "waiting" and self._settings.get(job.job_id) == settings for job in self._jobs)

    def open(self, shared: Path, folder: Path, take: Callable[[frozenset[str]], None]) -> None:
        """Read the list and keep it from now on; `take` gets the jobs of former starts that were interrupted."""
        self._store = store = ExportStore(shared, folder)
        found: set[str] = set()

        def claim() -> Jobs:
            jobs, interrupted = store.claim()
            found.update(interrupted)
            return jobs

        self._submit(claim, lambda jobs: jobs, lambda: take(frozenset(found)))

    def refresh(self) -> None:
        """Read what other windows have done."""
        self.change(lambda jobs: jobs)

    def add(self, settings: SequenceSettings, place: ExportPlace = HERE) -> ExportRecord:
        """Add a job that waits, and return it."""
        record = new_record(settings, self.owner, place)
        self._settings[record.job_id] = settings

        def change(jobs: Jobs) -> Jobs:
            return with_job(jobs, record)

        store = self._store
        self._apply(change)
        if store is not None:
            self._submit(lambda: store.add(record, settings, change), change)
        return record

    def redirect(self, record: ExportRecord, settings: SequenceSettings, place: ExportPlace) -> None:
        """Let a job make other settings in another place; it waits again."""
        fresh = new_record(settings, record.owner, place)
        done = record.done if fresh.folder == record.folder else 0
        new = replace(fresh, job_id=record.job_id, done=done)

        def change(jobs: Jobs) -> Jobs:
            return tuple(new if job.job_id == new.job_id else job for job in jobs)

        self._settings[record.job_id] = settings
        store = self._store
        self._apply(change)
        if store is not None:
            self._submit(lambda: store.add(new, settings, change), change)

    def change(self, change: Change) -> None:
        """Change the list."""
        store = self._store
        self._apply(change)
        if store is not None:
            self._submit(lambda: store.update(change), change)

    def with_settings(self, record: ExportRecord, take: Callable[[SequenceSettings | LoomError], None]) -> None:
        """Pass on what a job makes, or why that is not known; at once, if this window added it."""
        settings, store = self._settings.get(record.job_id), self._store
        if settings is not None or store is None:
            take(settings or LoomError(f"The settings of the export “{record.name}” are gone."))
            return

        def read() -> SequenceSettings | LoomError:
            try:
                return store.settings(record)
            except LoomError as error:
                return error
            except OSError as error:  # an answer all the same: the list waits for one
                why = f"The settings of the export “{record.name}” could not be read ({error.strerror or error})."
                return LoomError(why, str(error))

        self._worker.fetch(read, take)

    def close(self) -> None:
        """Release the jobs: the next start, or another window, offers to continue them."""
        if self._store is not None:
            self._worker.submit(self._store.close)

    def _apply(self, change: Change) -> None:
        jobs = change(self._jobs)
        if jobs != self._jobs:
            self._jobs = jobs
            self._settings = {job.job_id: self._settings[job.job_id] for job in jobs if job.job_id in self._settings}
            self.changed.emit()

    def _submit(self, task: Callable[[], Jobs], change: Change, then: Callable[[], None] = lambda: None) -> None:
        self._on_their_way.append(change)

        def run() -> Jobs | Exception:
            try:
                return task()
            except (OSError, LoomError) as error:
                return error

        def take(result: Jobs | Exception) -> None:
            self._on_their_way.pop(0)
            if isinstance(result, Exception):
                self._messages.warning(f"{_NOT_NOTED}.", str(result))
                return

            def read(_: Jobs) -> Jobs:
                jobs = result
                for change in self._on_their_way:
                    jobs = change(jobs)
                return jobs

            self._apply(read)
            then()

        self._worker.fetch(run, take)
