"""What the window may ask for and is told."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot

from explorer_app.controller.adapting import adapt
from explorer_app.controller.device_selector import may_need_processor
from explorer_app.controller.documents import Documents
from explorer_app.controller.draft_colours import DraftKey
from explorer_app.controller.file_control import FileControl
from explorer_app.controller.known_model import KnownModel
from explorer_app.controller.restoring import Restoring, difference
from explorer_app.controller.whole_pictures import WholePictureKey
from explorer_app.rendering.render_events import (
    DirectionsAdvanced,
    DirectionsFailed,
    DirectionsFound,
    ExportAdvanced,
    ExportEnded,
    ModelOpened,
    ModelRefused,
    RenderEvent,
    RenderFailed,
    ThumbnailFailed,
    ThumbnailMade,
)
from explorer_app.session.edits import PLACE, AddSource, Edit, GoToSeed, SetParameter
from explorer_app.session.evaluate import Modulation
from explorer_app.session.history import place_name
from explorer_app.session.resolve import kept_latent
from explorer_app.session.session import ModelReference, Position, Session, Source
from explorer_app.session.storage import KeptSessions, SessionFile
from gpu_backend import (
    MAX_KEPT,
    MAX_TEXT,
    SEED_COUNT,
    Latent,
    ModelFacts,
    RecipeBudget,
    RenderRequest,
    RequestError,
    spend_latent,
)

if TYPE_CHECKING:
    from gpu_backend import DirectionSearch

_DRIFT = "drift"
"""The source of the edits of drifting."""


class Controller(FileControl):
    """Decides; the window asks and obeys. Lives on the thread of the window.

    Signals carry nothing: whoever hears one reads the property of the same name. `session_changed` comes at once for
    whatever is final, and with frames while a gesture is live (`LiveUpdates`).

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
    bundled_model, bundled_seed
        The model to open when there is no other, and the seed that a first session on it begins with.
    choice
        The device that the command line wishes for; None for that of the preferences.
    clock
        Seconds from anywhere, for latencies and merging.
    """

    def _connect(self) -> None:
        self._random = random.Random()
        self._said: set[str] = set()
        self._is_closed = False
        self._is_back = False
        self._last_model = ModelReference()
        self._documents = Documents(
            self._editor, self._models, self._exports, self._autosave, self._worker, self._messages, self._apply
        )
        self._preview.frame_changed.connect(self._frame_arrived)
        self._models.failed.connect(self._model_failed)
        self._models.withdrawn.connect(self._model_withdrawn)
        self._exports.resume_requested.connect(self.resume_export)
        self._autosave.kept_merged.connect(self._take_kept)
        self._autosave.history_loaded.connect(self._take_history)
        self._drift.moved.connect(self._drifted)
        self._renders.events_ready.connect(self._take_events, Qt.ConnectionType.QueuedConnection)

    # -- start and end ----------------------------------------------------------------------------------------------

    def start(self, model: Path | None = None, document: Path | None = None) -> None:
        """Bring back the last session and open its model: `model` if given, else the last one, else the bundled one.

        `document` is a session or a picture to open on top of it.
        """
        self.bring_back(model, document)
        self._exports.offer_unfinished(self._autosave.folder)
        self._renders.start()
        self._preview.set_measuring(self._settings.values.performance_visible)
        if document is not None:
            self.open_file(document)
        if self._models.loading is None:
            self._models.open_first(model, self._last_model)

    def bring_back(self, model: Path | None = None, document: Path | None = None) -> None:
        """Bring back the last session, the last picture, and what is known of the model before its file is read.

        `start` does it too; before the window is shown, it opens with a picture and with controls that work. The second
        call does nothing. Parameters are those of `start`.
        """
        if self._is_back:
            return
        self._is_back = True
        last = self._autosave.load()
        self._editor.begin(last or Session())
        if last is not None:
            self._last_model = last.model
        path = self._models.first_path(model, self._last_model) if document is None else None
        folder = self._autosave.folder
        known, self._stored_picture = self._last_start.load(folder, path, has_session=last is not None)
        if known is not None:
            self._expect(known)
        else:
            self._tell()

    def close(self) -> None:
        """Save the session, stop everything that runs and wait for it to end. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._drift.stop()
        self._editor.finish()
        self._live.stop()
        self._preview.close()
        self._whole_pictures.close()
        self._models.close()
        self._last_start.flush()
        self._save_now()  # before the wait for the device, which may be long
        self._renders.close()
        self._exports.close()
        self._autosave.close()
        self._worker.close()
        self._settings.save()

    # -- gestures ---------------------------------------------------------------------------------------------------

    @Slot(object, bool)
    def edit(self, edit: Edit, final: bool = True, source: str = "") -> None:
        """Apply an edit of a source: a panel, the canvas, a controller.

        Edits that are not final are one gesture with the final one after them, and one undo step. Gestures of other
        sources, and of other things, may be under way meanwhile. A final edit with no gesture before it (a key, a
        click) is a step of its own; steps of the same slider within 600 ms of each other are one.
        """
        if self._drift.is_on and not self._editor.is_gesturing(besides=_DRIFT):
            self._editor.finish(_DRIFT)  # so that undo takes back what the hand does, and not the way until then
        self._editor.edit(edit, final, self._clock(), source)
        self._show(live=self._editor.is_gesturing())

    @Slot()
    def cancel_gesture(self, source: str | None = None) -> None:
        """Bring back what was before the newest gesture of a source, None for any; nothing happens without one."""
        if self._editor.cancel(source):
            self._show(live=self._editor.is_gesturing())

    def set_modulation(self, modulation: Modulation) -> None:
        """Have controllers, sound or a timeline move the session from now on, without steps of undo."""
        self._modulation = modulation
        self._show(live=bool(modulation.modulators))

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
        """Bring back a kept session as a step of its own, with the model that it was kept with."""
        self._step(lambda: self._editor.go_to_kept(number))

    @Slot(int, bool)
    def set_starred(self, number: int, starred: bool) -> None:
        """Keep the step with this number (`HistoryEntry.number`), or no longer."""
        history = self._editor.history
        if starred and len(history.kept) >= MAX_KEPT and not history.is_kept(number):
            self._messages.warning(f"{MAX_KEPT:,} latents are kept already; take a star away to keep another.")
            return
        self._editor.star(number, starred, time.time())
        self._kept_changed()

    @Slot(int, str)
    def rename_kept(self, number: int, name: str) -> None:
        """Give a kept entry (`HistoryEntry.number`) another name; an empty one stands for its place."""
        entry = self._editor.history.entry(number)
        if entry is not None:
            self._editor.rename_kept(number, name.strip()[:MAX_TEXT] or place_name(entry.session))
            self._kept_changed()

    @Slot(int, object)
    def move_kept(self, number: int, before: int | None) -> None:
        """Move a kept entry before another one, None for the end."""
        self._editor.move_kept(number, before)
        self._kept_changed()

    @Slot()
    def keep_current(self) -> None:
        """Add the latent as it is now as a mix source, at strength 0 until it is painted."""
        if self.facts is None:
            return
        count = 1 + sum(source.label.startswith(("current ", "kept ")) for source in self.session.mix)
        # What lies between several recipes is no recipe: its rows are kept.
        stored = self.shown_latent if len(self.session.held) > 1 else None
        latent = kept_latent(self.session) if stored is None else Latent(stored)
        source = Source(latent, (0.0,) * self.facts.num_ws, f"current {count}")
        try:
            budget = RecipeBudget()
            for item in (*self.session.mix, source):
                spend_latent(item.latent, budget, 1)
        except RequestError as error:
            self._messages.warning(f"The mix is full; remove a source to add another. {error.sentence}")
            return
        self.edit(AddSource(source, "Mix in current"))

    def find_directions(
        self, search: DirectionSearch, having: Sequence[Session] = (), lacking: Sequence[Session] = ()
    ) -> None:
        """Search directions in the model that is open; `directions_state_changed` tells how far it is.

        What is found is kept beside the model or in the user's folder, and stands among the sliders.

        Parameters
        ----------
        search
            Its name gets a number where it is taken; its examples are those of the sessions.
        having, lacking
            For a search from examples: sessions with what the direction is to add, and without it.
        """
        if self.facts is not None and self.export is None:
            self._finding.start(search, having, lacking, self.facts)
        elif self.facts is not None:
            self._messages.warning("An export is running with this model; find directions when it has ended.")

    @Slot()
    def cancel_directions(self) -> None:
        """End the search for directions."""
        self._finding.cancel()

    @Slot()
    def take_directions_back(self) -> None:
        """Take the directions away that were found last."""
        if self.export is None:
            self._finding.take_back()

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
            self.drifting_changed.emit()
        else:
            self._stop_drifting()
            self._show()

    @Slot(float)
    def set_drift_speed(self, speed: float) -> None:
        """Set how fast it drifts, in seeds a second, clamped to -4..4."""
        self._settings.change(drift_speed=max(-4.0, min(4.0, speed)))
        self._drift.speed = self.drift_speed
        self.drifting_changed.emit()

    # -- small things -----------------------------------------------------------------------------------------------

    def request_thumbnail(self, key: Hashable, what: Session | RenderRequest) -> None:
        """Have a small frame made while nothing else is to do; `thumbnails_changed` tells when it is in `thumbnails`.

        Asking again for a key that is there or on its way costs nothing, so a widget may ask at every paint.
        """
        if self.facts is not None:
            self._thumbnails.ask(key, what, self.facts)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _step(self, move: Callable[[], bool]) -> None:
        """Undo, redo or go somewhere: what is under way becomes a step first, so that it can be taken back too."""
        self._stop_drifting()
        self._editor.finish()
        if move():
            self._editor.set_transient(self._adapted(self.session))
            self._follow_model()
        self._show()

    def _follow_model(self) -> None:
        """Have the step that one stands on shown by the model that it was made with; where that cannot be, say so."""
        step, facts = self._editor.history.current, self.facts
        if step is None or facts is None:
            return
        model = step.session.model
        if model.model_id not in ("", facts.model_id):
            self._documents.forget()  # what waits for a model is not wanted any more
        if not self._models.follow(model, can_open=self.export is None):
            why = "is not at hand" if self.export is None else "has to wait for the export"
            self._say_once(f"“{step.label}” was made with {model.name}, which {why}; {facts.name} shows it.")

    def _stop_drifting(self) -> None:
        if self._drift.is_on:
            self._drift.stop()
            self._editor.finish(_DRIFT)
            self.drifting_changed.emit()

    def _drifted(self, seeds: float) -> None:
        if self._editor.is_moving(PLACE, besides=_DRIFT):
            return  # a hand walks
        place = Position(self.session.position.x + seeds, self.session.position.y)
        self._editor.edit(SetParameter(PLACE, place, "Drift"), False, self._clock(), _DRIFT)
        self._show(live=True)

    def _adapted(self, session: Session) -> Session:
        return session if self.facts is None else adapt(session, self.facts).session

    def _show(self, *, live: bool = False) -> None:
        """Ask for the picture and tell the window: at once, or in step with frames in a live gesture."""
        if live or self._drift.is_on:
            self._live.changed()
        else:
            self._preview.ask(self.effective, live=False)
            self._tell()
        self._autosave.remember(self.session, self._editor.history)

    def _kept_changed(self) -> None:
        self._autosave.keep(self._editor.kept)
        self._tell_history()

    @Slot(object, object)
    def _take_kept(self, kept: KeptSessions, dropped: tuple[Session, ...]) -> None:
        self._editor.keep(kept)
        self._editor.drop_kept(dropped)
        self._tell_history()

    @Slot(object)
    def _take_history(self, file: SessionFile) -> None:
        self._editor.restore_history(file.steps, file.position)
        self._tell_history()

    @Slot()
    def _frame_arrived(self) -> None:
        self._said.discard("render")
        for warning in self.frame.warnings if self.frame else ():
            self._say_once(warning)
        self._stored_picture = None
        self.frame_changed.emit()
        self._live.frame_shown()
        self._last_start.frame_arrived()

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._messages.warning(sentence)

    @Slot()
    def _take_events(self) -> None:
        if self._is_closed:
            return
        events = self._renders.take_events()
        # A GPU renders hundreds of frames for files between two looks; only how far it is now is worth showing.
        newest = {event.job: event for event in events if isinstance(event, ExportAdvanced)}
        for event in events:
            if not isinstance(event, ExportAdvanced) or newest[event.job] is event:
                self._take(event)
        if any(isinstance(event, ThumbnailMade) for event in events):
            self.thumbnails_changed.emit()

    def _take(self, event: RenderEvent) -> None:
        match event:
            case ModelOpened():
                self._model_opened(event)
            case ModelRefused():
                self._models.take_refused(event)
            case RenderFailed(error=error):
                self._preview.render_failed()
                # A gesture asks a hundred times for what cannot be rendered; once is enough to be told.
                if "render" not in self._said:
                    self._said.add("render")
                    self._messages.exception(error)
            case ExportAdvanced():
                self._exports.take_advanced(event)
            case ExportEnded():
                self._exports.take_ended(event)
            case DirectionsAdvanced():
                self._finding.take_advanced(event)
            case DirectionsFound():
                self._finding.take_found(event)
            case DirectionsFailed():
                self._finding.take_failed(event)
            case ThumbnailMade(key=DraftKey(), frame=draft):
                self._preview.take_draft(draft)
            case ThumbnailMade(key=WholePictureKey() as key):
                self._whole_pictures.take_made(event, key)
            case ThumbnailFailed(key=WholePictureKey()):
                self._whole_pictures.take_failed(event)
            case ThumbnailMade():
                self._thumbnails.take_made(event)
            case ThumbnailFailed():
                self._thumbnails.take_failed(event)
            case _:
                self._take_engine_event(event)

    def _expect(self, known: KnownModel) -> None:
        """Go on with the model of the last start before it is open: what is asked for is answered when it is."""
        self._models.expect(known)
        self._preview.show_model(
            known.facts,
            is_gpu=not may_need_processor(self._settings, self.devices.choice),
            has_picture=self._stored_picture is not None,
        )
        self.model_changed.emit()
        self._fit_session(known.facts, None)

    @Slot()
    def _model_withdrawn(self) -> None:
        self._stored_picture = None
        self._preview.show_no_model()
        self.model_changed.emit()

    def _model_opened(self, event: ModelOpened) -> None:
        self._last_start.remember_model(event.facts, event.directions)
        if self._models.is_expected(event):
            self._models.take_opened(event)
            self._devices.take_opened(event)
            self._preview.show_device(self.devices.is_on_gpu)
            for warning in event.facts.warnings:
                self._say_once(warning)
            restoring = self._documents.take_waiting()
            if restoring is not None:
                self._apply(restoring)
            return
        before = self.facts
        self._thumbnails.clear()
        self._whole_pictures.clear()
        if before is None or before.model_id != event.facts.model_id:
            self._finding.forget()
        self._said.clear()
        self._models.take_opened(event)
        self._devices.take_opened(event)
        self._preview.show_model(event.facts, is_gpu=self.devices.is_on_gpu)
        self._forget_comparison()
        self.model_changed.emit()
        for warning in event.facts.warnings:
            self._say_once(warning)
        self._exports.take_opened(event.facts)
        restoring = self._documents.take_waiting() or self._documents.take_waiting_for(event.facts.model_id)
        if restoring is not None:
            self._apply(restoring)
            return
        self._editor.finish()
        step = self._editor.history.current
        if step is not None and step.session.model.model_id == event.facts.model_id != self.session.model.model_id:
            self._editor.set_transient(self._adapted(step.session))  # undo and the like led to it
            self._show()
            return
        self._fit_session(event.facts, before)

    def _fit_session(self, facts: ModelFacts, before: ModelFacts | None) -> None:
        """Fit the session to a model, say what had to change, and show it."""
        former = self._begun
        is_of_before = before is not None and before.model_id == former.model.model_id
        fitted = adapt(former, facts, before.usual_cutoff if before is not None and is_of_before else None)
        if former.model.model_id in ("", facts.model_id):
            self._editor.amend(fitted.session)
        else:
            self._editor.set_transient(fitted.session)
            self._editor.commit(f"Open {facts.name}")
        if fitted.changes:
            self._messages.info(f"The session was fitted to {facts.name}: {', '.join(fitted.changes)}.")
        self._show()

    @Slot()
    def _model_failed(self) -> None:
        restoring = self._documents.take_waiting()
        if restoring is not None and self.facts is not None:
            self._apply(restoring)

    def _apply(self, restoring: Restoring) -> None:
        """Bring back a session with the model that is open, and say so if it is another one."""
        facts = self.facts
        assert facts is not None
        self._stop_drifting()
        fitted = adapt(restoring.session, facts)
        if restoring.model.model_id not in ("", facts.model_id):
            self._documents.wait_for_model(restoring)
            self._messages.warning(*difference(restoring, facts, fitted.changes))
        self._editor.finish()
        self._editor.add_steps(restoring.steps)
        self._editor.set_transient(fitted.session)
        self._editor.commit(restoring.label)
        self._show()
