"""The kept sessions: their stars, names, tags and order."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

from PySide6.QtCore import QObject, Slot

from explorer_app.controller.autosave import Autosave
from explorer_app.controller.editor import Editor
from explorer_app.messages import Action, Level, MessageLog
from explorer_app.session.history import HistoryEntry, KeptSession, place_name, tags_of
from explorer_app.session.session import Session
from explorer_app.session.storage import MOST_KEPT, KeptSessions
from gpu_backend import MAX_TEXT


class KeptPictures(QObject):
    """Changes what is kept, which is no step of the history and so is not undone, and saves each change.

    A message offers to keep again what `drop` has removed.

    Parameters
    ----------
    announce
        Called after each change.
    """

    def __init__(
        self,
        editor: Editor,
        autosave: Autosave,
        messages: MessageLog,
        announce: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._editor = editor
        self._autosave = autosave
        self._messages = messages
        self._announce = announce
        autosave.kept_merged.connect(self._merge)

    @property
    def sessions(self) -> tuple[KeptSession, ...]:
        """Kept sessions, in the user's order."""
        return self._editor.kept

    @Slot(int, bool)
    def star(self, number: int, starred: bool) -> None:
        """Keep the step with this number (`HistoryEntry.number`), or no longer."""
        if not starred and self._is_only_kept(number):
            self.drop((number,))
        elif self._editor.star(number, starred, time.time()):
            self._changed()
        else:
            self._messages.warning(f"There is no room for another star: up to {MOST_KEPT} are kept.")

    @Slot(int, str)
    def rename(self, number: int, name: str) -> None:
        """Rename an entry (`HistoryEntry.number`), in one line; an empty name means its place on the plane."""
        entry = self._editor.history.entry(number)
        if entry is not None:
            self._editor.rename_kept(number, " ".join(name.split())[:MAX_TEXT] or place_name(entry.session))
            self._changed()

    @Slot(object, str)
    def tag(self, numbers: Collection[int], text: str) -> None:
        """Give entries the tags of a text with commas between them."""
        self._editor.tag_kept(numbers, tags_of(text))
        self._changed()

    @Slot(int, object)
    def move(self, number: int, before: int | None) -> None:
        """Move an entry before another one, None for the end."""
        self._editor.move_kept(number, before)
        self._changed()

    @Slot(object)
    def drop(self, numbers: Collection[int]) -> None:
        """Keep entries no longer; a message offers to keep them again."""
        former, asked = self._editor.history.kept, set(numbers)
        gone = [entry for entry in former if entry.number in asked]
        if not gone:
            return
        self._editor.drop(asked)
        self._changed()
        what = f"“{gone[0].label}” is" if len(gone) == 1 else f"{len(gone):,} pictures are"
        numbers = {entry.number for entry in gone}
        again = Action("Keep again", partial(self._keep_again, former, numbers), partial(self._lacks_some, numbers))
        self._messages.post(Level.INFO, f"{what} kept no longer.", action=again)

    def _keep_again(self, former: Sequence[HistoryEntry], numbers: Collection[int]) -> None:
        self._tell_left_out(self._editor.keep_again(former, numbers))
        self._changed()

    def add(self, sessions: KeptSessions) -> int:
        """Keep sessions that are no steps of the history: from a file, or a cell of a grid.

        Returns how many did not fit, which a message says.
        """
        left_out = self._editor.keep(sessions)
        self._tell_left_out(left_out)
        self._changed()
        return left_out

    def _lacks_some(self, numbers: set[int]) -> bool:
        return not numbers <= {entry.number for entry in self._editor.history.kept}

    def _is_only_kept(self, number: int) -> bool:
        """Return whether a kept entry is no step, or has a name or tags, which a star on its step would not have."""
        history = self._editor.history
        entry = next((entry for entry in history.kept if entry.number == number), None)
        if entry is None:
            return False
        is_step = any(step.number == number for step in history.entries)
        return not is_step or bool(entry.tags) or entry.label != place_name(entry.session)

    def _tell_left_out(self, count: int) -> None:
        if count:
            self._messages.warning(f"There was no room for {count:,} more: up to {MOST_KEPT} are kept.")

    def _changed(self) -> None:
        self._autosave.keep(self._editor.kept)
        self._announce()

    @Slot(object, object)
    def _merge(self, kept: KeptSessions, dropped: tuple[Session, ...]) -> None:
        """Take over what another window has kept or dropped; it is saved already."""
        self._editor.keep(kept, is_limited=False)
        self._editor.drop_kept(dropped)
        self._announce()
