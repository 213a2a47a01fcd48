"""The session, its history and the gesture under way: what an edit does to them. No Qt; the caller brings the clock."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from explorer_app.session.edits import (
    Edit,
    MoveTo,
    RemoveSource,
    SetRowRange,
    SetSlider,
    SetSource,
    SetStrengths,
    SetTap,
    SetTransform,
    SetTruncation,
)
from explorer_app.session.history import History
from explorer_app.session.session import Session

MERGE_S = 0.6
"""Steps of the same thing within this time of each other are one."""


@dataclass(frozen=True, slots=True)
class _Gesture:
    """What is being dragged, and the session before."""

    target: Hashable
    label: str
    before: Session


class Editor:
    """Applies edits. One drag is one step of the history, whatever number of edits it has."""

    def __init__(self, session: Session | None = None) -> None:
        self._session = session or Session()
        self._history = History().added(self._session, "Start")
        self._gesture: _Gesture | None = None
        self._last_step: tuple[Hashable, float, int] | None = None

    @property
    def session(self) -> Session:
        """The session as it is now, in the middle of a gesture too."""
        return self._session

    @property
    def history(self) -> History:
        """Steps and what was kept."""
        return self._history

    @property
    def kept(self) -> tuple[tuple[Session, str], ...]:
        """(session, label) of what was kept, oldest first."""
        return tuple((entry.session, entry.label) for entry in self._history.kept)

    @property
    def is_gesturing(self) -> bool:
        """Whether a gesture is under way."""
        return self._gesture is not None

    @property
    def is_walking(self) -> bool:
        """Whether the gesture under way walks the plane."""
        return self._gesture is not None and self._gesture.target is MoveTo

    def edit(self, edit: Edit, final: bool, now_s: float) -> None:
        """Apply an edit; a final one ends its gesture, or is a step of its own if there is none."""
        target = _target(edit)
        if self._gesture is not None and self._gesture.target != target:
            self.finish()
        if not final:
            if self._gesture is None:
                self._gesture = _Gesture(target, edit.label, self._session)
            self._session = edit.apply(self._session)
            return
        was_live = self._gesture is not None
        is_nudge = not was_live and _is_nudge(edit, self._session)
        self._session = edit.apply(self._session)
        if was_live:
            self.finish()
        elif self._continues(target, now_s) and is_nudge:
            self._history = self._history.amended(self._session)
        else:
            self.settle(edit.label)
        self._last_step = (target, now_s, self._history.next_number) if is_nudge else None

    def finish(self) -> None:
        """End the gesture under way as a step; a gesture that changed nothing leaves none."""
        gesture, self._gesture = self._gesture, None
        self._last_step = None
        if gesture is not None and gesture.before != self._session:
            self.settle(gesture.label)

    def cancel(self) -> bool:
        """Bring back what was before the gesture; return whether there was one."""
        gesture, self._gesture = self._gesture, None
        if gesture is not None:
            self._session = gesture.before
        return gesture is not None

    def settle(self, label: str) -> bool:
        """Make a step of the session as it is, unless it is the step one stands on; return whether it did."""
        current = self._history.current
        if current is not None and current.session == self._session:
            return False
        self._history = self._history.added(self._session, label)
        return True

    def wander(self, session: Session) -> None:
        """Replace the session without a step: something moves by itself, `settle` comes later."""
        self._session = session

    def adopt(self, session: Session) -> None:
        """Replace the session in the step that one stands on: it was fitted to the model, the person did nothing."""
        self.finish()
        if session != self._session:
            self._session = session
            self._history = self._history.amended(session)

    def begin(self, session: Session) -> None:
        """Begin anew with a session; what was kept stays."""
        fresh = replace(self._history, entries=(), position=-1)
        self._gesture = self._last_step = None
        self._session = session
        self._history = fresh.added(session, "Start")

    def undo(self) -> bool:
        """Go one step back; return whether there was one."""
        return self._history.can_undo and self.go_to(self._history.position - 1)

    def redo(self) -> bool:
        """Go one step forward; return whether there was one."""
        return self._history.can_redo and self.go_to(self._history.position + 1)

    def go_to(self, index: int) -> bool:
        """Stand on another step, with the model that is open now; return whether there is such a step."""
        if not 0 <= index < len(self._history.entries):
            return False
        self._gesture = self._last_step = None
        self._history = self._history.moved(index)
        self._session = replace(self._history.entries[index].session, model=self._session.model)
        return True

    def go_to_kept(self, number: int) -> bool:
        """Make a step of a kept entry, as it was kept; return whether there is such an entry."""
        entry = self._history.entry(number)
        if entry is not None:
            self._session = entry.session
            self.settle("Kept")
        return entry is not None

    def star(self, number: int, starred: bool) -> None:
        """Keep an entry of the history, or no longer."""
        self._history = self._history.starred(number, starred)

    def keep(self, sessions: Sequence[tuple[Session, str]]) -> None:
        """Keep sessions that came from a file; what is kept already is not kept twice."""
        there = {entry.session for entry in self._history.kept}
        self._history = self._history.with_kept(tuple(pair for pair in sessions if pair[0] not in there))

    def _continues(self, target: Hashable, now_s: float) -> bool:
        if self._last_step is None or not self._history.can_undo or self._history.can_redo:
            return False
        last_target, last_s, next_number = self._last_step
        return last_target == target and now_s - last_s <= MERGE_S and next_number == self._history.next_number


def _target(edit: Edit) -> Hashable:
    """Return what an edit takes hold of: edits of one gesture have the same."""
    match edit:
        case SetSlider(slider=slider):
            return (SetSlider, slider.direction)
        case SetRowRange(direction=direction):
            return (SetRowRange, direction)
        case SetStrengths(index=index) | SetSource(index=index) | RemoveSource(index=index):
            return (type(edit), index)
        case _:
            return type(edit)


def _is_nudge(edit: Edit, session: Session) -> bool:
    """Return whether an edit is a small step of a value, of which several in a row are one."""
    if isinstance(edit, SetSlider):
        return replace(edit.slider, amount=0.0) == replace(session.slider(edit.slider.direction), amount=0.0)
    if isinstance(edit, SetTap):
        return edit.tap is not None  # going through layers or channels; back to the picture is a step of its own
    return isinstance(edit, SetTruncation | SetTransform | MoveTo)
