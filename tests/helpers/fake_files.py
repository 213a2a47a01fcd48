"""Stand-ins for files that are opened and saved, and for exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from explorer_app.controller.progress import ExportProgress
from explorer_app.exporting.export_list import HERE, ExportPlace, ExportRecord, Jobs, JobState
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.session.session import Session
from tests.helpers.fake_searches import Calls

if TYPE_CHECKING:
    from tests.helpers.fake_controller import FakeModel


class FakeFiles(QObject):
    """Stands for `Files`."""

    photo_opened = Signal(object)
    sheet_opened = Signal(Path, object)
    project_changed = Signal()

    def __init__(self, calls: Calls, model: FakeModel) -> None:
        super().__init__()
        self._calls = calls
        self._model = model
        self.project: Path | None = None
        self.is_changed = False

    def open_model(self, path: Path | str | None = None) -> None:
        self._calls.append(("open_model", path))

    def cancel_loading(self) -> None:
        self._calls.append(("cancel_loading",))
        self._model.load(None)

    def open(self, path: Path | str) -> None:
        self._calls.append(("open_file", Path(path)))

    def import_kept(self, path: Path) -> None:
        self._calls.append(("import_kept", path))

    def export_latents(self, entries: Sequence[tuple[str, Session]], path: Path) -> None:
        self._calls.append(("export_latents", [label for label, _ in entries], path))

    def open_picture(self, path: Path | str) -> None:
        self._calls.append(("open_picture", path))

    def take_picture(self, path: Path, document: PictureDocument) -> None:
        self._calls.append(("take_picture", path, document))

    def save_session(self, path: Path | str) -> None:
        self._calls.append(("save_session", path))

    def new_session(self) -> None:
        self._calls.append(("new_session",))

    def open_session(self, path: Path | str) -> None:
        self._calls.append(("open_session", path))


class FakePictures:
    """Stands for `PictureSaver`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def save(self, path: Path | str) -> None:
        self._calls.append(("save_picture", path))


class FakeExport(QObject):
    """Stands for `ExportQueueController`."""

    changed = Signal()
    jobs_changed = Signal()
    encoders_found = Signal(object)
    log_arrived = Signal(str, object)
    finished = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.progress: ExportProgress | None = None
        self.has_succeeded = False
        self.last_run: Jobs = ()
        self.jobs: Jobs = ()
        self.current = ""
        self.owner = ""
        self.missing_model = ""
        self.settings: SequenceSettings | None = None
        """What `with_settings` passes on."""

    def show_jobs(self, *jobs: ExportRecord) -> None:
        self.jobs = jobs
        self.jobs_changed.emit()

    def is_own(self, job: ExportRecord) -> bool:
        return job.owner == self.owner

    def unfinished_in(self, folder: Path) -> dict[str, JobState]:
        return {job.name: job.state for job in self.jobs if job.folder == str(folder) and job.is_unfinished}

    def waits_for(self, job: ExportRecord) -> str:
        return self.missing_model

    def find_encoders(self) -> None:
        self._calls.append(("find_encoders",))

    def request_log(self, worker: str) -> None:
        self._calls.append(("request_log", worker))

    def refresh(self) -> None:
        self._calls.append(("refresh_exports",))

    def pause(self, job_id: str) -> None:
        self._calls.append(("pause_export", job_id))

    def set_priority(self, job_id: str, priority: int) -> None:
        self._calls.append(("set_priority", job_id, priority))

    def resume_job(self, job_id: str) -> None:
        self._calls.append(("resume_job", job_id))

    def with_settings(self, job_id: str, take: Callable[[SequenceSettings], None]) -> None:
        if self.settings is not None:
            take(self.settings)

    def redirect(self, job_id: str, settings: SequenceSettings, place: ExportPlace) -> None:
        self._calls.append(("redirect_export", job_id, settings, place))

    def remove(self, job_id: str) -> None:
        self._calls.append(("remove_export", job_id))

    def move(self, job_id: str, step: int) -> None:
        self._calls.append(("move_export", job_id, step))

    def clear(self) -> None:
        self._calls.append(("clear_exports",))

    def start(self, settings: SequenceSettings, place: ExportPlace = HERE) -> None:
        self._calls.append(("start_export", settings) if place == HERE else ("start_export", settings, place))

    def open_model_of(self, job_id: str) -> None:
        self._calls.append(("open_model_of", job_id))

    def resume(self, manifest: Path | str) -> None:
        self._calls.append(("resume_export", Path(manifest)))

    def cancel(self, job_id: str = "") -> None:
        self._calls.append(("cancel_export", job_id) if job_id else ("cancel_export",))
