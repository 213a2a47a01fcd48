"""Edits of the session: gestures, undo, drifting. Each change requests a picture."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from PySide6.QtCore import QObject, Signal, Slot

import gpu_backend
from explorer_app.controller.autosave import Autosave
from explorer_app.controller.drift import Drift
from explorer_app.controller.editor import Editor
from explorer_app.controller.kept_pictures import KeptPictures
from explorer_app.controller.live_updates import LiveUpdates
from explorer_app.controller.model_fit import ModelFit
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.preview import Preview
from explorer_app.controller.replaced_projects import ReplacedProject, ReplacedProjects
from explorer_app.messages import MessageLog
from explorer_app.session.adapting import adapt, fit_edit, fit_parameters
from explorer_app.session.edits import PLACE, Edit, GoToSeed, SetParameters
from explorer_app.session.history import History
from explorer_app.session.parameter_names import name_in_text
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import NO_MODULATION, Modulation, content_of, evaluate, resolve, unobserved
from explorer_app.session.session import Position, Session
from explorer_app.session.storage import KeptSessions, SessionFile
from explorer_app.session.timeline.edits import TIMELINE, SetTimeline
from explorer_app.session.timeline.evaluation import changed_tracks, keyed_at, moves_something, with_walk
from explorer_app.session.tracks import Timeline
from explorer_app.settings import Settings
from gpu_backend import (
    SEED_COUNT,
    Frame,
    ModelFacts,
    StoredLatent,
)

_DRIFT = "drift"
"""The source of the edits of drifting."""

_SNAPSHOT = "Open snapshot"
"""Label of the step that going through snapshots is."""


class Recorder(Protocol):
    """Turns gestures into keys while the timeline plays."""

    def takes(self, edit: Edit) -> bool:
        """Return whether an edit is to be recorded."""
        ...

    def sample(self, edit: Edit, session: Session) -> None:
        """Record the values that an edit sets, as `session` has them."""
        ...

    def take(self, edit: Edit, session: Session) -> Edit:
        """Return the edit of the timeline that holds the gesture that ends with an edit."""
        ...

    def drop(self, edit: Edit) -> None:
        """Forget the gesture that was cancelled; `edit` is its newest one."""
        ...


class Editing(QObject):
    """Applies edits to the session, requests its picture from the preview and its writing from the autosave.

    Signals carry nothing: a receiver reads the property of the same name. `session_changed` comes at once for a final
    change, and with frames while a gesture is live (`LiveUpdates`).

    Parameters
    ----------
    model
        Sessions are fitted to the model that is open.
    first_seed
        Where the very first session on the bundled model begins.
    clock
        Seconds from any origin, for merging nudges, drifting and modulation.
    """

    session_changed = Signal()
    history_changed = Signal()
    drifting_changed = Signal()
    """`drifting`, `drift_speed`."""
    stepped = Signal()
    """Undo, redo or a click led to another step, which another model may have made. The picture is requested next."""
    project_left = Signal(int, bool)
    """The first step of an opened project, by its number, was undone (True), or redone."""
    time_restored = Signal(float)
    """`time_s` is that of a saved session now."""
    screen_changed = Signal(float)
    """The window is on a screen of another refresh rate, in Hz."""

    def __init__(
        self,
        model: ModelOpener,
        preview: Preview,
        autosave: Autosave,
        settings: Settings,
        messages: MessageLog,
        clock: Callable[[], float],
        *,
        first_seed: int = 0,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._preview = preview
        self._autosave = autosave
        self._settings = settings
        self._messages = messages
        self._clock = clock
        self._first_seed = first_seed
        self._random = random.Random()
        self._editor = Editor()
        self.kept = KeptPictures(self._editor, autosave, messages, self._announce_history, parent=self)
        self._announced_history = self._editor.history
        self._modulation = NO_MODULATION
        self.before_edit: list[Callable[[str], object]] = []
        """Called with the source of each edit that is about to be applied. A drag makes 60 edits a second, and a signal
        costs several times as much as a call."""
        self._sample: Callable[[Session], Modulation] | None = None
        """Reads live inputs for the picture that is about to be requested; None without any."""
        self.sound_of: Callable[[Session], Modulation] = lambda session: NO_MODULATION
        """What the sounds of a session move over its timeline."""
        self._projects = ReplacedProjects()
        self._is_time_moving = False
        self._model_fit = ModelFit()
        self.recorder: Recorder | None = None
        """Takes the edits that are recorded into the timeline; None while nothing plays."""
        self._live = LiveUpdates(self._request_live, self.session_changed.emit, parent=self)
        self._drift = Drift(clock, parent=self)
        self._drift.moved.connect(self._drifted)
        preview.frame_changed.connect(self._live.frame_shown)
        autosave.history_loaded.connect(self._take_history)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """Everything that the user has set."""
        return self._editor.session

    @property
    def unsaved(self) -> str:
        """Why the session, its history or what was kept cannot be saved at present; empty if it can."""
        return self._autosave.problem

    @property
    def effective(self) -> Session:
        """The session that is rendered: at the playhead, and with modulation at the present time."""
        return self.effective_of(self.session)

    def effective_of(self, session: Session) -> Session:
        """Return a session as it would be rendered now: at the playhead, and with modulation.

        In the order of `session_at`, so that without live inputs an export has the same pictures.
        """
        t = self._editor.time_s
        return with_walk(evaluate(evaluate(session, self.sound_of(session), t), self._modulation, self._clock()), t)

    @property
    def moved_by(self) -> str:
        """What moves the picture's latent or edits besides the session, and what to do against it; empty if nothing.

        Such as "Sound moves Sun height; switch that off in Controllers".
        """
        session, t = self.session, self._editor.time_s
        content = content_of(resolve(session))
        if content_of(resolve(self.effective)) == content:
            return ""
        sound, controllers = self.sound_of(session), self._modulation
        for what, modulation, at_s in (("Sound", sound, t), ("A controller", controllers, self._clock())):
            for item in modulation.modulators:
                if content_of(resolve(evaluate(session, Modulation((item,)), at_s))) != content:
                    return f"{what} moves {name_in_text(item.path, session)}; switch that off in Controllers"
        return "A walk moves the picture; mute its track in the timeline"

    @property
    def history(self) -> History:
        """Steps for undo and the strip, and kept sessions."""
        return self._editor.history

    @property
    def is_gesturing(self) -> bool:
        """Whether a gesture is under way, which undo cancels or reverts."""
        return self._editor.is_gesturing()

    @property
    def session_before(self) -> tuple[str, Session] | None:
        """A label, and the session before the gesture under way or else before the last step; None at the start.

        As undo shows it: of a step that was made elsewhere in time, what the keys say at the playhead.
        """
        history = self.history
        if self._editor.is_gesturing() and history.current is not None:
            label, step = "Before this gesture", history.current
        elif history.can_undo:
            label, step = f"Before “{history.undo_label}”", history.entries[history.position - 1]
        else:
            return None
        is_here = step.time_s == self._editor.time_s
        return label, step.session if is_here else keyed_at(step.session, self._editor.time_s)

    @property
    def shown(self) -> tuple[Session, Frame] | None:
        """The session and its full picture if that is on the screen; None otherwise, and during a gesture."""
        frame = self._preview.frame
        if (
            frame is None
            or frame.is_draft
            or self._editor.is_gesturing()
            or self.session.tap is not None
            or unobserved(frame.request) != resolve(self.session)
        ):
            return None
        return self.session, frame

    @property
    def shown_latent(self) -> StoredLatent | None:
        """The w rows of the session as it is now; None until its picture has arrived."""
        frame = self._preview.frame
        if frame is None or frame.ws is None or frame.request.blend != resolve(self.effective).blend:
            return None
        return gpu_backend.stored_latent(frame.ws)

    @property
    def drifting(self) -> bool:
        """Whether the point drifts over the seed plane."""
        return self._drift.is_on

    @property
    def drift_speed(self) -> float:
        """Seeds per second along the plane while drifting, -4..4."""
        return self._settings.values.drift_speed

    # -- edits ------------------------------------------------------------------------------------------------------

    @Slot(object, bool)
    def edit(self, edit: Edit, final: bool = True, source: str = "", *, by_search: bool = False) -> None:
        """Apply an edit of a source: a panel, the canvas, a controller.

        Edits that are not final are one gesture with the final one after them, and one undo step. Gestures of other
        sources, and of other things, may be under way meanwhile. A final edit with no gesture before it (a key, a
        click) is one step; steps of the same slider within 600 ms of each other are merged.

        An edit `by_search` requests no draft, since the next one comes later than a full picture, and delays no
        thumbnails.
        """
        self.announce_edit(source)
        if self._drift.is_on and not self._editor.is_gesturing(besides=_DRIFT):
            self._editor.finish(_DRIFT)  # so that undo reverts the edit, and not the drift until then
        fitted = self._fitted(edit)
        if fitted is None:
            self.refresh()  # the panel may show the value that it asked for
            return
        edit, recorder, timeline = fitted, self.recorder, self.session.timeline
        if recorder is not None and recorder.takes(edit):
            edit = self._recorded(edit, final, source, recorder)
        number = self.history.next_number
        self._editor.edit(edit, final, self._clock(), source)
        is_step = self.history.next_number > number
        if edit.target == TIMELINE:
            self._follow_time(timeline)
            if is_step:
                self._editor.amend_step()  # so that the step is what is shown
        self._show(live=(self._editor.is_gesturing() and not by_search) or self._is_time_moving, by_hand=not by_search)

    def _fitted(self, edit: Edit) -> Edit | None:
        """Return an edit for the open model; None if it sets what this model does not have."""
        facts = self._model.facts
        if facts is None:
            return edit
        if isinstance(edit, SetTimeline) and edit.timeline.z_dim != facts.z_dim:
            return replace(edit, timeline=replace(edit.timeline, z_dim=facts.z_dim))
        if isinstance(edit, SetParameters):
            return fit_parameters(edit, facts)
        return fit_edit(edit, facts) if isinstance(edit, SetParameter) else edit

    def _recorded(self, edit: Edit, final: bool, source: str, recorder: Recorder) -> Edit:
        """Record what an edit sets; return the edit to make: at the end of a gesture, that of the timeline."""
        recorder.sample(edit, edit.apply(self._editor.session))
        if not final:
            return edit
        take = recorder.take(edit, self._editor.session)
        self._editor.cancel_gesture_of(source, edit.target)
        return take

    def end_recorded(self) -> None:
        """Turn the gestures that are being recorded into keys, since recording, or an undo, ends before them."""
        for source, edit in self._editor.gestures:
            if self.recorder is not None and self.recorder.takes(edit):
                self.edit(edit, True, source)

    @Slot()
    def cancel_gesture(self, source: str | None = None) -> None:
        """Revert the newest gesture of a source, None for any; without one nothing happens."""
        timeline = self.session.timeline
        cancelled = self._editor.cancel(source)
        if cancelled is not None:
            if self.recorder is not None:
                self.recorder.drop(cancelled)
            if self.session.timeline is not timeline:  # else what was set by hand before the gesture stays
                self._follow_time()
            self._show(live=self._editor.is_gesturing() or self._is_time_moving)

    # -- time -------------------------------------------------------------------------------------------------------

    def advance(self, t: Fraction, *, live: bool) -> None:
        """Show the session as its timeline has it at a time in seconds, without a step.

        Parameters of active gestures keep their values. Where the playhead comes to rest is saved.
        """
        self._editor.time_s, self._is_time_moving = float(t), live
        if moves_something(self.session.timeline) or self.sound_of(self.session).modulators:
            self._follow_time()
            self._show(live=live, is_edit=False)
        if not live and self._model.facts is not None:
            self._save_soon()

    @property
    def time_s(self) -> float:
        """Time of the playhead, in seconds."""
        return self._editor.time_s

    def stay_at(self, time_s: float) -> None:
        """Put the playhead at a time in seconds, with the session as it is."""
        self._editor.time_s = time_s
        self.time_restored.emit(time_s)

    def _follow_time(self, before: Timeline | None = None) -> None:
        """Evaluate the timeline at the playhead; after an edit of `before`, the tracks that it changed.

        What else was set by hand stays until the playhead moves.
        """
        timeline, t = self.session.timeline, self._editor.time_s
        changed = timeline if before is None else changed_tracks(before, timeline)
        if moves_something(changed):
            self._editor.advance(
                lambda session: replace(keyed_at(replace(session, timeline=changed), t), timeline=session.timeline)
            )

    @Slot()
    def random_seed(self) -> None:
        """Jump to any seed."""
        self.edit(GoToSeed(self._random.randrange(SEED_COUNT), "Random seed"))

    def sample_with(self, sample: Callable[[Session], Modulation]) -> None:
        """Let live inputs modulate the session from now on, without undo steps.

        `sample` gets the session at the playhead, and is called for every picture, just before it is requested.
        """
        self._sample = sample

    def refresh(self) -> None:
        """Request the picture again: what its sounds move is known now."""
        self._show(live=self._is_time_moving or self._editor.is_gesturing(), is_edit=False, by_hand=False)

    def follow_inputs(self) -> None:
        """Request the picture with the newest values of live inputs, without a step, a save or an update of panels."""
        self._live.changed(panels=False)

    def _read_inputs(self) -> None:
        if self._sample is not None:
            self._modulation = self._sample(self.session)

    # -- undo and history -------------------------------------------------------------------------------------------

    @Slot()
    def undo(self) -> None:
        """Revert the last step; what the timeline moves is shown at the playhead, as before that step."""
        self._step(self._editor.undo, is_undo=True)

    @Slot()
    def redo(self) -> None:
        """Redo the step that undo reverted."""
        self._step(self._editor.redo)

    @Slot(int)
    def go_to(self, index: int) -> None:
        """Go to another step of the history, by its index in `history.entries`."""
        self._step(lambda: self._editor.go_to(index))

    @Slot(int)
    def go_to_kept(self, number: int) -> None:
        """Restore a kept session, and its model, as one step."""
        self._step(lambda: self._editor.go_to_kept(number))

    # -- drifting ---------------------------------------------------------------------------------------------------

    @Slot(bool)
    def set_drifting(self, on: bool) -> None:
        """Start or stop moving over the seed plane; the whole drift is one undo step."""
        if on == self._drift.is_on:
            return
        if on:
            self.announce_edit(_DRIFT)
            self._drift.start(self.drift_speed)
            self.drifting_changed.emit()
        else:
            self._stop_drifting()
            self._show()

    @Slot(float)
    def set_drift_speed(self, speed: float) -> None:
        """Set how fast it drifts, in seeds per second, clamped to -4..4."""
        self._settings.change(drift_speed=max(-4.0, min(4.0, speed)))
        self._drift.speed = self.drift_speed
        self.drifting_changed.emit()

    # -- what the other parts of the controller request -------------------------------------------------------------

    def begin(self, session: Session) -> None:
        """Begin with the session of the last start, or a fresh one; `announce` or a model follows."""
        self._model_fit.forget()
        self._editor.begin(session)

    def announce_edit(self, source: str) -> None:
        """Let what edits by itself, as a drag that settles, end before another source edits the session.

        What edits by itself calls it, too, when it begins: two that do would end each other.
        """
        for call in self.before_edit:
            call(source)

    def announce(self) -> None:
        """Emit that session and history changed, at once."""
        self._live.stop()
        self.session_changed.emit()
        self._announce_history()

    def restore(
        self,
        session: Session,
        label: str,
        steps: Sequence[tuple[Session, str]] = (),
        step_times: Sequence[float | None] = (),
        *,
        time_s: float | None = None,
        is_still: bool = False,
    ) -> None:
        """Show the session of a document, which suits the model, as a step after the steps that led to it.

        With `time_s` it is a project of its own, and puts the playhead there; undo brings back the former session with
        its playhead. With `is_still` it is shown whatever the keys at the playhead say, as a picture or a latent is.
        """
        self.announce_edit("")
        self._stop_drifting()
        self.end_recorded()
        self._editor.finish()
        self._model_fit.forget()
        number, former, former_s = self.history.next_number, self.session, self._editor.time_s
        if time_s is not None:
            self.stay_at(time_s)
        self._editor.add_steps(steps, step_times)
        self._editor.set_transient(session)
        self._editor.commit(label)
        if time_s is not None and self.history.next_number > number:
            self._projects.note(self.history, ReplacedProject(number, former, former_s, time_s))
        if session.timeline is not former.timeline and not is_still:
            self._follow_time()
        self._show()

    def add_step(self, label: str) -> int:
        """Append a step for a change outside the session, which its owner undoes; return the step's number."""
        number = self._editor.add_step(label)
        self.announce()
        self._save_soon()
        return number

    def model_opened(self, facts: ModelFacts, before: ModelFacts | None) -> None:
        """Show the session with the model that is open now; `before` was open until then."""
        self._editor.finish()
        step = self._editor.history.current
        is_of_step = step is not None and step.session.model.model_id == facts.model_id
        if step is not None and is_of_step and self._lacks_some_of(step.session, before):
            self._model_fit.forget()
            self._editor.set_transient(self.adapted(step.session))  # undo and the like led to it
            self._show()
        else:
            self.fit(facts, before)

    def fit(self, facts: ModelFacts, before: ModelFacts | None) -> None:
        """Fit the session to a model, report the changes, and show it."""
        former, is_browsing = self._begun, facts.path in self._model.browsed
        fitted, message = self._model_fit.fit(former, facts, before, is_browsing=is_browsing)
        current = self._editor.history.current
        is_next_snapshot = is_browsing and current is not None and current.label == _SNAPSHOT
        if former.model.model_id in ("", facts.model_id) or is_next_snapshot:
            self._editor.amend(fitted)
        else:
            self._editor.set_transient(fitted)
            self._editor.commit(_SNAPSHOT if is_browsing else f"Open {facts.name}")
        if message:
            self._messages.info(message)
        self._show()

    def note_saved(self, history: History, kept: KeptSessions) -> None:
        """Remember that the user has saved this history and what was kept to a file of their own."""
        self._autosave.note_elsewhere(history, kept)

    def save_now(self) -> None:
        """Write the session at once, and again what the system refused to write."""
        if self._model.facts is not None:
            self._save_soon()
            self._autosave.flush()
        self._autosave.write_again()

    def close(self) -> None:
        """End gestures and drifting, and write the session. May be called twice."""
        self._drift.stop()
        self._editor.finish()
        self._live.stop()
        self.save_now()

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _begun(self) -> Session:
        """The session; if nothing was ever set, the first session of the bundled model."""
        is_first = self._model.is_bundled and self.session == Session()
        return GoToSeed(self._first_seed).apply(self.session) if is_first else self.session

    def _step(self, move: Callable[[], bool], *, is_undo: bool = False) -> None:
        """Undo, redo or go to a step: active gestures become steps first, so that they can be undone too."""
        self._stop_drifting()
        number = self.history.next_number
        self.end_recorded()
        self._editor.finish()
        left = self.history
        timeline = self.session.timeline
        if not move():
            if self.history.next_number > number:
                self.announce_edit("")  # a step of what edits by itself, with nothing to redo after it, is its end
        else:
            self._model_fit.forget()
            replaced = self._leave_projects(left)
            self._editor.set_transient(self.adapted(replaced or self.session))
            current = self.history.current
            is_here = current is not None and current.time_s == self._editor.time_s
            if replaced is None and (is_undo or self.session.timeline != timeline) and not is_here:
                self._follow_time()  # the step before is of another time; one that is clicked shows its picture
            self.stepped.emit()
        self._show()

    def _leave_projects(self, left: History) -> Session | None:
        """Leave and enter the projects that begin between the step that was left and this one, with the playhead.

        Returns
        -------
        The session that a project replaced, if its first step was the last one to be undone.
        """
        history = self.history
        projects, is_undone = self._projects.between(left, history), history.position < left.position
        if not projects:
            return None
        self.stay_at(projects[-1].time_s if is_undone else projects[-1].later_s)
        for project in projects:
            self.project_left.emit(project.number, is_undone)
        if not is_undone or history.entries[history.position + 1].number != projects[-1].number:
            return None
        return replace(projects[-1].session, model=self.session.model)

    def _lacks_some_of(self, step: Session, before: ModelFacts | None) -> bool:
        """Return whether the session is a step as the model that was open until now could show it."""
        if before is None or self.session.model.model_id != step.model.model_id:
            return self.session.model.model_id != step.model.model_id
        return self.session != step and self.session == adapt(step, before).session

    def _stop_drifting(self) -> None:
        if self._drift.is_on:
            self._drift.stop()
            self._editor.finish(_DRIFT)
            self.drifting_changed.emit()

    @Slot(float)
    def _drifted(self, seeds: float) -> None:
        if self._editor.is_moving(PLACE, besides=_DRIFT):
            return  # a drag moves the point
        place = Position(self.session.position.x + seeds, self.session.position.y)
        self._editor.edit(SetParameter(PLACE, place, "Drift"), False, self._clock(), _DRIFT)
        self._show(live=True)

    def adapted(self, session: Session) -> Session:
        """Return a session as the open model can show it; the same if none is open."""
        facts = self._model.facts
        return session if facts is None else adapt(session, facts).session

    def _show(self, *, live: bool = False, is_edit: bool = True, by_hand: bool = True) -> None:
        """Request the picture and announce the session: immediately, or paced by frames during a live gesture.

        Time that passes is no edit, and not saved here.
        """
        if live or self._drift.is_on:
            self._live.changed()
        else:
            self._read_inputs()
            self._preview.request(self.effective, live=False, by_hand=by_hand)
            self.announce()
        if is_edit:
            self._save_soon()

    def _save_soon(self) -> None:
        self._autosave.remember(self.session, self._editor.history, self._editor.time_s)

    def follow_screen(self, hz: float) -> None:
        """Pace live gestures and controllers by the refresh rate of the screen, in Hz."""
        self._live.follow_screen(hz)
        self.screen_changed.emit(hz)

    def _request_live(self) -> None:
        self._read_inputs()
        self._preview.request(self.effective, live=True)

    def _announce_history(self) -> None:
        if self._editor.history is not self._announced_history:
            self._announced_history = self._editor.history
            self.history_changed.emit()

    @Slot(object)
    def _take_history(self, file: SessionFile) -> None:
        self._editor.restore_history(file.steps, file.position, file.step_times)
        self._autosave.renew_history(self._editor.history)
        self._announce_history()
