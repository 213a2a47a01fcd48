"""Files that a user opens and saves: models, sessions, pictures, latents.

A document is restored with its model if that is open or its file is known, otherwise with the open model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

import gpu_backend
from explorer_app.audio.sound_files import SoundFiles, with_relative_paths
from explorer_app.controller.editing import Editing
from explorer_app.controller.engine import Engine
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.pending_document import PendingDocument
from explorer_app.controller.photo_file import load_photo
from explorer_app.controller.project_place import ProjectPlace
from explorer_app.controller.restoring import Restoring, difference, picture_session, waiting
from explorer_app.controller.single_latents import FetchRows
from explorer_app.exporting.errors import NoRecipeError
from explorer_app.exporting.formats.picture_format import PICTURE_ENDINGS
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.sequence import MANIFEST_SUFFIX
from explorer_app.exporting.sheet import SheetDocument, read_picture_or_sheet
from explorer_app.messages import MessageLog
from explorer_app.session.adapting import adapt
from explorer_app.session.edited_latent import with_rows
from explorer_app.session.history import KeptSession
from explorer_app.session.session import Session, as_still, in_project_of
from explorer_app.session.storage import EXPORT_CHOICE, SessionFile, load_session_file, save_session
from explorer_app.settings import Settings
from gpu_backend import LoomError, ModelFacts, StoredLatent

_Project = tuple[Path | None, Session | None]
"""A `.loom` file, and the step that it ends with; None for none, or if that is not known."""

_OF_MACHINE = ("export.threads",)
"""Choices that belong to a machine and not to a project."""


class Files(QObject):
    """Opens and saves; a file is read and written on the worker's thread, and a message reports the end.

    Parameters
    ----------
    pending
        The document that is being opened; shared with exports, whose manifests are documents too.
    fetch_rows
        Computes w rows of sessions.
    place
        Remembers the project for the next start.
    """

    photo_opened = Signal(object)
    """A picture that holds no session was read: a `Photo`."""
    sheet_opened = Signal(Path, object)
    """A sheet was read: its path and its `SheetDocument`."""
    project_changed = Signal()
    """`project` is another file now, or `is_changed` differs."""

    def __init__(
        self,
        engine: Engine,
        editing: Editing,
        export: ExportQueueController,
        pending: PendingDocument,
        worker: FileWorker,
        messages: MessageLog,
        settings: Settings,
        fetch_rows: FetchRows,
        place: ProjectPlace,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._model = engine.model
        self._editing = editing
        self._export = export
        self._pending = pending
        self._worker = worker
        self._messages = messages
        self._settings = settings
        self._fetch_rows = fetch_rows
        self._place = place
        self._project: Path | None = None
        self._saved: Session | None = None
        """The step that the project's file ends with; None if that is not known."""
        self._was_changed = False
        self._project_count = 0
        self._projects: dict[int, tuple[_Project, _Project]] = {}
        """Number of the first step of an opened project -> the project before it, and itself."""
        editing.history_changed.connect(self._follow_history)
        editing.project_left.connect(self._follow_project)
        self._model.failed.connect(self._model_failed)
        self._model.replaced.connect(self._follow_model)
        editing.stepped.connect(self._follow_model)

    @property
    def project(self) -> Path | None:
        """The `.loom` file that was opened or saved last, also before the last start; None in a new session."""
        return self._project

    @property
    def is_changed(self) -> bool:
        """Whether the present step is another one than that which the project's file ends with, as far as is known."""
        step = self._editing.history.current
        return self._saved is not None and step is not None and step.session != self._saved

    def restore_project(self) -> None:
        """The session of the last run is shown again: so is its project."""
        self._project = self._place.read()
        self.project_changed.emit()

    def compare_project(self) -> None:
        """Read the project of the last run, so that `is_changed` knows what its file ends with."""
        path, count = self._project, self._project_count
        if path is None:
            return

        def read() -> Session | None:
            try:
                file = load_session_file(path)
            except LoomError:
                return None  # it was moved, or is damaged; opening it says so
            return file.steps[file.position][0] if file.position >= 0 else file.session

        def take(saved: Session | None) -> None:
            if self._project_count == count and self._saved is None:  # else it was saved meanwhile
                self._saved = saved
                self._follow_history()

        self._worker.fetch(read, take)

    def _set_project(self, project: _Project) -> None:
        path, self._saved = project
        if path != self._project:
            self._project, self._was_changed = path, self.is_changed
            self._place.remember(path)
            self.project_changed.emit()
        else:
            self._follow_history()

    @Slot()
    def _follow_history(self) -> None:
        is_changed = self.is_changed
        if is_changed != self._was_changed:
            self._was_changed = is_changed
            self.project_changed.emit()

    # -- models -----------------------------------------------------------------------------------------------------

    def open_model(self, path: Path | str | None = None) -> None:
        """Read a model file in the background and show it when it is ready; None opens the bundled model.

        The open model keeps rendering until then, and stays if the file is refused.
        """
        if self._export.progress is not None:
            self._messages.warning("An export is running with this model; wait for its end or cancel it, then open.")
            return
        self._pending.forget()
        self._model.open(None if path is None else Path(path))

    @Slot()
    def cancel_loading(self) -> None:
        """Stop opening; the model that is open stays."""
        self._pending.forget()
        self._model.cancel()

    # -- documents --------------------------------------------------------------------------------------------------

    def open(self, path: Path | str) -> None:
        """Open a file by its name: a picture, a session, a latent, a manifest, else a model or a latent of torch."""
        path = Path(path)
        if path.name.endswith(MANIFEST_SUFFIX):
            self._export.resume(path)
        elif path.suffix.lower() in PICTURE_ENDINGS:
            self.open_picture(path, or_photo=True)
        elif path.suffix.lower() in gpu_backend.PHOTO_SUFFIXES:
            self.open_photo(path)
        elif path.suffix.lower() in (".npz", ".npy"):
            self.import_latent(path)
        elif path.suffix.lower() == ".loom":
            self.open_session(path)
        elif path.suffix.lower() == ".pt":
            self._open_tensors(path)
        else:
            self.open_model(path)

    def open_picture(self, path: Path | str, *, or_photo: bool = False) -> None:
        """Restore the session of a saved picture and open its model; show a message if that is not found.

        A picture without a recipe is an error, or with `or_photo` a photo. Of a sheet, `sheet_opened` brings the
        recipes, to choose one for `take_picture`.
        """
        path = Path(path)

        def read() -> PictureDocument | SheetDocument | None:
            try:
                return read_picture_or_sheet(path)
            except NoRecipeError:
                if not or_photo:
                    raise
                return None

        def take(document: PictureDocument | SheetDocument | None) -> None:
            if document is None:
                self.open_photo(path)
            elif isinstance(document, SheetDocument):
                self.sheet_opened.emit(path, document)
            else:
                self.take_picture(path, document)

        self._pending.read(read, take, path)

    def open_photo(self, path: Path | str) -> None:
        """Read a picture whose latent is to be searched; `photo_opened` brings it."""
        path = Path(path)
        failed = f"{path.name} could not be read"
        self._worker.fetch(lambda: load_photo(path), self.photo_opened.emit, failed=failed, about=path)

    def take_picture(self, path: Path, document: PictureDocument) -> None:
        """Restore the session of a picture that was read from a file."""
        session = picture_session(document)
        self._restore(Restoring(session, document.model, f"The picture {path.name}", path.parent))

    @Slot()
    def new_session(self) -> None:
        """Begin again with the open model, as one step: an empty timeline, nothing set, nothing mapped."""
        facts = self._model.facts
        if facts is not None:
            self._pending.forget()
            session = adapt(Session(), facts).session
            self._begin_project(None, lambda: self._editing.restore(session, "New session", time_s=0.0))

    def open_session(self, path: Path | str) -> None:
        """Restore a `.loom` file, and keep its kept sessions; opens its model as `open_picture` does."""
        path = Path(path)

        def take(file: SessionFile) -> None:
            if file.kept:
                self._editing.kept.add(file.kept)
            for key, value in file.export.items():
                self._settings.choose(key, value)
            steps = file.steps[: file.position]  # the session itself comes after them
            times = file.step_times[: file.position]
            restoring = Restoring(
                file.session,
                file.session.model,
                f"The session {path.name}",
                path.parent,
                steps,
                times,
                project=path,
                time_s=file.time_s,
                is_still=any(time_s is not None for time_s in file.step_times),
            )
            self._restore(restoring)

        self._pending.read(lambda: _load(path), take, path)

    def save_session(self, path: Path | str) -> None:
        """Write the session, its history and the kept sessions to a `.loom` file."""
        path = Path(path)
        session, kept, history = self._editing.session, self._editing.kept.sessions, self._editing.history
        time_s = self._editing.time_s
        steps = tuple((entry.session, entry.label) for entry in history.entries)
        step_times = tuple(entry.time_s for entry in history.entries)
        choices = self._settings.values.choices
        export = {key: choices[key] for key in choices if key.startswith(EXPORT_CHOICE) and key not in _OF_MACHINE}
        count = self._project_count

        def write() -> None:
            _save(path, session, kept, steps, history.position, export, time_s, step_times)
            self._place.write(path)  # here, since the program may end before `take`

        def take(_: None) -> None:
            self._messages.info(f"Saved {path.name}.")
            self._editing.note_saved(history, kept)
            if self._project_count == count:  # else another project was opened meanwhile
                self._set_project((path, None if history.current is None else history.current.session))

        self._worker.fetch(write, take, failed=f"{path.name} could not be saved", about=path)

    def import_latent(self, path: Path | str) -> None:
        """Show w rows from a file (.npz, .npy, .pt) in place of the seed plane's point, as one undo step."""
        path = Path(path)
        self._pending.read(lambda: _only_latent(path), lambda stored: self._take_latent(path, stored), path)

    def _open_tensors(self, path: Path) -> None:
        """Open a file of torch: rows of w if that is what it holds, else a model."""

        def read() -> StoredLatent | None:
            try:
                return gpu_backend.read_latent(path)
            except gpu_backend.LoomError:
                return None

        self._pending.read(
            read, lambda stored: self.open_model(path) if stored is None else self._take_latent(path, stored)
        )

    def _take_latent(self, path: Path, stored: StoredLatent) -> None:
        facts = self._model.facts
        if facts is not None and (stored.w_dim != facts.w_dim or stored.num_ws not in (1, facts.num_ws)):
            self._messages.error(
                f"{path.name} has {stored.num_ws} rows of {stored.w_dim} numbers, but {facts.name} takes "
                f"{facts.num_ws} of {facts.w_dim}; it belongs to another model.",
                about=path,
            )
            return
        session = with_rows(self._editing.session, stored)
        restoring = Restoring(session, session.model, f"The latent {path.name}", label="Import latent")
        if facts is None or self._model.loading is not None:
            self._wait(restoring)
        else:
            self._apply(restoring, facts)

    def export_latent(self, path: Path | str) -> None:
        """Write the w rows of the picture to a .npz, .npy or .pt file."""
        path = Path(path)
        stored = self._editing.shown_latent
        if stored is None:
            self._messages.warning("The latent can be exported once its picture is rendered; wait a moment.")
            return
        self._worker.submit(
            lambda: gpu_backend.write_latent(path, stored),
            done=f"Saved {path.name}.",
            failed=f"{path.name} could not be saved",
            about=path,
        )

    def import_kept(self, path: Path | str) -> None:
        """Keep the latents of a file (.npz, .npy, .pt), with their names."""
        path = Path(path)

        def take(latents: tuple[tuple[str, StoredLatent], ...]) -> None:
            facts = self._model.facts
            if facts is None:
                self._messages.warning("Open the model of these latents first, then import them.")
                return
            fitting = [
                (name, stored)
                for name, stored in latents
                if stored.w_dim == facts.w_dim and stored.num_ws in (1, facts.num_ws)
            ]
            if len(fitting) < len(latents):
                self._messages.error(f"{path.name} has latents of another model than {facts.name}.", about=path)
                return
            now_s = time.time()
            base = as_still(self._editing.session)
            kept = tuple(
                KeptSession(with_rows(base, stored), " ".join(name.split()) or path.stem, now_s)
                for name, stored in fitting
            )
            count = len(kept) - self._editing.kept.add(kept)
            self._messages.info(f"{count:,} latent{'' if count == 1 else 's'} from {path.name} kept.")

        failed = f"{path.name} could not be read"
        self._worker.fetch(lambda: gpu_backend.read_latents(path), take, failed=failed, about=path)

    def export_latents(self, sessions: Sequence[tuple[str, Session]], path: Path | str) -> None:
        """Write the w rows of named sessions to an .npz file, once the open model has computed them."""
        path = Path(path)
        names = [name for name, _ in sessions]

        def write(latents: Sequence[StoredLatent]) -> None:
            pairs = list(zip(names, latents, strict=True))
            self._worker.submit(
                lambda: gpu_backend.write_latents(path, pairs),
                done=f"Saved {path.name}.",
                failed=f"{path.name} could not be saved",
                about=path,
            )

        if self._model.facts is None:
            self._messages.warning("Open the model of these latents first, then export them.")
            return
        self._fetch_rows([session for _, session in sessions], write)

    def model_opened(self, facts: ModelFacts) -> bool:
        """Show the document that waited for the model that is open now; return whether there was one."""
        if self._model.loading is not None:
            return False  # this model was ready when another one was requested, maybe by the document
        restoring = self._pending.take_for(facts.model_id)
        if restoring is not None:
            self._apply(restoring, facts)
        return restoring is not None

    # -- inside -----------------------------------------------------------------------------------------------------

    def _restore(self, restoring: Restoring) -> None:
        """Show a document: with its model if that is open or found, otherwise with the open model."""
        facts, loading = self._model.facts, self._model.loading
        if facts is not None and loading is None and restoring.model.model_id == facts.model_id:
            self._apply(restoring, facts)
            return
        is_exporting = self._export.progress is not None
        path = None if is_exporting else self._model.known_path(restoring.model, restoring.beside)
        if path is not None:
            self._pending.wait_until_open(restoring)
            if facts is not None:
                self._messages.info(f"{restoring.what} was made with {restoring.model.name}, which is being opened.")
            if loading is None or Path(loading.path) != path:
                self._model.open(path)
        elif facts is None or loading is not None:
            self._wait(restoring)
        else:
            self._apply(restoring, facts)

    def _wait(self, restoring: Restoring) -> None:
        """Hold a document until the model that is being opened is open, without one until the user opens any."""
        if self._model.loading is not None:
            self._pending.wait_until_open(restoring)
        else:
            self._pending.wait_for_any(restoring)
            self._messages.warning(waiting(restoring))

    def _apply(self, restoring: Restoring, facts: ModelFacts) -> None:
        """Show a document with the open model, with a message if it is not the document's own model."""
        session = restoring.session
        if restoring.project is None:
            session = in_project_of(session, self._editing.session)  # its timeline may be of another model, too
        fitted = adapt(session, facts)
        if restoring.model.model_id not in ("", facts.model_id):
            self._pending.wait_until_found(restoring)
            self._messages.warning(*difference(restoring, facts, fitted.changes))
        elif fitted.changes and restoring.project is None:
            self._messages.info(f"The session was fitted to {facts.name}: {', '.join(fitted.changes)}.")
        shown, label, steps = fitted.session, restoring.label, restoring.steps
        if restoring.project is None:
            self._editing.restore(shown, label, steps, is_still=True)
        else:
            times, time_s, is_still = restoring.step_times, restoring.time_s, restoring.is_still
            restore = self._editing.restore
            self._begin_project(
                restoring.project, lambda: restore(shown, label, steps, times, time_s=time_s, is_still=is_still)
            )

    def _begin_project(self, project: Path | None, restore: Callable[[], None]) -> None:
        """Show another project by `restore`; undoing its first step leads back to the present one."""
        number, former = self._editing.history.next_number, (self._project, self._saved)
        restore()
        step = self._editing.history.current
        opened = project, None if project is None or step is None else step.session
        if self._editing.history.next_number > number:
            self._projects[number] = former, opened
        self._project_count += 1
        self._set_project(opened)

    @Slot(int, bool)
    def _follow_project(self, number: int, is_undone: bool) -> None:
        projects = self._projects.get(number)
        if projects is not None:
            self._project_count += 1
            self._set_project(projects[0] if is_undone else projects[1])

    @Slot()
    def _model_failed(self) -> None:
        restoring, facts = self._pending.take_waiting(), self._model.facts
        if restoring is not None and facts is not None:
            self._apply(restoring, facts)
        elif restoring is not None:
            self._wait(restoring)

    @Slot()
    def _follow_model(self) -> None:
        """Open the model that the current step was made with, or show a message why that is impossible."""
        step, facts = self._editing.history.current, self._model.facts
        if step is None or facts is None:
            return
        model = step.session.model
        if model.model_id not in ("", facts.model_id):
            self._pending.forget()
        is_exporting = self._export.progress is not None
        if not self._model.follow(model, can_open=not is_exporting):
            why = "has to wait for the export" if is_exporting else "was not found"
            if not is_exporting and self._model.was_replaced(model):
                why = "was not found: its file holds another model now"
            named = f"another {model.name}" if model.name == facts.name else model.name
            self._engine.warn_once(f"“{step.label}” was made with {named}, which {why}; {facts.name} shows it.")


def _only_latent(path: Path) -> StoredLatent:
    """Read the w rows of one picture. Raises LoomError also for those of several."""
    latents = gpu_backend.read_latents(path)
    if len(latents) > 1:
        raise LoomError(
            f"{path.name} holds latents of {len(latents):,} pictures, and one can be shown; Import latents…, in the "
            "menu of the library's order, keeps all of them."
        )
    return latents[0][1]


def _load(path: Path) -> SessionFile:
    """Read a session, and note where the sounds beside it are."""
    file = load_session_file(path)
    if file.session.timeline.sounds:
        with_relative_paths(file.session.timeline, SoundFiles.of_this_user(), path)
    return file


def _save(path: Path, session: Session, *rest: Any) -> None:
    """Write a session; the paths of its sounds are relative to its folder."""
    if session.timeline.sounds:
        timeline = with_relative_paths(session.timeline, SoundFiles.of_this_user(), path)
        session = replace(session, timeline=timeline)
    save_session(path, session, *rest)
