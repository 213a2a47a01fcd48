"""History: the sessions one came through, for undo and the strip, and the ones that were kept with a star.

A frozen value: every change makes a new history, so that whoever holds one never sees it change. Steps are bounded,
the oldest go first; what was kept is never dropped by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from explorer_app.session.session import Session
from gpu_backend import MAX_KEPT, MAX_STEPS


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A session one was at.

    `number` never changes and is never given twice: it names the entry to `Controller.set_starred` and to thumbnails.
    `label` says what led here ("Walk").
    """

    number: int
    session: Session
    label: str


@dataclass(frozen=True, slots=True)
class History:
    """Steps and kept sessions.

    Attributes
    ----------
    entries
        Steps, oldest first. Those behind `position` are what redo brings back.
    position
        Index of the step that one stands on; -1 while there is none.
    kept
        Entries with a star, oldest star first. They stay when their step is forgotten.
    next_number
        The number that the next entry gets.
    """

    entries: tuple[HistoryEntry, ...] = ()
    position: int = -1
    kept: tuple[HistoryEntry, ...] = ()
    next_number: int = 1

    @property
    def current(self) -> HistoryEntry | None:
        """The step that one stands on."""
        return self.entries[self.position] if self.entries else None

    @property
    def can_undo(self) -> bool:
        """Whether there is a step before this one."""
        return self.position > 0

    @property
    def can_redo(self) -> bool:
        """Whether there is a step after this one."""
        return self.position < len(self.entries) - 1

    @property
    def undo_label(self) -> str:
        """What undo takes back ("Walk"); empty if nothing."""
        return self.entries[self.position].label if self.can_undo else ""

    @property
    def redo_label(self) -> str:
        """What redo brings back; empty if nothing."""
        return self.entries[self.position + 1].label if self.can_redo else ""

    def is_kept(self, number: int) -> bool:
        """Whether the entry with this number has a star."""
        return any(entry.number == number for entry in self.kept)

    def entry(self, number: int) -> HistoryEntry | None:
        """Return the step or kept entry with this number, None if it is gone."""
        for entry in (*self.entries, *self.kept):
            if entry.number == number:
                return entry
        return None

    def added(self, session: Session, label: str) -> History:
        """Return the history with one more step after the current one; what redo would have brought back is gone."""
        entry = HistoryEntry(self.next_number, session, label)
        entries = (*self.entries[: self.position + 1], entry)[-MAX_STEPS:]
        return replace(self, entries=entries, position=len(entries) - 1, next_number=self.next_number + 1)

    def amended(self, session: Session) -> History:
        """Return the history with the current step ending at another session: the rest of the same gesture.

        The step gets a new number, because its picture is another one; a star stays with what it was given to.
        """
        label = self.entries[self.position].label
        return replace(self, position=self.position - 1).added(session, label)

    def moved(self, position: int) -> History:
        """Return the history standing on another step.

        Raises
        ------
        IndexError
            If there is no such step.
        """
        if not 0 <= position < len(self.entries):
            raise IndexError(f"The history has steps 0..{len(self.entries) - 1}, but {position} was asked for.")
        return replace(self, position=position)

    def starred(self, number: int, starred: bool) -> History:
        """Return the history with the entry's star set or taken away; an unknown number changes nothing."""
        if not starred:
            return replace(self, kept=tuple(entry for entry in self.kept if entry.number != number))
        entry = self.entry(number)
        if entry is None or self.is_kept(number) or len(self.kept) >= MAX_KEPT:
            return self
        return replace(self, kept=(*self.kept, entry))

    def with_kept(self, sessions: tuple[tuple[Session, str], ...]) -> History:
        """Return the history with (session, label) pairs kept after those that are kept already, as far as they fit."""
        room = sessions[: max(0, MAX_KEPT - len(self.kept))]
        fresh = tuple(
            HistoryEntry(self.next_number + index, session, label) for index, (session, label) in enumerate(room)
        )
        return replace(self, kept=(*self.kept, *fresh), next_number=self.next_number + len(fresh))

    def without_kept(self, sessions: Collection[Session]) -> History:
        """Return the history without the stars of these sessions."""
        return replace(self, kept=tuple(entry for entry in self.kept if entry.session not in sessions))

    def preceded_by(self, steps: Sequence[tuple[Session, str]], position: int) -> History:
        """Return the history with the steps of an earlier run before its own.

        While nothing was done since the start, one stands on the earlier run's current step again, and redo brings
        back what came after it; else those steps are gone, as after any new step.

        Parameters
        ----------
        steps
            (session, label) pairs, oldest first.
        position
            Index of the step that the earlier run stood on.
        """
        if not steps or not self.entries:
            return self
        is_continued = steps[position][0] == self.entries[0].session
        number = self.next_number
        earlier = [HistoryEntry(number + index, session, label) for index, (session, label) in enumerate(steps)]
        if len(self.entries) == 1 and is_continued:
            earlier[position] = replace(self.entries[0], label=steps[position][1])
            return replace(self, entries=tuple(earlier), position=position, next_number=number + len(steps))
        own = self.entries[1:] if is_continued else self.entries
        entries = (*earlier[: position + 1], *own)[-MAX_STEPS:]
        behind = len(self.entries) - 1 - self.position
        return replace(self, entries=entries, position=len(entries) - 1 - behind, next_number=number + len(steps))
