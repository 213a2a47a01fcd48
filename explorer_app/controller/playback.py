"""The playhead: playback in exact time, scrubbing, and recording of gestures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from operator import itemgetter
from typing import Any, Protocol

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from explorer_app.controller.editing import Editing
from explorer_app.messages import MessageLog
from explorer_app.session.edits import Edit, SetParameters
from explorer_app.session.parameter_names import name_in_text
from explorer_app.session.parameters import ParameterError, SetParameter, parameter
from explorer_app.session.session import Session, in_project_of
from explorer_app.session.timeline.edits import (
    SetTimeline,
    with_parameter_key,
    with_recorded,
    with_state,
)
from explorer_app.session.timeline.playing import played
from explorer_app.session.timeline.simplify import recorded_keys
from explorer_app.session.tracks import MAX_SECONDS, NO_TIMELINE, Timeline
from gpu_backend import LoomError

_LEAST_TICK_MS = 4

_STATE_GAP_S = 2
"""Seconds between the keys of states that are put on the timeline together."""

_STEPPED = ("choice", "rows", "layer", "source", "text", "flag", "mask", "integer")


class SoundPlayer(Protocol):
    """Plays the sounds of a timeline."""

    def start(self, timeline: Timeline, t: Fraction) -> None:
        """Play from a time on, in place of what plays."""
        ...

    def stop(self) -> None:
        """Stop. May be called twice."""
        ...

    def elapsed_s(self) -> float | None:
        """Return how many seconds were heard since `start`; None if nothing is heard."""
        ...


class Playback(QObject):
    """Moves the playhead over the session's timeline, and puts what is recorded into it.

    Playing follows the clock, or the sound that is heard: each tick shows the frame that is due, so frames are skipped
    and time is never slowed.

    Parameters
    ----------
    clock
        Seconds from any origin.
    """

    moved = Signal()
    """`time`."""
    playing_changed = Signal()
    """`is_playing`, `is_recording`, `armed`."""
    take_ending = Signal()
    """Recording is about to end; gestures that end now still become keys."""

    def __init__(
        self, editing: Editing, messages: MessageLog, clock: Callable[[], float], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._editing = editing
        self._messages = messages
        self._clock = clock
        self._time = Fraction(0)
        self._begun: tuple[Fraction, float] | None = None
        """Where and when playing began; None at rest."""
        self._followed = NO_TIMELINE
        """The timeline whose rate and range playing follows since it began."""
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._is_recording = False
        self._armed: frozenset[str] = frozenset()
        self._samples: dict[str, list[list[tuple[Fraction, Any]]]] = {}
        """What the gestures under way recorded, by parameter; a list for each pass of what plays."""
        self.player: SoundPlayer | None = None
        """Plays the timeline's sounds along; None without any."""
        editing.recorder = self
        editing.time_restored.connect(self._stay_at)
        editing.session_changed.connect(self._follow_edits)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> Fraction:
        """Time of the playhead, in seconds."""
        return self._time

    @property
    def is_playing(self) -> bool:
        """Whether the playhead moves by itself."""
        return self._begun is not None

    @property
    def is_recording(self) -> bool:
        """Whether gestures become keys."""
        return self._is_recording

    @property
    def armed(self) -> frozenset[str]:
        """Paths of the parameters that are recorded; if none of them has a track, every one that a gesture moves."""
        return self._armed

    @property
    def timeline(self) -> Timeline:
        """The session's timeline."""
        return self._editing.session.timeline

    # -- the playhead -----------------------------------------------------------------------------------------------

    @Slot(object, bool)
    def seek(self, t: Fraction, final: bool = True) -> None:
        """Put the playhead somewhere; while it is dragged (`final` False) pictures are as quick as during a drag."""
        self._time = min(max(Fraction(0), t), Fraction(MAX_SECONDS))
        if self._begun is not None:
            self._begin(self._time)
        self._editing.advance(self._time, live=not final or self.is_playing)
        self.moved.emit()

    @Slot(float)
    def _stay_at(self, time_s: float) -> None:
        """Put the playhead where it was when the session was saved, in seconds; the session stays as it is."""
        self._time = Fraction(time_s).limit_denominator(1_000_000)
        if self._begun is not None:
            self._begin(self._time)
        self.moved.emit()

    @Slot(bool)
    def set_playing(self, on: bool) -> None:
        """Play or pause. At the end of what plays it begins again."""
        if on == self.is_playing:
            return
        if not on:
            self._stop()
            return
        timeline = self.timeline
        start = self._time
        if not timeline.is_looping and played(timeline, start, 0.0).is_over:
            start = timeline.playing_range[0]
        self._begin(start)
        self._timer.start()
        self.playing_changed.emit()
        self._tick()

    def restart_sound(self) -> None:
        """Play the sounds as they are now, from the playhead on."""
        if self._begun is not None:
            self._begin(self._time)

    @Slot(bool)
    def set_recording(self, on: bool) -> None:
        """Start playing, and record every change; False ends the take, and playback continues."""
        if on == self._is_recording:
            return
        if not on:
            self._end_take()
        self._is_recording = on
        self._samples.clear()
        if on and not self.is_playing:
            self.set_playing(True)
        self.playing_changed.emit()

    @Slot(str, bool)
    def set_armed(self, path: str, on: bool) -> None:
        """Choose a parameter for recording, or no longer."""
        self._armed = self._armed | {path} if on else self._armed - {path}
        self.playing_changed.emit()

    @Slot(int)
    def step(self, frames: int) -> None:
        """Move by whole frames."""
        self.set_playing(False)
        fps = self.timeline.fps
        self.seek((round(self._time * fps) + frames) / fps)

    def close(self) -> None:
        """Stop playing. May be called twice."""
        self._timer.stop()
        self._begun = None
        if self.player is not None:
            self.player.stop()
        self._is_recording = False

    # -- keys -------------------------------------------------------------------------------------------------------

    @Slot()
    def keep_picture(self) -> None:
        """Make a key of the whole picture at the playhead."""
        session = self._editing.session
        self._set(lambda: with_state(session.timeline, session, self._time), "Keep picture here")

    @Slot(object)
    def keep_entries(self, numbers: Sequence[int], t: Fraction | None = None) -> None:
        """Make keys of kept entries, two seconds apart, as one undo step; the first at `t`, or at the playhead.

        Entries of another model are fitted to the open one.
        """
        history, session = self._editing.history, self._editing.session
        entries = [entry for number in numbers if (entry := history.entry(number)) is not None]
        if not entries:
            return
        start = self._time if t is None else t

        def changed() -> Timeline:
            timeline = session.timeline
            for place, entry in enumerate(entries):
                kept = self._editing.adapted(in_project_of(entry.session, session))
                timeline = with_state(timeline, kept, start + place * _STATE_GAP_S)
            return timeline

        self._set(changed, "Put on the timeline")

    @Slot(str)
    def animate(self, path: str) -> None:
        """Make a key of a parameter's present value at the playhead; its track is added if there is none."""
        session = self._editing.session
        self._set(
            lambda: with_parameter_key(session.timeline, session, path, self._time), f"Animate {_name(path, session)}"
        )

    def draw(self, paths: Sequence[str], points: Sequence[tuple[float, ...]]) -> None:
        """Make keys of a path drawn over parameters, from the playhead on and at the speed of drawing.

        Parameters
        ----------
        paths
            The parameters.
        points
            Seconds since the start of the path, then one value a parameter.
        """
        start = self._time

        def drawn() -> Timeline:
            timeline = self.timeline
            for place, path in enumerate(dict.fromkeys(paths), start=1):
                samples = [(start + Fraction(round(1000 * point[0]), 1000), point[place]) for point in points]
                timeline = with_recorded(timeline, path, recorded_keys(samples))
            return timeline

        if points:
            self._set(drawn, "Draw path")

    def _set(self, change: Callable[[], Timeline], label: str) -> None:
        try:
            self._editing.edit(SetTimeline(change(), label))
        except LoomError as error:
            self._messages.warning(error.sentence)

    @property
    def recorded(self) -> Mapping[str, Sequence[Sequence[tuple[Fraction, Any]]]]:
        """What gestures under way record: by path, (seconds, value) pairs of each pass. The same object always."""
        return self._samples

    # -- recording, called by `Editing` ------------------------------------------------------------------------------

    def takes(self, edit: Edit) -> bool:
        """Return whether an edit is to be recorded."""
        paths = _paths(edit)
        return bool(paths) and self._is_recording and self.is_playing and self._wants(paths)

    def records(self, path: str) -> bool:
        """Return whether what moves a parameter is recorded now."""
        return self._is_recording and self.is_playing and self._wants((path,))

    def sample(self, edit: Edit, session: Session) -> None:
        """Record the values that an edit has just set, at the present moment."""
        t = self._now()
        for path in _paths(edit):
            passes = self._samples.setdefault(path, [[]])
            if passes[-1] and t == passes[-1][-1][0]:
                passes[-1].pop()
            elif not _goes_on(passes[-1], t, self.timeline.is_ping_pong):
                passes.append([])
            passes[-1].append((t, parameter(path).read(session)))

    def take(self, edit: Edit, session: Session) -> SetTimeline:
        """Return the edit that puts a gesture's simplified curves into the timeline."""
        timeline, paths = session.timeline, _paths(edit)
        for path in paths:
            row = parameter(path)
            for taken in self._samples.pop(path, ()):  # a later pass replaces what it covers of an earlier one
                samples = sorted(taken, key=itemgetter(0))  # played backwards, the last comes first
                keys = recorded_keys(samples, is_stepped=row.kind in _STEPPED, is_geometric=row.is_geometric)
                timeline = with_recorded(timeline, path, keys)
        set_once = edit.edits if isinstance(edit, SetParameters) else ()
        also = tuple(item for item in set_once if item.path not in paths)
        return SetTimeline(timeline, f"Record {_name(paths[0], session)}", also)

    def drop(self, edit: Edit) -> None:
        """Forget what a gesture that was cancelled recorded; other gestures go on."""
        for path in _paths(edit):
            self._samples.pop(path, None)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _wants(self, paths: tuple[str, ...]) -> bool:
        armed = self._armed.intersection(track.path for track in self.timeline.tracks)
        return not armed or bool(armed.intersection(paths))

    def _begin(self, start: Fraction) -> None:
        """Play from a time on, with sound."""
        self._followed = self.timeline
        self._timer.setInterval(max(_LEAST_TICK_MS, int(1000 / self._followed.fps)))
        self._begun = start, self._clock()
        if self.player is not None:
            self.player.start(self._followed, start)

    @Slot()
    def _follow_edits(self) -> None:
        """Go on from the playhead when an edit changes the rate or the range, for what was played counts in the old."""
        if self._begun is not None and _course(self.timeline) != _course(self._followed):
            self._begin(self._time)

    def _elapsed_s(self) -> float:
        """Return how long it has played: what was heard, so that the picture follows the sound, else by the clock."""
        assert self._begun is not None
        heard_s = None if self.player is None else self.player.elapsed_s()
        return self._clock() - self._begun[1] if heard_s is None else heard_s

    def _now(self) -> Fraction:
        """Return the exact time of what plays, between frames, in thousandths of a second."""
        if self._begun is None:
            return self._time
        elapsed_s = self._elapsed_s()
        place = played(self._followed, self._begun[0], elapsed_s)
        if place.is_over:
            return place.t
        behind = Fraction(round((elapsed_s % float(1 / self._followed.fps)) * 1000), 1000)
        return place.t - behind if place.is_backwards else place.t + behind

    def _end_take(self) -> None:
        """Make keys of what is being moved: a hand may let go only later."""
        self.take_ending.emit()
        self._editing.end_recorded()

    def _stop(self) -> None:
        if self._is_recording:
            self._end_take()
        self._timer.stop()
        self._begun = None
        if self.player is not None:
            self.player.stop()
        self._is_recording = False
        self._samples.clear()
        self._editing.advance(self._time, live=False)
        self.playing_changed.emit()

    @Slot()
    def _tick(self) -> None:
        if self._begun is None:
            return
        place = played(self._followed, self._begun[0], self._elapsed_s())
        if place.t != self._time:
            self._time = place.t
            self._editing.advance(self._time, live=True)
            self.moved.emit()
        if place.is_over:
            self._stop()


def _course(timeline: Timeline) -> tuple[object, ...]:
    """Return what decides which frame is due when."""
    return timeline.playing_range, timeline.fps, timeline.is_looping, timeline.is_ping_pong


def _paths(edit: Edit) -> tuple[str, ...]:
    """Return the paths of the parameters that an edit moves; none for one that does something else."""
    if isinstance(edit, SetParameter):
        return (edit.path,)
    if isinstance(edit, SetParameters):
        return (edit.moves,) if edit.moves else tuple(item.path for item in edit.edits)
    return ()


def _goes_on(samples: Sequence[tuple[Fraction, Any]], t: Fraction, is_ping_pong: bool) -> bool:
    """Return whether a time belongs to the pass of these samples: playing has neither begun again nor turned round."""
    if not samples:
        return True
    is_forward = t > samples[-1][0]
    return is_forward or is_ping_pong if len(samples) == 1 else is_forward == (samples[-1][0] > samples[0][0])


def _name(path: str, session: Session) -> str:
    try:
        return name_in_text(path, session)
    except ParameterError:
        return "parameter"
