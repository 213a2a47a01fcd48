"""Applies edits to the session, its history and the active gestures. No Qt; the caller passes the time.

Several inputs may act at once: the mouse, a slider, a controller. Each source of edits has its own gestures, and each
gesture becomes one step when it ends, however many edits it had. The editor keeps two sessions for that:

- the committed session contains finished gestures only; history steps store it;
- the shown session is the committed one with the newest edit of every active gesture applied.

So a step never contains half of another gesture, and undo reverts exactly one gesture.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace

from explorer_app.session.edits import REMOVALS, Edit
from explorer_app.session.history import History, HistoryEntry, KeptSession, Tags
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session, in_project_of
from explorer_app.session.storage import KeptSessions, kept_that_fit
from explorer_app.session.timeline.edits import TIMELINE
from gpu_backend import dataclass

MERGE_S = 0.6
"""Nudges of one target within this many seconds of each other are one step."""

_Key = tuple[str, Hashable]
"""Source and target of a gesture."""


@dataclass(frozen=True, slots=True)
class _Gesture:
    """An active gesture: its label and its newest edit, which replaces the earlier ones."""

    label: str
    edit: Edit


class Editor:
    """Applies edits. A gesture becomes one history step, however many edits it has."""

    def __init__(self, session: Session | None = None) -> None:
        self._committed = self._session = session or Session()
        self.time_s = 0.0
        """Where the playhead is, in seconds; steps note it."""
        self._history = History().added(self._session, "Start", self.time_s)
        self._gestures: dict[_Key, _Gesture] = {}
        """Ordered by newest edit, the newest last."""
        self._kept: tuple[tuple[HistoryEntry, ...], tuple[KeptSession, ...]] = ((), ())
        """Kept entries of the history, and the sessions that `kept` made of them."""
        self._last_nudge: tuple[Hashable, float, int] | None = None

    @property
    def session(self) -> Session:
        """The current session, active gestures included."""
        return self._session

    @property
    def history(self) -> History:
        """Steps and kept sessions."""
        return self._history

    @property
    def kept(self) -> tuple[KeptSession, ...]:
        """Kept sessions, in the user's order; made once a change, since a library may have thousands."""
        entries = self._history.kept
        if self._kept[0] is not entries:
            made = (KeptSession(entry.session, entry.label, entry.kept_s, entry.tags) for entry in entries)
            self._kept = entries, tuple(made)
        return self._kept[1]

    @property
    def gestures(self) -> tuple[tuple[str, Edit], ...]:
        """Source and newest edit of each active gesture."""
        return tuple((source, gesture.edit) for (source, _), gesture in self._gestures.items())

    def is_gesturing(self, *, besides: str | None = None) -> bool:
        """Return whether a gesture is active, not counting those of the source `besides`."""
        return any(source != besides for source, _ in self._gestures)

    def is_moving(self, target: Hashable, *, besides: str = "") -> bool:
        """Return whether an active gesture moves a target, not counting those of the source `besides`."""
        return any(moved == target and source != besides for source, moved in self._gestures)

    def edit(self, edit: Edit, final: bool, now_s: float, source: str = "") -> None:
        """Apply an edit of a source.

        Consecutive edits of one source and target form a gesture, which the final edit ends. A final edit without a
        gesture is a step by itself. Small steps of one target in quick succession are one step, and so are gestures of
        keys.
        """
        key = (source, edit.target)
        gesture = self._gestures.pop(key, None)
        if not final:
            self._gestures[key] = _Gesture(gesture.label if gesture else edit.label, edit)
            self._session = edit.apply(self._session)
            return
        # Gestures of other sources on the same target end first, because the final edit is newer. All gestures end
        # before something is removed: they would bring it back, or move what takes the index of a mix source.
        for other in [key for key in self._gestures if key[1] == edit.target or isinstance(edit, REMOVALS)]:
            self._commit(self._gestures.pop(other))
        is_by_key = isinstance(edit, SetParameter) and edit.by_key
        is_nudge = (gesture is None or is_by_key) and edit.is_nudge(self._session)
        if gesture is not None and not is_nudge:
            self._commit(_Gesture(gesture.label, edit))
        elif is_nudge and self._continues(edit.target, now_s):
            self._committed = edit.apply(self._committed)
            self._history = self._history.amended(self._committed, self.time_s)
        else:
            self._committed = edit.apply(self._committed)
            self.commit(edit.label)
        self._last_nudge = (edit.target, now_s, self._history.next_number) if is_nudge else None
        self._session = self._with_gestures()

    def finish(self, source: str | None = None) -> None:
        """End the gestures of a source, or all, each as a step; a gesture that changed nothing leaves none."""
        for key in [key for key in self._gestures if source in (None, key[0])]:
            self._commit(self._gestures.pop(key))
        self._session = self._with_gestures()

    def cancel(self, source: str | None = None) -> Edit | None:
        """Revert the newest gesture of a source, or of all sources; return its newest edit, None without a gesture."""
        key = next((key for key in reversed(self._gestures) if source in (None, key[0])), None)
        if key is None:
            return None
        cancelled = self._gestures.pop(key)
        self._session = self._with_gestures()
        return cancelled.edit

    def cancel_gesture_of(self, source: str, target: Hashable) -> None:
        """Revert the gesture of a source and a target, if there is one."""
        if self._gestures.pop((source, target), None) is not None:
            self._session = self._with_gestures()

    def commit(self, label: str) -> bool:
        """Append the committed session as a step unless it equals the current step; return whether it was appended."""
        current = self._history.current
        if current is not None and current.session == self._committed:
            return False
        self._history = self._history.added(self._committed, label, self.time_s)
        return True

    def add_step(self, label: str) -> int:
        """Append a step that changes something other than the session; return its number."""
        self.finish()
        self._last_nudge = None
        self._history = self._history.added(self._committed, label, self.time_s)
        return self._history.next_number - 1

    def set_transient(self, session: Session) -> None:
        """Replace the session without a step; active gestures are dropped."""
        self._gestures.clear()
        self._committed = self._session = session

    def advance(self, evaluate: Callable[[Session], Session]) -> None:
        """Let time pass: `evaluate` moves the committed session, without a step. Gestures under way stay on top.

        While the timeline itself is being edited, its newest state evaluates.
        """
        timeline = self._session.timeline
        moved = evaluate(replace(self._committed, timeline=timeline))
        self._committed = replace(moved, timeline=self._committed.timeline)
        for gesture in self._gestures.values():
            if gesture.edit.target != TIMELINE:
                moved = gesture.edit.apply(moved)
        self._session = moved

    def amend(self, session: Session) -> None:
        """Replace the session of the current step: it was fitted to the model, not edited."""
        self.finish()
        if session != self._session:
            self._history = self._history.amended(session, self.time_s)
        self._committed = self._session = session  # with what equal sessions may differ in: what is known of the model

    def amend_step(self) -> None:
        """Store the committed session in the current step: time has moved it since the step was made."""
        current = self._history.current
        if current is not None and current.session != self._committed:
            self._history = self._history.amended(self._committed, self.time_s)

    def begin(self, session: Session) -> None:
        """Start a new history with a session; kept sessions stay."""
        fresh = replace(self._history, entries=(), position=-1)
        self._last_nudge = None
        self.set_transient(session)
        self._history = fresh.added(session, "Start", self.time_s)

    def undo(self) -> bool:
        """Go one step back; return whether there was one."""
        return self._history.can_undo and self.go_to(self._history.position - 1)

    def redo(self) -> bool:
        """Go one step forward; return whether there was one."""
        return self._history.can_redo and self.go_to(self._history.position + 1)

    def go_to(self, index: int) -> bool:
        """Make another step current, with the open model; return whether there is such a step."""
        if not 0 <= index < len(self._history.entries):
            return False
        self._last_nudge = None
        self._history = self._history.moved(index)
        self.set_transient(replace(self._history.entries[index].session, model=self._session.model))
        return True

    def go_to_kept(self, number: int) -> bool:
        """Make a step of a kept entry with the present timeline and patches; return whether there is such an entry."""
        entry = self._history.entry(number)
        if entry is not None:
            self.set_transient(in_project_of(entry.session, self._session))
            self.commit("Kept")
        return entry is not None

    def star(self, number: int, starred: bool, now_s: float = 0.0) -> bool:
        """Star or unstar a history entry at a time in seconds since 1970; return False if there is no room for it."""
        history = self._history
        entry = None if not starred or history.is_kept(number) else history.entry(number)
        if entry is not None and not self._that_fit((KeptSession(entry.session, entry.label),)):
            return False
        self._history = history.starred(number, starred, now_s)
        return True

    def rename_kept(self, number: int, name: str) -> None:
        """Give a kept entry another name."""
        self._history = self._history.renamed(number, name)

    def tag_kept(self, numbers: Collection[int], tags: Tags) -> None:
        """Give kept entries other tags."""
        self._history = self._history.tagged(numbers, tags)

    def move_kept(self, number: int, before: int | None) -> None:
        """Move a kept entry before another one, None for the end."""
        self._history = self._history.moved_kept(number, before)

    def keep(self, sessions: Sequence[KeptSession], *, is_limited: bool = True) -> int:
        """Keep sessions from a file as far as there is room, and return how many did not fit.

        Sessions that are kept already are skipped. Those of other windows are not limited: they are in the shared file.
        """
        there = {entry.session for entry in self._history.kept}
        new = tuple(item for item in sessions if item.session not in there)
        fitting = self._that_fit(new) if is_limited else new
        self._history = self._history.with_kept(fitting)
        return len(new) - len(fitting)

    def _that_fit(self, sessions: Sequence[KeptSession]) -> KeptSessions:
        return kept_that_fit([entry.session for entry in self._history.kept], sessions)

    def drop(self, numbers: Collection[int]) -> None:
        """Keep entries no longer."""
        self._history = self._history.dropped(numbers)

    def keep_again(self, former: Sequence[HistoryEntry], numbers: Collection[int]) -> int:
        """Keep entries again that were among the `former` kept ones, and return how many did not fit."""
        gone = [entry for entry in former if entry.number in numbers]
        fitting = self._that_fit(tuple(KeptSession(entry.session, entry.label) for entry in gone))
        sessions = {item.session for item in fitting}
        self._history = self._history.with_kept_again(
            former, {entry.number for entry in gone if entry.session in sessions}
        )
        return len(gone) - len(fitting)

    def drop_kept(self, sessions: Collection[Session]) -> None:
        """Unstar sessions: another window removed them."""
        self._history = self._history.without_kept(set(sessions))

    def restore_history(
        self, steps: Sequence[tuple[Session, str]], position: int, times: Sequence[float | None] = ()
    ) -> None:
        """Insert the last run's steps before this run's; `times` as in `History.preceded_by`."""
        self._history = self._history.preceded_by(steps, position, times)
        self._last_nudge = None

    def add_steps(self, steps: Sequence[tuple[Session, str]], times: Sequence[float | None] = ()) -> None:
        """Add steps of a file after the current one; the caller commits the session that comes after them.

        `times` as in `History.preceded_by`.
        """
        self._last_nudge = None
        for (session, label), time_s in zip(steps, times or (None,) * len(steps), strict=True):
            self._history = self._history.added(session, label, time_s)

    def _commit(self, gesture: _Gesture) -> None:
        self._last_nudge = None
        changed = gesture.edit.apply(self._committed)
        if changed != self._committed:
            self._committed = changed
            self.commit(gesture.label)

    def _with_gestures(self) -> Session:
        """Return the committed session with every active gesture applied, the newest edit last."""
        session = self._committed
        for gesture in self._gestures.values():
            session = gesture.edit.apply(session)
        return session

    def _continues(self, target: Hashable, now_s: float) -> bool:
        if self._last_nudge is None or not self._history.can_undo or self._history.can_redo:
            return False
        last_target, last_s, next_number = self._last_nudge
        return last_target == target and now_s - last_s <= MERGE_S and next_number == self._history.next_number
