"""The sounds of the project: reads and analyses their files, lets them move the picture, and plays them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePosixPath

from PySide6.QtCore import QObject, Qt, Signal, Slot

from explorer_app.audio.analysis import Analysis
from explorer_app.audio.analysis_cache import analysis_of, envelope_of
from explorer_app.audio.player import Player
from explorer_app.audio.sound_files import SoundFiles, too_many_sounds, with_files
from explorer_app.controller.editing import Editing
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.playback import Playback
from explorer_app.messages import MessageLog
from explorer_app.session.envelopes import (
    Envelope,
    EnvelopeKey,
    free_name,
    needed_envelopes,
    sound_modulation,
    source_level,
    with_sound,
    without_sound,
)
from explorer_app.session.patch_table import SetPatches, with_patch
from explorer_app.session.patches import Patch
from explorer_app.session.resolve import NO_MODULATION, Modulation
from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import SetTimeline, TimelineError, with_grid
from explorer_app.session.tracks import MAX_SOUNDS, Sound, Timeline
from gpu_backend import LoomError, dataclass

_DROPPED = "Sounds that were still being read were not added, because another project was opened."


@dataclass(frozen=True, slots=True)
class _Read:
    """What reading a sound gave: its file and its analysis, or why not."""

    digest: str
    path: Path | None = None
    analysis: Analysis | None = None
    problem: str = ""


class Sounds(QObject):
    """Keeps the analyses of the session's sounds, and gives `Editing` and `Playback` what they make of them.

    Files are read on a thread of their own, since an analysis takes seconds: the disk of the session must not wait.
    """

    changed = Signal()
    """`analysis`, `is_missing`."""
    _lost = Signal(str)
    _found = Signal(str)

    def __init__(
        self,
        editing: Editing,
        playback: Playback,
        messages: MessageLog,
        files: SoundFiles | None = None,
        player: Player | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._editing = editing
        self._playback = playback
        self._messages = messages
        self._files = files or SoundFiles.of_this_user()
        self._worker = FileWorker(messages, parent=self)
        self._is_closed = False
        self._analyses: dict[str, Analysis] = {}
        self._paths: dict[str, Path] = {}
        self._requested: set[str] = set()
        """Sounds that are being read, and those that are missing: neither is read again by itself."""
        self._missing: set[str] = set()
        self._reads = 0
        """Sounds that are being read."""
        self._problems: dict[str, str] = {}
        """SHA-256 -> why the sound could not be read; told once none is being read."""
        self._project = 0
        """Number of the project; files that are being read belong to the one that was open when they were added."""
        self._envelopes: dict[EnvelopeKey, Envelope] = {}
        self._modulation: tuple[tuple[Patch, ...], tuple[Sound, ...], int, Modulation] = ((), (), 0, NO_MODULATION)
        self._seen: tuple[Sound, ...] = ()
        self._player = player or Player(self._lost.emit, found=self._found.emit)
        self._lost.connect(messages.warning, Qt.ConnectionType.QueuedConnection)
        self._found.connect(messages.info, Qt.ConnectionType.QueuedConnection)
        editing.sound_of = self.modulation_of
        playback.player = self
        editing.session_changed.connect(self._follow)
        editing.time_restored.connect(self._look_again)

    # -- what others read -------------------------------------------------------------------------------------------

    def analysis(self, digest: str) -> Analysis | None:
        """Return the analysis of a sound; None until it was read, and while its file is missing."""
        return self._analyses.get(digest)

    def is_missing(self, digest: str) -> bool:
        """Return whether a sound's file was not found."""
        return digest in self._missing

    def envelopes_of(self, session: Session) -> dict[EnvelopeKey, Envelope]:
        """Return the envelopes that a session's patches need, as far as its sounds were read."""
        for key in needed_envelopes(session):
            analysis = self._analyses.get(key[0])
            if key not in self._envelopes and analysis is not None:
                self._envelopes[key] = envelope_of(analysis, *key)
        return self._envelopes

    def modulation_of(self, session: Session) -> Modulation:
        """Return what the sounds move in a session; the same object while patches, sounds and files stay."""
        patches, sounds = session.patches, session.timeline.sounds
        if not patches or not sounds:
            return NO_MODULATION
        known = self._modulation
        if known[0] is patches and known[1] is sounds and known[2] == len(self._analyses):
            return known[3]
        made = sound_modulation(session, self.envelopes_of(session))
        self._modulation = (patches, sounds, len(self._analyses), made)
        return made

    def level(self, patch: Patch) -> float | None:
        """Return the value of a patch's sound at the playhead, 0..1; None if its sound is not there, or it is off."""
        session = self._editing.session
        return source_level(session, self.envelopes_of(session), patch, self._editing.time_s)

    # -- edits ------------------------------------------------------------------------------------------------------

    @Slot(object)
    def add(self, paths: Sequence[Path]) -> None:
        """Read sound files, or the files of folders, and put them on the timeline as one step.

        If another project is opened meanwhile they are dropped, with a message.
        """
        before, project = self._editing.session.timeline, self._project

        def is_gone() -> bool:
            return self._is_closed or project != self._project

        def read() -> Timeline | None:
            try:
                return with_files(before, paths, self._files, is_gone)
            except LoomError:
                if is_gone():
                    return None
                raise

        def take(made: Timeline | None) -> None:
            if made is None or is_gone():
                self._messages.warning(_DROPPED)
                return
            timeline = self._editing.session.timeline
            new = made.sounds[len(before.sounds) :]
            if len(timeline.sounds) + len(new) > MAX_SOUNDS:  # others were added while these were read
                self._messages.warning(too_many_sounds())
                return
            for sound in new:
                timeline = with_sound(timeline, _renamed(timeline, sound))
            longest = max((sound.seconds for sound in new), default=0.0)
            if not before.sounds and not timeline.tracks and timeline.end == Timeline().end:
                # The first sound of an empty timeline is what the piece will be about: its length is the timeline's.
                timeline = replace(timeline, end=Fraction(max(1, round(longest * 10)), 10))
            self._edit(timeline, "Add sound" if len(new) == 1 else f"Add {len(new)} sounds")

        self._worker.fetch(read, take, failed="The sound cannot be read")

    @Slot(str)
    def remove(self, name: str) -> None:
        """Take a sound off the timeline."""
        self._edit(without_sound(self._editing.session.timeline, name), "Remove sound")

    @Slot(object, str, bool)
    def change(self, sound: Sound, label: str, final: bool = True) -> None:
        """Replace a sound by another version: moved, louder, muted."""
        self._edit(with_sound(self._editing.session.timeline, sound), label, final)

    @Slot(str, object)
    def locate(self, name: str, path: Path) -> None:
        """Use a file for a sound whose own file is missing; another file than it was is refused."""
        sound = self._named(name)
        if sound is None:
            return

        def check() -> bool:
            if self._files.digest(path) != sound.digest:
                return False
            self._files.remember(sound.digest, path)
            return True

        def take(is_same: bool) -> None:
            if not is_same:
                self._messages.warning(f"{path.name} is another file than the sound “{name}”; add it as a new sound.")
                return
            self._requested.discard(sound.digest)
            self._missing.discard(sound.digest)
            self._follow()

        self._worker.fetch(check, take, failed=f"{path.name} cannot be read")

    @Slot(str)
    def use_tempo(self, name: str) -> None:
        """Take the tempo and the beats of a sound over as the timeline's grid, and snap to it."""
        sound = self._named(name)
        analysis = None if sound is None else self._analyses.get(sound.digest)
        if sound is None or analysis is None or not analysis.bpm:
            self._messages.warning(f"No steady beat was found in “{name}”.")
            return
        timeline = self._editing.session.timeline
        grid = replace(timeline.grid, bpm=analysis.bpm, offset=sound.start + analysis.first_beat)
        try:
            moved = with_grid(timeline, grid)
        except TimelineError as error:
            self._messages.warning(error.sentence)
            return
        self._edit(replace(moved, snap="beat"), "Tempo of the sound")

    @Slot(object)
    def drive(self, patch: Patch) -> None:
        """Add a patch."""
        try:
            patches = with_patch(self._editing.session.patches, patch)
        except LoomError as error:
            self._messages.warning(error.sentence)
            return
        self._editing.edit(SetPatches(patches, "Drive by sound"))

    def _named(self, name: str) -> Sound | None:
        return next((item for item in self._editing.session.timeline.sounds if item.name == name), None)

    def _edit(self, timeline: Timeline, label: str, final: bool = True) -> None:
        self._editing.edit(SetTimeline(timeline, label), final)

    # -- playing, called by `Playback` ------------------------------------------------------------------------------

    def start(self, timeline: Timeline, t: Fraction) -> None:
        """Play the sounds from a time on."""
        self._player.start(timeline, self._paths, t)

    def stop(self) -> None:
        """Stop playing."""
        self._player.stop()

    def set_volume(self, volume: float) -> None:
        """Set how loud the sounds are heard together, 0..1."""
        self._player.set_volume(volume)

    def elapsed_s(self) -> float | None:
        """Return how many seconds were heard; None if nothing is."""
        return self._player.elapsed_s()

    def close(self) -> None:
        """Stop playing and reading. May be called twice."""
        self._is_closed = True
        self._player.stop()
        self._worker.close()

    # -- inside -----------------------------------------------------------------------------------------------------

    @Slot()
    def _follow(self) -> None:
        """Read the sounds that the session has and that were not read; let what is heard follow the timeline."""
        sounds = self._editing.session.timeline.sounds
        if sounds is not self._seen and sounds != self._seen:
            self._seen = sounds
            if self._playback.is_playing:
                self._playback.restart_sound()
        for sound in sounds:
            if sound.digest not in self._requested:
                self._requested.add(sound.digest)
                self._reads += 1
                self._worker.fetch(partial(self._read, sound), self._take)

    @Slot()
    def _look_again(self) -> None:
        """Look for missing sounds again with the next change: a project is being opened, and they may be beside it.

        What is being added belongs to the former project.
        """
        self._project += 1
        self._requested -= self._missing
        self._missing.clear()

    def _read(self, sound: Sound) -> _Read:
        try:
            path = self._files.find(sound)
            analysis = analysis_of(path, sound.digest, lambda: self._is_closed)
        except LoomError as error:
            return _Read(sound.digest, problem=error.sentence)
        return _Read(sound.digest, path, analysis)

    def _take(self, read: _Read) -> None:
        self._reads -= 1
        if read.analysis is None or read.path is None:
            self._missing.add(read.digest)
            self._problems[read.digest] = read.problem
        else:
            self._analyses[read.digest], self._paths[read.digest] = read.analysis, read.path
            self._editing.refresh()
            if self._playback.is_playing:
                self._playback.restart_sound()
        if self._problems and not self._reads:
            self._tell_problems()
        self.changed.emit()

    def _tell_problems(self) -> None:
        """Report the sounds that could not be read, those of a project in one message; not of one that was left."""
        here = {sound.digest for sound in self._editing.session.timeline.sounds}
        problems = [problem for digest, problem in self._problems.items() if digest in here]
        self._problems.clear()
        count, do = len(problems), "right-click its lane in the timeline and choose “Locate file…”"
        if count == 1:
            self._messages.warning(f"{problems[0]} To use another file, {do}.")
        elif count:
            self._messages.warning(
                f"{count} sounds cannot be read. To use another file for one, {do}.", "\n".join(problems)
            )


def _renamed(timeline: Timeline, sound: Sound) -> Sound:
    """Return a sound, under another name if the timeline has one of its name by now."""
    is_taken = any(item.name == sound.name for item in timeline.sounds)
    return replace(sound, name=free_name(timeline, PurePosixPath(sound.path).stem)) if is_taken else sound
