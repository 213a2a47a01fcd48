"""What the window may ask for and is told."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer_app.controller.adapting import adapt
from explorer_app.controller.autosave import Autosave
from explorer_app.controller.drift import Drift
from explorer_app.controller.editor import Editor
from explorer_app.controller.export_desk import ExportDesk
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.model_desk import ModelDesk
from explorer_app.controller.preview import Preview, thumbnail_request
from explorer_app.controller.progress import ExportProgress, Loading
from explorer_app.controller.restoring import Restoring, picture_session
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import MessageLog
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.rendering.model_loader import ModelLoader
from explorer_app.rendering.news import (
    ExportAdvanced,
    ExportEnded,
    ModelOpened,
    ModelRefused,
    News,
    RenderFailed,
    ThumbnailFailed,
    ThumbnailMade,
)
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.renderer_like import DeviceLike, DirectionsLike
from explorer_app.rendering.thumbnails import ThumbnailStore
from explorer_app.session.edits import AddSource, Edit, GoToSeed, ReplaceSession
from explorer_app.session.history import MAX_KEPT, History
from explorer_app.session.resolve import kept_latent, resolve
from explorer_app.session.session import ModelReference, Position, Session, Source
from explorer_app.session.storage import SessionFileError, load_session_file, save_session
from explorer_app.settings import RecentModel, Settings
from gpu_backend import SEED_COUNT, Frame, LoomError, ModelFacts, RenderRequest

_SESSION_INTERVAL_MS = 16
"""The window hears of a session that changes all the time this often; requests go out at once."""


class Controller(QObject):
    """Decides; the window asks and obeys. Lives on the thread of the window.

    Signals carry nothing: whoever hears one reads the property of the same name. `session_changed` comes at once for
    whatever is final, and at most sixty times a second while a gesture is live.

    Parameters
    ----------
    renders
        The rendering thread, started by `start` and closed by `close`.
    loader
        Reads model files.
    settings, messages
        Preferences, and where to tell the person something.
    state_folder
        Where the last session is kept; None keeps nothing.
    bundled_model
        The model to open when there is no other.
    clock
        Seconds from anywhere, for latencies and merging.
    """

    session_changed = Signal()
    frame_changed = Signal()
    model_changed = Signal()
    """facts, directions, device."""
    history_changed = Signal()
    statistics_changed = Signal()
    loading_changed = Signal()
    export_changed = Signal()
    thumbnails_changed = Signal()
    drifting_changed = Signal()
    """drifting, drift_speed."""
    recent_models_changed = Signal()

    def __init__(
        self,
        renders: RenderThread,
        loader: ModelLoader,
        settings: Settings,
        messages: MessageLog,
        *,
        state_folder: Path | None = None,
        bundled_model: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._settings = settings
        self._messages = messages
        self._clock = clock
        self._random = random.Random()
        self._editor = Editor()
        self._preview = Preview(renders, clock, parent=self)
        self._models = ModelDesk(renders, loader, settings, messages, bundled_model, parent=self)
        self._worker = FileWorker(messages)
        self._exports = ExportDesk(renders, self._worker, messages, clock, parent=self)
        self._autosave = Autosave(state_folder, self._worker, messages, parent=self)
        self._drift = Drift(clock, parent=self)
        self._thumbnails = ThumbnailStore()
        self._hopeless_thumbnails: set[Hashable] = set()
        self._restoring: Restoring | None = None
        self._is_closed = False
        self._said: set[str] = set()
        self._told_history = self._editor.history
        self._is_session_stale = False
        self._session_timer = QTimer(self)
        self._session_timer.setSingleShot(True)
        self._session_timer.setInterval(_SESSION_INTERVAL_MS)
        self._session_timer.timeout.connect(self._tell_session)
        self._connect()

    def _connect(self) -> None:
        self._preview.frame_changed.connect(self._frame_arrived)
        self._preview.statistics_changed.connect(self.statistics_changed)
        self._models.loading_changed.connect(self.loading_changed)
        self._models.failed.connect(self._model_failed)
        self._models.recent_models_changed.connect(self.recent_models_changed)
        self._exports.changed.connect(self.export_changed)
        self._autosave.kept_loaded.connect(self._take_kept)
        self._drift.moved.connect(self._drifted)
        self._renders.news_ready.connect(self._take_news, Qt.ConnectionType.QueuedConnection)

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """Everything that the person has set, as it is now."""
        return self._editor.session

    @property
    def frame(self) -> Frame | None:
        """The newest frame; it stays until the next one, another model's too. None before the first."""
        return self._preview.frame

    @property
    def facts(self) -> ModelFacts | None:
        """The model that is open."""
        return self._models.facts

    @property
    def directions(self) -> DirectionsLike | None:
        """Its directions."""
        return self._models.directions

    @property
    def device(self) -> DeviceLike | None:
        """On what it runs, and why."""
        return self._models.device

    @property
    def is_bundled(self) -> bool:
        """Whether the model that is open is the one that came with the program."""
        return self._models.is_bundled

    @property
    def loading(self) -> Loading | None:
        """The model on its way in."""
        return self._models.loading

    @property
    def history(self) -> History:
        """Steps for undo and the strip, and what was kept."""
        return self._editor.history

    @property
    def statistics(self) -> FrameStatistics:
        """What frames cost; the same object for good, its figures change."""
        return self._preview.statistics

    @property
    def export(self) -> ExportProgress | None:
        """The sequence on its way out."""
        return self._exports.progress

    @property
    def recent_models(self) -> tuple[RecentModel, ...]:
        """Models that were opened, newest first."""
        return self._settings.values.recent_models

    @property
    def thumbnails(self) -> ThumbnailStore:
        """Small frames by the keys they were requested with."""
        return self._thumbnails

    @property
    def drifting(self) -> bool:
        """Whether the picture walks the plane by itself."""
        return self._drift.is_on

    @property
    def drift_speed(self) -> float:
        """Seeds a second along the plane while drifting, -4..4."""
        return self._settings.values.drift_speed

    # -- start and end ----------------------------------------------------------------------------------------------

    def start(self, model: Path | None = None, document: Path | None = None) -> None:
        """Bring back the last session and open its model: `model` if given, else the last one, else the bundled one.

        `document` is a session or a picture to open on top of it.
        """
        last = self._autosave.load()
        self._editor.begin(last or Session())
        self._renders.start()
        self._tell()
        self._preview.set_measuring(self._settings.values.performance_visible)
        if document is not None:
            self.open_file(document)
        if self._models.loading is None:
            reference = last.model if last is not None else ModelReference(path=self._settings.values.last_model)
            self._models.open_first(model, reference)

    def close(self) -> None:
        """Save the session, stop everything that runs and wait for it to end. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._drift.stop()
        self._editor.finish()
        self._session_timer.stop()
        self._preview.close()
        self._models.close()
        self._renders.close()
        if self.facts is not None:
            self._autosave.remember(self.session)
        self._autosave.flush()
        self._worker.close()
        self._settings.save()

    # -- gestures ---------------------------------------------------------------------------------------------------

    @Slot(object, bool)
    def edit(self, edit: Edit, final: bool = True) -> None:
        """Apply an edit. Edits that are not final are one gesture with the final one after them, and one undo step.

        A final edit with no gesture before it (a key, a click) is a step of its own; steps of the same slider within
        600 ms of each other are one.
        """
        if not isinstance(edit, ReplaceSession) or self.facts is None:
            self._editor.edit(edit, final, self._clock())
        else:
            self._editor.edit(ReplaceSession(self._adapted(edit.session), edit.label), final, self._clock())
        self._show(live=not final)

    @Slot()
    def cancel_gesture(self) -> None:
        """Bring back what was before the gesture under way; nothing happens if there is none."""
        if self._editor.cancel():
            self._show()

    @Slot()
    def undo(self) -> None:
        """Take back the last step."""
        self._step(self._editor.undo)

    @Slot()
    def redo(self) -> None:
        """Bring back the step that undo took."""
        self._step(self._editor.redo)

    @Slot(int)
    def go_to(self, index: int) -> None:
        """Stand on another step of the history, by its index in `history.entries`."""
        self._step(lambda: self._editor.go_to(index))

    @Slot(int)
    def go_to_kept(self, number: int) -> None:
        """Bring back a kept session, as a step of its own."""
        entry = self._editor.history.entry(number)
        if entry is not None:
            self.edit(ReplaceSession(entry.session, "Kept"))

    @Slot(int, bool)
    def set_starred(self, number: int, starred: bool) -> None:
        """Keep the step with this number (`HistoryEntry.number`), or no longer."""
        history = self._editor.history
        if starred and len(history.kept) >= MAX_KEPT and not history.is_kept(number):
            self._messages.warning(f"{MAX_KEPT:,} latents are kept already; take a star away to keep another.")
            return
        self._editor.star(number, starred)
        self._autosave.keep(self._editor.kept)
        self._tell_history()

    @Slot()
    def keep_current(self) -> None:
        """Add the latent as it is now as a mix source, at strength 0 until it is painted."""
        if self.facts is None:
            return
        count = 1 + sum(source.label.startswith("kept ") for source in self.session.mix)
        source = Source(kept_latent(self.session), (0.0,) * self.facts.num_ws, f"kept {count}")
        self.edit(AddSource(source, "Keep current"))

    @Slot()
    def random_seed(self) -> None:
        """Jump to any seed."""
        self.edit(GoToSeed(self._random.randrange(SEED_COUNT), "Random seed"))

    @Slot(bool)
    def set_drifting(self, on: bool) -> None:
        """Let the picture walk the plane by itself, or stop; the whole way is one undo step."""
        if on == self._drift.is_on:
            return
        if on:
            self._drift.start(self.drift_speed)
        else:
            self._stop_drifting()
            self._show()
        self.drifting_changed.emit()

    @Slot(float)
    def set_drift_speed(self, speed: float) -> None:
        """Set how fast it drifts, in seeds a second, clamped to -4..4."""
        self._settings.change(drift_speed=max(-4.0, min(4.0, speed)))
        self._drift.speed = self.drift_speed
        self.drifting_changed.emit()

    # -- models -----------------------------------------------------------------------------------------------------

    def open_model(self, path: Path | str | None = None) -> None:
        """Read a model file in the background and show it when it is ready; None opens the bundled model.

        The model that is open stays and answers until then, and for good if the file is refused.
        """
        if self._exports.progress is not None:
            self._messages.warning("An export is running with this model; wait for its end or cancel it, then open.")
            return
        self._restoring = None
        self._models.open(None if path is None else Path(path))

    @Slot()
    def cancel_loading(self) -> None:
        """Stop opening; the model that is open stays."""
        self._restoring = None
        self._models.cancel()

    # -- files ------------------------------------------------------------------------------------------------------

    def open_file(self, path: Path | str) -> None:
        """Open whatever this is by its name: a picture, a session, else a model."""
        path = Path(path)
        if path.suffix.lower() == ".png":
            self.open_picture(path)
        elif path.suffix.lower() == ".loom":
            self.open_session(path)
        else:
            self.open_model(path)

    def save_picture(self, path: Path | str) -> None:
        """Write the picture in full with its recipe, in the background; a message says that it is there."""
        if self.facts is None:
            self._messages.warning("There is no picture to save: open a model first.")
            return
        self._exports.save_picture(Path(path), resolve(self.session), self.session, self.frame)

    def open_picture(self, path: Path | str) -> None:
        """Restore what a saved picture remembers; opens its model if that is known to be at hand, says so if not."""
        path = Path(path)
        try:
            document = read_picture(path)
        except LoomError as error:
            self._messages.exception(error)
            return
        self._restore(Restoring(picture_session(document), document.model, f"The picture {path.name}"))

    def save_session(self, path: Path | str) -> None:
        """Write the session and what was kept to a `.loom` file; a message says that it is there."""
        path = Path(path)
        session, kept = self.session, self._editor.kept
        self._worker.submit(
            lambda: save_session(path, session, kept),
            done=f"Saved {path.name}.",
            failed=f"{path.name} could not be saved",
        )

    def open_session(self, path: Path | str) -> None:
        """Restore a `.loom` file, and keep what was kept in it; opens its model as `open_picture` does."""
        path = Path(path)
        try:
            file = load_session_file(path)
        except SessionFileError as error:
            self._messages.exception(error)
            return
        if file.kept:
            self._editor.keep(file.kept)
            self._autosave.keep(self._editor.kept)
        self._restore(Restoring(file.session, file.session.model, f"The session {path.name}"))

    def start_export(self, settings: SequenceSettings) -> None:
        """Write a sequence in the background; the preview goes on. One sequence at a time."""
        if self.facts is None or settings.model.model_id != self.facts.model_id:
            self._messages.warning("An export needs the model that its keyframes were made with; open it first.")
            return
        self._exports.start(settings)

    @Slot()
    def cancel_export(self) -> None:
        """Stop the sequence after the frame that is being made; the same export goes on from there another time."""
        self._exports.cancel()

    # -- small things -----------------------------------------------------------------------------------------------

    def request_thumbnail(self, key: Hashable, what: Session | RenderRequest) -> None:
        """Have a small frame made while nothing else is to do; `thumbnails_changed` tells when it is in `thumbnails`.

        Asking again for a key that is there or on its way costs nothing, so a widget may ask at every paint.
        """
        facts = self.facts
        if facts is not None and key not in self._thumbnails and key not in self._hopeless_thumbnails:
            self._renders.ask_thumbnail(key, lambda: thumbnail_request(what, facts))

    @Slot(object)
    def frame_painted(self, frame: Frame) -> None:
        """Tell that a frame is on the screen: this is where gesture-to-screen latency is measured."""
        self._preview.frame_painted(frame)

    @Slot(bool)
    def set_measuring(self, on: bool) -> None:
        """Have steps measured about twice a second while pictures change: the performance panel is visible."""
        self._settings.change(performance_visible=on)
        self._preview.set_measuring(on)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _step(self, move: Callable[[], bool]) -> None:
        """Undo, redo or go somewhere: what is under way becomes a step first, so that it can be taken back too."""
        if self._drift.is_on:
            self._stop_drifting()
            self.drifting_changed.emit()
        self._editor.finish()
        if move():
            self._editor.wander(self._adapted(self.session))
        self._show()

    def _stop_drifting(self) -> None:
        self._drift.stop()
        self._editor.finish()
        self._editor.settle("Drift")

    def _drifted(self, seeds: float) -> None:
        if self._editor.is_walking:
            return  # the hand has it
        session = self.session
        place = Position(session.position.x + seeds, session.position.y)
        self._editor.wander(replace(session, position=place, held=()))
        self._show(live=True)

    def _adapted(self, session: Session) -> Session:
        return session if self.facts is None else adapt(session, self.facts).session

    def _show(self, *, live: bool = False) -> None:
        """Ask for the picture and tell the window."""
        live = live or self._drift.is_on
        self._preview.ask(self.session, live=live)
        if live:
            self._is_session_stale = True
            if not self._session_timer.isActive():
                self._tell_session()
        else:
            self._tell()
            self._autosave.remember(self.session)

    def _tell(self) -> None:
        """Tell the window at once what a person did."""
        self._session_timer.stop()
        self._is_session_stale = False
        self.session_changed.emit()
        self._tell_history()

    def _tell_session(self) -> None:
        """Tell the window what goes on changing, and not again too soon."""
        if self._is_session_stale:
            self._is_session_stale = False
            self._session_timer.start()
            self.session_changed.emit()

    def _tell_history(self) -> None:
        if self._editor.history is not self._told_history:
            self._told_history = self._editor.history
            self.history_changed.emit()

    @Slot()
    def _take_kept(self) -> None:
        self._editor.keep(self._autosave.take_kept())
        self._autosave.keep(self._editor.kept)
        self._tell_history()

    @Slot()
    def _frame_arrived(self) -> None:
        frame = self.frame
        if frame is not None:
            self._said.discard("render")
            for warning in frame.warnings:
                self._say_once(warning)
        self.frame_changed.emit()

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._messages.warning(sentence)

    @Slot()
    def _take_news(self) -> None:
        if self._is_closed:
            return
        all_news = self._renders.take_news()
        for news in all_news:
            self._take(news)
        if any(isinstance(news, ThumbnailMade) for news in all_news):
            self.thumbnails_changed.emit()

    def _take(self, news: News) -> None:
        match news:
            case ModelOpened():
                self._model_opened(news)
            case ModelRefused():
                self._models.take_refused(news)
            case RenderFailed(error=error):
                self._preview.render_failed()
                # A gesture asks a hundred times for what cannot be rendered; once is enough to be told.
                if "render" not in self._said:
                    self._said.add("render")
                    self._messages.exception(error)
            case ExportAdvanced():
                self._exports.take_advanced(news)
            case ExportEnded():
                self._exports.take_ended(news)
            case ThumbnailMade(key=key, frame=frame):
                self._thumbnails.put(key, frame)
            case ThumbnailFailed(key=key, error=error):
                self._hopeless_thumbnails.add(key)
                self._messages.note("A small picture could not be made.", f"{key}: {error}")

    def _model_opened(self, news: ModelOpened) -> None:
        self._renders.forget_thumbnails()
        self._thumbnails.clear()
        self._hopeless_thumbnails.clear()
        self._said.clear()
        self._models.take_opened(news)
        self._preview.show_model(news.facts)
        self.model_changed.emit()
        for warning in news.facts.warnings:
            self._say_once(warning)
        restoring, self._restoring = self._restoring, None
        if restoring is not None:
            self._apply(restoring)
            return
        self._editor.finish()
        former = self.session
        fitted = adapt(former, news.facts)
        if former.model.model_id in ("", news.facts.model_id):
            self._editor.adopt(fitted.session)
        else:
            self._editor.wander(fitted.session)
            self._editor.settle(f"Open {news.facts.name}")
        if fitted.changes:
            self._messages.info(f"The session was fitted to {news.facts.name}: {', '.join(fitted.changes)}.")
        self._show()

    @Slot()
    def _model_failed(self) -> None:
        restoring, self._restoring = self._restoring, None
        if restoring is not None and self.facts is not None:
            self._apply(restoring)

    def _restore(self, restoring: Restoring) -> None:
        """Bring back a session: with its model if that is open or at hand, else with the one that is open."""
        self._restoring = None
        facts = self.facts
        if facts is not None and self.loading is None and restoring.model.model_id == facts.model_id:
            self._apply(restoring)
            return
        path = None if self._exports.progress is not None else self._models.known_path(restoring.model)
        if path is not None:
            self._restoring = restoring
            if facts is not None:
                self._messages.info(f"{restoring.what} was made with {restoring.model.name}, which is being opened.")
            self._models.open(path)
        elif facts is None or self.loading is not None:
            self._restoring = restoring
        else:
            self._apply(restoring)

    def _apply(self, restoring: Restoring) -> None:
        """Bring back a session with the model that is open, and say so if it is another one."""
        facts = self.facts
        assert facts is not None
        if self._drift.is_on:
            self._stop_drifting()
            self.drifting_changed.emit()
        fitted = adapt(restoring.session, facts)
        if restoring.model.model_id != facts.model_id:
            name = restoring.model.name or "a model without a name"
            self._messages.warning(
                f"{restoring.what} was made with {name}, which is not at hand; {facts.name} shows it differently.",
                f"Its model has the SHA-256 {restoring.model.model_id or '(unknown)'}; {facts.name} has "
                f"{facts.model_id}.\n" + "\n".join(fitted.changes),
            )
        self._editor.finish()
        self._editor.wander(fitted.session)
        self._editor.settle("Restore")
        self._show()
