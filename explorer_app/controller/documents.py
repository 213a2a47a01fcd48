"""Sessions and pictures from files and into files; what they remember comes back with its model if that is at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from explorer_app.controller.autosave import Autosave
from explorer_app.controller.editor import Editor
from explorer_app.controller.export_desk import ExportDesk
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.model_desk import ModelDesk
from explorer_app.controller.restoring import Restoring, picture_session
from explorer_app.exporting.picture import read_picture
from explorer_app.messages import MessageLog
from explorer_app.session.storage import SessionFileError, load_session_file, save_session
from gpu_backend import LoomError


class Documents:
    """Opens and saves.

    Parameters
    ----------
    editor, models, exports, autosave, worker, messages
        The parts that it asks.
    apply
        Brings back a session with the model that is open.
    """

    def __init__(
        self,
        editor: Editor,
        models: ModelDesk,
        exports: ExportDesk,
        autosave: Autosave,
        worker: FileWorker,
        messages: MessageLog,
        apply: Callable[[Restoring], None],
    ) -> None:
        self._editor = editor
        self._models = models
        self._exports = exports
        self._autosave = autosave
        self._worker = worker
        self._messages = messages
        self._apply = apply
        self._waiting: Restoring | None = None

    def open_picture(self, path: Path) -> None:
        """Bring back what a saved picture remembers."""
        try:
            document = read_picture(path)
        except LoomError as error:
            self._messages.exception(error)
            return
        self._restore(Restoring(picture_session(document), document.model, f"The picture {path.name}"))

    def open_session(self, path: Path) -> None:
        """Bring back a `.loom` file, and keep what was kept in it."""
        try:
            file = load_session_file(path)
        except SessionFileError as error:
            self._messages.exception(error)
            return
        if file.kept:
            self._editor.keep(file.kept)
            self._autosave.keep(self._editor.kept)
        self._restore(Restoring(file.session, file.session.model, f"The session {path.name}"))

    def save_session(self, path: Path) -> None:
        """Write the session and what was kept."""
        session, kept = self._editor.session, self._editor.kept
        self._worker.submit(
            lambda: save_session(path, session, kept),
            done=f"Saved {path.name}.",
            failed=f"{path.name} could not be saved",
        )

    def take_waiting(self) -> Restoring | None:
        """Return what waits for a model to be open, once."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def _restore(self, restoring: Restoring) -> None:
        """Bring back a session: with its model if that is open or at hand, else with the one that is open."""
        self._waiting = None
        facts, loading = self._models.facts, self._models.loading
        if facts is not None and loading is None and restoring.model.model_id == facts.model_id:
            self._apply(restoring)
            return
        path = None if self._exports.progress is not None else self._models.known_path(restoring.model)
        if path is not None:
            self._waiting = restoring
            if facts is not None:
                self._messages.info(f"{restoring.what} was made with {restoring.model.name}, which is being opened.")
            self._models.open(path)
        elif facts is None or loading is not None:
            self._waiting = restoring
        else:
            self._apply(restoring)
