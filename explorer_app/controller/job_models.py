"""The models that exports wait for."""

from __future__ import annotations

from pathlib import Path

from explorer_app.controller.model_opener import ModelOpener
from explorer_app.exporting.export_list import ExportRecord, Jobs, find
from explorer_app.messages import MessageLog
from explorer_app.session.session import ModelReference


class JobModels:
    """Opens the model that an export waits for, and tells the user where it cannot."""

    def __init__(self, model: ModelOpener, messages: MessageLog) -> None:
        self._model = model
        self._messages = messages
        self._opened_for = ""
        """The job whose model was opened for it last."""

    def missing(self, job: ExportRecord) -> str:
        """Return the name of the model that a waiting job needs to be opened; empty if it only waits for its turn."""
        facts = self._model.facts
        is_open = facts is not None and facts.model_id == job.model_id
        return "" if job.state != "waiting" or is_open else job.model or "it was made with"

    def open_for(self, job: ExportRecord, folder: Path) -> None:
        """Open the model of a job unless it is open; its file may lie beside `folder`."""
        facts, loading = self._model.facts, self._model.loading
        if facts is not None and loading is None and facts.model_id == job.model_id:
            return
        path = self._model.known_path(ModelReference("", job.model, job.model_id), folder)
        if path is not None:
            if facts is not None:
                self._messages.info(f"The export “{job.name}” continues with {job.model}, which is being opened.")
            self._opened_for = job.job_id
            if loading is None or Path(loading.path) != path:
                self._model.open(path)
        elif loading is None:
            self._messages.warning(
                f"The export “{job.name}” was made with {job.model or 'another model'}, which was not found; "
                "open that model to continue the export.",
                f"Its model has the SHA-256 {job.model_id}.",
            )

    def note_opened(self, jobs: Jobs) -> None:
        """Warn if the model that was opened for a job is another file of the same name."""
        facts, job = self._model.facts, find(jobs, self._opened_for)
        self._opened_for = ""
        if facts is None or job is None or job.state != "waiting" or facts.model_id == job.model_id:
            return
        if facts.name == job.model:
            self._messages.warning(
                f"The export “{job.name}” was made with another file named {job.model}, and waits for that; open "
                "it to continue the export, or export again with the model that is open.",
                f"Its model has the SHA-256 {job.model_id}, the open one {facts.model_id}.",
            )
