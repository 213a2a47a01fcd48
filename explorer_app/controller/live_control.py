"""Controllers that play the session: sampling once per frame, learning, recording, sending back.

Values never pass the undo history; patches, which say what moves what, do, and so do recorded takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer_app.controller.editing import Editing
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.live_inputs import INPUT_NAMES, InputKind, LiveInputs
from explorer_app.controller.live_updates import refresh_ms
from explorer_app.controller.playback import Playback
from explorer_app.inputs.sampler import Level as PatchLevel, LiveSampler, source_of
from explorer_app.inputs.sources import is_live, source_label
from explorer_app.messages import Action, Level, MessageLog
from explorer_app.session.edits import SetParameters
from explorer_app.session.number_paths import number_path
from explorer_app.session.parameter_names import name_in_text
from explorer_app.session.parameters import Parameter, SetParameter, parameter
from explorer_app.session.patch_file import load_patches, save_patches
from explorer_app.session.patch_table import Patches, SetPatches, checked, with_patch
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import Modulation
from explorer_app.session.session import Session
from gpu_backend import LoomError, dataclass

_LEARN_TRAVEL = 0.05
"""How far a control has to move to be learned: farther than a fader that trembles."""

_PRESSED = 0.999
"""First value of a source that is a button, which has no way to travel."""

_NOT_LEARNED = ("input/",)
"""A microphone never rests."""


@dataclass(frozen=True, slots=True)
class Learning:
    """A parameter that waits for a control, and the range that the control gets.

    `patch` is the one whose source the control replaces; None for that of the parameter, or a new one.
    """

    path: str
    label: str
    low: float
    high: float
    patch: Patch | None = None


class LiveControl(QObject):
    """Lets the live patches of the session move the picture.

    Parameters
    ----------
    inputs
        The inputs, whose board is read.
    clock
        Seconds from any origin.

    Attributes
    ----------
    inputs
        Which inputs are open.
    """

    learning_changed = Signal()
    """`learning`."""
    sampled = Signal()
    """A frame's values were read: `level`. At most once per frame, and only while something moves."""

    def __init__(
        self,
        inputs: LiveInputs,
        editing: Editing,
        playback: Playback,
        worker: FileWorker,
        messages: MessageLog,
        clock: Callable[[], float],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.inputs = inputs
        self._editing = editing
        self._playback = playback
        self._worker = worker
        self._messages = messages
        self._clock = clock
        self._sampler = LiveSampler()
        self._count = -1
        """`ValueBoard.count` at the last tick."""
        self._learning: Learning | None = None
        self._rest_values: dict[str, float] = {}
        """Values of the sources when learning began."""
        self._takes: dict[str, float] = {}
        """Parameters that are being recorded -> value of the session when their gesture began."""
        self._shown_session: Session | None = None
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(refresh_ms())
        self._timer.timeout.connect(self._tick)
        editing.sample_with(self._sample)
        editing.screen_changed.connect(self.follow_screen)
        inputs.changed.connect(self._inputs_changed)
        playback.take_ending.connect(self._end_takes)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def patches(self) -> Patches:
        """The session's patches, including patches of sounds."""
        return self._editing.session.patches

    @property
    def learning(self) -> Learning | None:
        """What waits for a control; None if nothing does."""
        return self._learning

    def level(self, patch: Patch) -> PatchLevel:
        """Return what a live patch did in the last frame."""
        return self._sampler.level(patch)

    def is_mapped(self, path: str) -> bool:
        """Return whether a controller moves a parameter."""
        return any(patch.parameter == path and is_live(patch.source) for patch in self.patches)

    def close(self) -> None:
        """Stop, and close the inputs. May be called twice."""
        self._timer.stop()
        self.inputs.close()

    @Slot(float)
    def follow_screen(self, hz: float) -> None:
        """Read the values once a refresh of the screen, whose rate is in Hz."""
        self._timer.setInterval(refresh_ms(hz))

    # -- learning ---------------------------------------------------------------------------------------------------

    @Slot(object)
    def learn_again(self, patch: Patch) -> None:
        """Wait for a control to move that replaces the one of a patch."""
        self.learn(patch.parameter, patch.low, patch.high, patch)

    def learn(self, path: str, low: float, high: float, patch: Patch | None = None) -> None:
        """Wait for a control to move, and map it to a parameter; `low` and `high` are the values at its ends."""
        number = number_path(path)
        if not number:
            self._messages.warning(f"A controller moves numbers, but {parameter(path).label.lower()} is not a number.")
            return
        path = number
        if not self.inputs.open_available():
            return  # the messages say why
        self._learning = Learning(path, name_in_text(path, self._editing.session), low, high, patch)
        self._rest_values = self.inputs.board.newest()
        learning = self._learning
        self._messages.post(
            Level.INFO,
            f"Move a knob, a fader or a key of a controller: it will move {learning.label}. Escape cancels.",
            action=Action("Cancel", self.stop_learning, lambda: self._learning is learning),
        )
        self.learning_changed.emit()

    @Slot()
    def stop_learning(self) -> None:
        """Wait no longer."""
        if self._learning is not None:
            self._learning = None
            self._rest_values = {}
            self.learning_changed.emit()

    def forget(self, path: str) -> None:
        """Remove the controllers of a parameter, as one step of undo."""
        kept = tuple(patch for patch in self.patches if patch.parameter != path or not is_live(patch.source))
        if kept != self.patches:
            self._editing.edit(SetPatches(kept, "Forget controller"))

    # -- the table --------------------------------------------------------------------------------------------------

    @Slot()
    def take_values(self) -> None:
        """Put the values that controllers give into the session, as one step of undo. Knobs let go until they move."""
        now, before = self._editing.effective, self._editing.session
        paths = dict.fromkeys(patch.parameter for patch in self.patches if self._sampler.level(patch).value is not None)
        edits = tuple(
            SetParameter(path, parameter(path).read(now))
            for path in paths
            if parameter(path).read(now) != parameter(path).read(before)
        )
        for path in paths:
            self._sampler.release(path)
        if edits:
            self._editing.edit(SetParameters(edits, "Apply controller values"))

    def save_preset(self, path: Path) -> None:
        """Write the live patches to a file, in the background; a message reports the end."""
        patches = tuple(patch for patch in self.patches if is_live(patch.source))
        what = "One patch is" if len(patches) == 1 else f"{len(patches)} patches are"
        self._worker.submit(
            lambda: save_patches(path, patches),
            done=f"{what} saved in {path.name}.",
            failed=f"{path.name} could not be saved",
            file=path,
        )

    def load_preset(self, path: Path) -> None:
        """Replace the live patches by a file's that the model can have, as one undo step; patches of sounds stay."""
        self._worker.fetch(lambda: load_patches(path), self._take_preset, failed=f"{path.name} could not be read")

    def _take_preset(self, patches: Patches) -> None:
        sounds = tuple(patch for patch in self.patches if not is_live(patch.source))
        fitted = self._editing.adapted(replace(self._editing.session, patches=patches)).patches
        left_out = len(patches) - len(fitted)
        if left_out:
            what = "One patch was" if left_out == 1 else f"{left_out} patches were"
            self._messages.info(f"{what} left out of the preset: this model has no such parameter.")
        try:
            self._editing.edit(SetPatches(checked((*sounds, *fitted)), "Open preset"))
        except LoomError as error:
            self._messages.warning(error.sentence)
            return
        self._offer_inputs(fitted)

    def _offer_inputs(self, patches: Patches) -> None:
        """Offer to switch on the inputs that patches need, and that are off."""

        def off() -> list[InputKind]:
            needed = {patch.source.split("/")[0] for patch in patches if patch in self.patches}
            return [kind for kind in INPUT_NAMES if kind in needed and not self.inputs.state(kind).is_on]

        def switch_on() -> None:
            for kind in off():
                self.inputs.set_on(kind, True)

        names = " and ".join(INPUT_NAMES[kind] for kind in off())
        if names:
            self._messages.post(
                Level.INFO,
                f"Controls of the preset act once {names} {'is' if len(off()) == 1 else 'are'} switched on.",
                action=Action(f"Switch on {names}", switch_on, lambda: bool(off())),
            )

    @Slot(str)
    def refuse(self, sentence: str) -> None:
        """Say why an edit of the table is impossible."""
        self._messages.warning(sentence)

    # -- once per frame ---------------------------------------------------------------------------------------------

    def _sample(self, session: Session) -> Modulation:
        """Return the modulation of the picture that is requested now. Called by `Editing`."""
        if not session.patches:
            return Modulation()
        return self._sampler.sample(session, self.inputs.board.newest(), self._clock(), self._takes)

    @Slot()
    def _tick(self) -> None:
        board = self.inputs.board
        has_news = board.count != self._count
        self._count = board.count
        if self._learning is not None and has_news:
            self._find_control(self._learning, board.newest())
        was_touched = bool(self._sampler.touched)
        if (has_news or self._sampler.is_settling or was_touched) and any(
            patch.is_on and is_live(patch.source) for patch in self.patches
        ):
            self._editing.follow_inputs()
        if has_news or was_touched:
            self.sampled.emit()
        self._record()
        self._send_back()

    def _find_control(self, learning: Learning, values: Mapping[str, float]) -> None:
        """Map the control that has moved farthest since learning began, if one has."""
        travels = {}
        for source, value in values.items():
            if source.startswith(_NOT_LEARNED):
                continue
            if source not in self._rest_values:
                self._rest_values[source] = 0.0 if value >= _PRESSED else value
            travels[source] = abs(value - self._rest_values[source])
        source = max(travels, key=travels.__getitem__, default="")
        if source and travels[source] >= _LEARN_TRAVEL:
            self._learned(learning, source)

    def _learned(self, learning: Learning, source: str) -> None:
        self.stop_learning()
        patches = self.patches
        index = next(
            (i for i, patch in enumerate(patches) if patch.parameter == learning.path and is_live(patch.source)), None
        )
        if learning.patch is not None and learning.patch in patches:  # else it was changed or removed meanwhile
            index = patches.index(learning.patch)
        try:
            if index is None:
                made = with_patch(patches, Patch(source, learning.path, learning.low, learning.high))
            else:
                made = (*patches[:index], replace(patches[index], source=source), *patches[index + 1 :])
        except LoomError as error:
            self._messages.warning(error.sentence)
            return
        self._editing.edit(SetPatches(made, "Learn controller"))
        self._messages.info(f"{source_label(source)} moves {learning.label}.")

    # -- recording --------------------------------------------------------------------------------------------------

    def _record(self) -> None:
        """Turn what controls move into gestures while the timeline records; they become keys when the control rests."""
        if not (self._playback.is_recording and self._playback.is_playing):
            return
        touched = self._sampler.touched
        for path in [path for path in self._takes if path not in touched]:
            self._end_take(path)
        for path, value in touched.items():
            row = parameter(path)
            if not self._playback.records(path):
                continue
            base = self._takes.setdefault(path, float(row.read(self._editing.session)))
            self._editing.edit(SetParameter(path, self._recorded(row, base, value)), False, _source(path))

    def _recorded(self, row: Parameter, base: float, value: float) -> float:
        is_added = any(
            patch.parameter == row.path and patch.mode == "add" and is_live(patch.source) for patch in self.patches
        )
        return float(row.clamped(base + value if is_added else value))

    @Slot()
    def _end_takes(self) -> None:
        for path in list(self._takes):
            self._end_take(path)

    def _end_take(self, path: str) -> None:
        del self._takes[path]
        self._sampler.release(path)
        value = parameter(path).read(self._editing.session)
        self._editing.edit(SetParameter(path, value), True, _source(path))

    # -- sending back -----------------------------------------------------------------------------------------------

    def _send_back(self) -> None:
        """Send where each control belongs, so that motor faders and rings follow hands, undo and the timeline."""
        session = self._editing.session
        if not self.inputs.sends or (session is self._shown_session and not self._sampler.touched):
            return
        self._shown_session = session
        values = {}
        for patch in session.patches:
            if not patch.is_on or patch.mode != "set" or not is_live(patch.source):
                continue
            if patch.parameter in self._sampler.touched:
                self._shown_session = None  # once it rests
                continue
            level = self._sampler.level(patch)
            value = level.value if level.value is not None else float(parameter(patch.parameter).read(session))
            values[patch.source] = source_of(patch, value)
        self.inputs.show(values)

    @Slot()
    def _inputs_changed(self) -> None:
        if self.inputs.is_any_on:
            self._timer.start()
        else:
            self._timer.stop()
            self.stop_learning()
        self._shown_session = None
        self.sampled.emit()


def _source(path: str) -> str:
    """Return the source of the gestures of a parameter's control, for `Editing.edit`."""
    return f"live/{path}"
