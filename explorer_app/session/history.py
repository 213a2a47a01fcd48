"""History: the steps of a session, for undo and the strip, and the kept (starred) sessions.

Immutable: every change makes a new history. The number of steps is bounded and the oldest are dropped first; kept
sessions are never dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from explorer_app.session.session import Session, as_still
from explorer_app.session.timeline.evaluation import keyed_at
from gpu_backend import MAX_KEPT, MAX_STEPS, dataclass, plane_seed

MAX_TAGS = 16
"""Tags of a kept session."""

MAX_TAG = 40
"""Letters of a tag."""

Tags = tuple[str, ...]
"""Words that a user finds kept sessions by, in the order of their input; no two are the same but for case."""


class KeptSession(NamedTuple):
    """A kept session: its name, its time in seconds since 1970 (0: unknown), and its tags."""

    session: Session
    label: str
    kept_s: float = 0.0
    tags: Tags = ()


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A session in the history.

    `number` is unique and never changes: it identifies the entry for `KeptPictures.star` and for thumbnails.
    `label` names the edit that led here ("Walk"), or a kept entry. `kept_s` and `tags` are as in `KeptSession`.
    `time_s` is where the playhead was at a step, in seconds; None if that is not known.
    """

    number: int
    session: Session
    label: str
    kept_s: float = 0.0
    tags: Tags = ()
    time_s: float | None = None


@dataclass(frozen=True, slots=True)
class History:
    """Steps and kept sessions.

    Attributes
    ----------
    entries
        Steps, oldest first. Those after `position` can be redone.
    position
        Index of the current step; -1 without steps.
    kept
        Entries with a star, in the order that the user gave them; new ones come last. They stay when their step is
        forgotten.
    next_number
        The number that the next entry gets.
    """

    entries: tuple[HistoryEntry, ...] = ()
    position: int = -1
    kept: tuple[HistoryEntry, ...] = ()
    next_number: int = 1

    @property
    def current(self) -> HistoryEntry | None:
        """The current step."""
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
        """Label of the step that undo reverts ("Walk"); empty if there is none."""
        return self.entries[self.position].label if self.can_undo else ""

    @property
    def redo_label(self) -> str:
        """Label of the step that redo applies; empty if there is none."""
        return self.entries[self.position + 1].label if self.can_redo else ""

    def is_kept(self, number: int) -> bool:
        """Whether the entry with this number has a star."""
        return any(entry.number == number for entry in self.kept)

    def entry(self, number: int) -> HistoryEntry | None:
        """Return the kept entry or step with this number, None if it is gone."""
        for entry in (*self.kept, *self.entries):
            if entry.number == number:
                return entry
        return None

    def added(self, session: Session, label: str, time_s: float | None = None) -> History:
        """Return the history with one more step after the current one; steps that could be redone are dropped."""
        entry = HistoryEntry(self.next_number, session, label, time_s=time_s)
        entries = (*self.entries[: self.position + 1], entry)[-MAX_STEPS:]
        return replace(self, entries=entries, position=len(entries) - 1, next_number=self.next_number + 1)

    def amended(self, session: Session, time_s: float | None = None) -> History:
        """Return the history with the current step ending at another session: the rest of the same gesture.

        The step gets a new number, because its picture is another one; a star stays with what it was given to.
        """
        label = self.entries[self.position].label
        return replace(self, position=self.position - 1).added(session, label, time_s)

    def moved(self, position: int) -> History:
        """Return the history with another current step.

        Raises
        ------
        IndexError
            If there is no such step.
        """
        if not 0 <= position < len(self.entries):
            raise IndexError(f"The history has steps 0..{len(self.entries) - 1}, but {position} was requested.")
        return replace(self, position=position)

    def starred(self, number: int, starred: bool, now_s: float = 0.0) -> History:
        """Return the history with the entry's star set or taken away; an unknown number changes nothing.

        `now_s` is the time in seconds since 1970.
        """
        if not starred:
            return self.dropped((number,))
        entry = self.entry(number)
        if entry is None or self.is_kept(number) or len(self.kept) >= MAX_KEPT:
            return self
        kept = replace(entry, session=as_still(entry.session), label=place_name(entry.session), kept_s=now_s)
        return replace(self, kept=(*self.kept, kept))

    def dropped(self, numbers: Collection[int]) -> History:
        """Return the history without the stars of entries with these numbers."""
        return replace(self, kept=tuple(entry for entry in self.kept if entry.number not in numbers))

    def renamed(self, number: int, name: str) -> History:
        """Return the history with another name for a kept entry; an unknown number changes nothing."""
        return replace(
            self, kept=tuple(replace(item, label=name) if item.number == number else item for item in self.kept)
        )

    def tagged(self, numbers: Collection[int], tags: Tags) -> History:
        """Return the history with other tags on kept entries, in place of the tags that they share.

        Tags that only some of several entries have stay with these.
        """
        common = self.common_tags(numbers)
        return replace(
            self,
            kept=tuple(
                replace(item, tags=(*tags, *(tag for tag in item.tags if tag not in (*common, *tags)))[:MAX_TAGS])
                if item.number in numbers
                else item
                for item in self.kept
            ),
        )

    def common_tags(self, numbers: Collection[int]) -> Tags:
        """Return the tags that all of some kept entries have."""
        first, *others = [item.tags for item in self.kept if item.number in numbers] or [()]
        return tuple(tag for tag in first if all(tag in tags for tags in others))

    def moved_kept(self, number: int, before: int | None) -> History:
        """Return the history with a kept entry moved before another one, None for the end."""
        moved = next((entry for entry in self.kept if entry.number == number), None)
        if moved is None or before == number:
            return self
        rest = [entry for entry in self.kept if entry.number != number]
        place = next((index for index, entry in enumerate(rest) if entry.number == before), len(rest))
        return replace(self, kept=(*rest[:place], moved, *rest[place:]))

    def with_kept(self, sessions: tuple[KeptSession, ...]) -> History:
        """Return the history with sessions added to the kept ones, as far as they fit; their steps get the star."""
        room = sessions[: max(0, MAX_KEPT - len(self.kept))]
        kept = {entry.number for entry in self.kept}
        steps = {as_still(entry.session): entry.number for entry in self.entries if entry.number not in kept}
        fresh = []
        for index, item in enumerate(room, self.next_number):
            number = steps.pop(item.session, index)
            fresh.append(HistoryEntry(number, item.session, item.label, item.kept_s, item.tags))
        return replace(self, kept=(*self.kept, *fresh), next_number=self.next_number + len(fresh))

    def with_kept_again(self, former: Sequence[HistoryEntry], numbers: Collection[int]) -> History:
        """Return the history with kept entries of these numbers back in their places among the `former` kept ones."""
        there = {entry.number for entry in self.kept}
        sessions = {entry.session for entry in self.kept}
        before: dict[int | None, list[HistoryEntry]] = {}
        follower = None
        for entry in reversed(former):
            if entry.number in there:
                follower = entry.number
            elif entry.number in numbers and entry.session not in sessions:
                before.setdefault(follower, []).insert(0, entry)
        kept = [item for entry in self.kept for item in (*before.get(entry.number, ()), entry)]
        return replace(self, kept=(*kept, *before.get(None, ())))

    def without_kept(self, sessions: Collection[Session]) -> History:
        """Return the history without the stars of these sessions."""
        return replace(self, kept=tuple(entry for entry in self.kept if entry.session not in sessions))

    def preceded_by(
        self, steps: Sequence[tuple[Session, str]], position: int, times: Sequence[float | None] = ()
    ) -> History:
        """Return the history with the steps of an earlier run before its own.

        If nothing was done since the start, the earlier run's current step is current again and its later steps can be
        redone; otherwise redo steps are dropped, as after any new step. Steps that were kept have their star.

        Parameters
        ----------
        steps
            (session, label) pairs, oldest first.
        position
            Index of the earlier run's current step.
        times
            Where the playhead was at each step, in seconds; empty if that is not known.
        """
        if not steps or not self.entries:
            return self
        is_continued = _is_same(steps[position][0], self.entries[0])
        number = self.next_number
        own_numbers = {entry.number for entry in self.entries}
        kept = {entry.session: entry.number for entry in self.kept if entry.number not in own_numbers}
        earlier = [
            HistoryEntry(kept.pop(as_still(session), number + index), session, label, time_s=time_s)
            for index, ((session, label), time_s) in enumerate(zip(steps, times or (None,) * len(steps), strict=True))
        ]
        if len(self.entries) == 1 and is_continued:
            session, label = steps[position]
            current = self.entries[0]
            # What the playhead was moved away from since is no part of the session, and stays in its step.
            is_equal = session == current.session  # but for what is known of the model now
            shown, time_s = (current.session, current.time_s) if is_equal else (session, earlier[position].time_s)
            earlier[position] = replace(current, session=shown, label=label, time_s=time_s)
            return replace(self, entries=tuple(earlier), position=position, next_number=number + len(steps))
        own = self.entries[1:] if is_continued else self.entries
        entries = (*earlier[: position + 1], *own)[-MAX_STEPS:]
        behind = len(self.entries) - 1 - self.position
        return replace(self, entries=entries, position=len(entries) - 1 - behind, next_number=number + len(steps))


def tags_of(text: str) -> Tags:
    """Return the tags of a text with commas between them; what exceeds the limits is cut."""
    words = (" ".join(word.split())[:MAX_TAG].strip() for word in text.split(","))
    return tuple({word.casefold(): word for word in words if word}.values())[:MAX_TAGS]


def _is_same(step: Session, start: HistoryEntry) -> bool:
    """Return whether a run began with the session of a step, or with what its keys say at the playhead.

    Anything else is a gesture that a crash has cut short.
    """
    session = start.session
    return step == session or (step.timeline == session.timeline and keyed_at(step, start.time_s or 0.0) == session)


def place_name(session: Session) -> str:
    """Return what a session is called when it is kept: "Seed 42", "Near seed 42", "Pinned latent"."""
    if session.pinned_blend:
        return "Pinned latent"
    x, y = session.position.x, session.position.y
    is_on_seed = x == round(x) and y == round(y)
    return f"{'Seed' if is_on_seed else 'Near seed'} {plane_seed(x, y)}"
