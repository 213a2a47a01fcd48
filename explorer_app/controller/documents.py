"""Sessions and pictures from files and into files; what they remember comes back with its model if that is at hand.

Files are read and written on the worker's thread: a session with thousands of kept latents takes most of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gpu_backend
from explorer_app.controller.autosave import Autosave
from explorer_app.controller.editor import Editor
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.controller.file_worker import FileWorker, Result
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.restoring import Restoring, picture_session
from explorer_app.exporting.manifest import Manifest, read_manifest
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.messages import MessageLog
from explorer_app.session.edits import SetParameter
from explorer_app.session.storage import SessionFile, load_session_file, save_session
from gpu_backend import Latent, Recipe, StoredLatent


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
        models: ModelOpener,
        exports: ExportQueueController,
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
        self._unresolved: Restoring | None = None
        self._newest = 0
        """Number of the newest reading; what an older one brings is not wanted any more."""

    def open_picture(self, path: Path) -> None:
        """Bring back what a saved picture remembers."""

        def take(document: PictureDocument) -> None:
            session = picture_session(document)
            self._restore(Restoring(session, document.model, f"The picture {path.name}", path.parent))

        self._read(lambda: read_picture(path), take)

    def open_session(self, path: Path) -> None:
        """Bring back a `.loom` file, and keep what was kept in it."""

        def take(file: SessionFile) -> None:
            if file.kept:
                self._editor.keep(file.kept)
                self._autosave.keep(self._editor.kept)
            steps = file.steps[: file.position]  # the session itself comes after them
            self._restore(Restoring(file.session, file.session.model, f"The session {path.name}", path.parent, steps))

        self._read(lambda: load_session_file(path), take)

    def import_latent(self, path: Path) -> None:
        """Show w rows of a file in place of the seed plane's point."""

        def take(stored: StoredLatent) -> None:
            facts = self._models.facts
            if facts is not None and (stored.w_dim != facts.w_dim or stored.num_ws not in (1, facts.num_ws)):
                self._messages.error(
                    f"{path.name} has {stored.num_ws} rows of {stored.w_dim} numbers, but {facts.name} takes "
                    f"{facts.num_ws} of {facts.w_dim}; it belongs to another model."
                )
                return
            before = self._editor.session
            session = SetParameter("held", ((Recipe(Latent(stored), before.truncation), 1.0),)).apply(before)
            restoring = Restoring(session, session.model, f"The latent {path.name}", label="Import latent")
            if facts is None or self._models.loading is not None:
                self._waiting = restoring
            else:
                self._apply(restoring)

        self._read(lambda: gpu_backend.read_latent(path), take)

    def save_session(self, path: Path) -> None:
        """Write the session, its history and what was kept."""
        session, kept, history = self._editor.session, self._editor.kept, self._editor.history
        steps = tuple((entry.session, entry.label) for entry in history.entries)
        self._worker.submit(
            lambda: save_session(path, session, kept, steps, history.position),
            done=f"Saved {path.name}.",
            failed=f"{path.name} could not be saved",
        )

    def resume_export(self, path: Path) -> None:
        """Go on with the sequence of a manifest, with its model; that is opened first if it is at hand."""
        self._read(lambda: read_manifest(path), self._resume)

    def _resume(self, manifest: Manifest) -> None:
        settings, facts, loading = manifest.settings, self._models.facts, self._models.loading
        if self._exports.progress is not None:
            self._messages.warning("An export is running; wait for its end or cancel it, then resume another.")
            return
        if facts is not None and loading is None and settings.model.model_id == facts.model_id:
            self._exports.start(settings, facts)
            return
        model = settings.model
        path = self._models.known_path(model, settings.folder)
        if path is not None:
            self._exports.start_when_open(settings)
            if facts is not None:
                self._messages.info(f"The export “{settings.name}” goes on with {model.name}, which is being opened.")
            if loading is None or Path(loading.path) != path:
                self._models.open(path)
        elif facts is None or loading is not None:
            self._exports.start_when_open(settings)
        else:
            self._messages.warning(
                f"The export “{settings.name}” was made with {model.name or 'another model'}, which is not at hand; "
                "open that model, then resume the export.",
                f"Its model has the SHA-256 {model.model_id}.",
            )

    def take_waiting(self) -> Restoring | None:
        """Return what waits for a model to be open, once."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def wait_for_model(self, restoring: Restoring) -> None:
        """Bring a document back once more when its model is opened, which is not at hand now."""
        self._unresolved = replace(restoring, steps=())  # they are in the history already

    def take_waiting_for(self, model_id: str) -> Restoring | None:
        """Return the document that waits for a model to be opened by the person, once."""
        waiting = self._unresolved
        if waiting is None or waiting.model.model_id != model_id:
            return None
        self._unresolved = None
        return waiting

    def forget(self) -> None:
        """Bring nothing back that is still being read or waits: the person wants something else."""
        self._newest += 1
        self._waiting = None

    def _read(self, read: Callable[[], Result], take: Callable[[Result], None]) -> None:
        self.forget()
        self._unresolved = None
        number = self._newest
        self._worker.fetch(read, lambda result: take(result) if number == self._newest else None)

    def _restore(self, restoring: Restoring) -> None:
        """Bring back a session: with its model if that is open or at hand, else with the one that is open."""
        facts, loading = self._models.facts, self._models.loading
        if facts is not None and loading is None and restoring.model.model_id == facts.model_id:
            self._apply(restoring)
            return
        is_exporting = self._exports.progress is not None
        path = None if is_exporting else self._models.known_path(restoring.model, restoring.beside)
        if path is not None:
            self._waiting = restoring
            if facts is not None:
                self._messages.info(f"{restoring.what} was made with {restoring.model.name}, which is being opened.")
            if loading is None or Path(loading.path) != path:
                self._models.open(path)
        elif facts is None or loading is not None:
            self._waiting = restoring
        else:
            self._apply(restoring)
