"""Arithmetic of kept latents: averages, weighted sums, and differences as directions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QObject

from explorer_app.controller.direction_finding import DirectionFinding
from explorer_app.controller.editing import Editing
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.messages import MessageLog
from explorer_app.session.adapting import adapt
from explorer_app.session.edits import TakeLatent
from explorer_app.session.history import HistoryEntry
from explorer_app.session.session import Session
from explorer_app.session.variations import weighted_session
from gpu_backend import RequestError, RowRange

MOST_SUMMED = 64
"""Latents of one sum."""

_NAME_LENGTH = 34


class KeptArithmetic(QObject):
    """Sums kept latents into the session, and turns a difference of two into a direction of the model."""

    def __init__(
        self,
        model: ModelOpener,
        editing: Editing,
        directions: DirectionFinding,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._editing = editing
        self._directions = directions
        self._messages = messages

    def average(self, numbers: Sequence[int]) -> None:
        """Show the average of kept entries (`HistoryEntry.number`), as one step of undo."""
        self._show(self._summands(numbers), None, "Average of kept")

    def weighted(self, numbers: Sequence[int], text: str) -> None:
        """Show a weighted sum of kept entries.

        Parameters
        ----------
        text
            One weight an entry, as a user types them: "1, 0.5, -0.5". They are scaled to sum to one.
        """
        entries = self._summands(numbers)
        if not entries:
            return
        try:
            weights = [float(word) for word in re.split(r"[,;\s]+", text.strip()) if word]
        except ValueError:
            self._messages.warning(f"Weights must be numbers like 1, 0.5, -0.5, but this is {text[:60]!r}.")
            return
        if len(weights) != len(entries):
            self._messages.warning(f"{len(entries)} latents are selected, so enter {len(entries)} weights.")
            return
        self._show(entries, weights, "Weighted sum of kept")

    def difference(self, first: int, second: int) -> None:
        """Find the direction from one kept entry to another one, `second` to `first`, and name it after both."""
        entries = self._entries((first, second))
        if len(entries) == 2:  # another window may have dropped one
            half = (_NAME_LENGTH - 7) // 2
            name = " minus ".join(_plain(entry.label)[:half].strip() for entry in entries)
            self._find(name, entries[0].session, entries[1].session)

    def toward(self, number: int) -> None:
        """Find the direction from the present latent to a kept entry, and name it after the entry."""
        for entry in self._entries((number,)):
            self._find(f"toward {_plain(entry.label)}"[:_NAME_LENGTH].strip(), entry.session, self._editing.session)

    def _find(self, name: str, to: Session, start: Session) -> None:
        from gpu_backend import DirectionSearch  # training is imported when it is used

        facts = self._model.facts
        if facts is not None:
            search = DirectionSearch(method="examples", name=name, rows=RowRange(0, facts.num_ws - 1))
            self._directions.find(search, (to,), (start,))

    def _entries(self, numbers: Sequence[int]) -> tuple[HistoryEntry, ...]:
        entries = (self._editing.history.entry(number) for number in numbers)
        return tuple(entry for entry in entries if entry is not None)

    def _summands(self, numbers: Sequence[int]) -> tuple[HistoryEntry, ...]:
        """Return the entries to sum; none, with a message, if there are too many."""
        if len(numbers) > MOST_SUMMED:
            self._messages.warning(f"A sum has up to {MOST_SUMMED} latents, but {len(numbers):,} are selected.")
            return ()
        return self._entries(numbers)

    def _show(self, entries: Sequence[HistoryEntry], weights: Sequence[float] | None, label: str) -> None:
        facts = self._model.facts
        if facts is None or not entries:
            return
        sessions = [adapt(entry.session, facts).session for entry in entries]
        try:
            total = weighted_session(list(zip(sessions, weights or [1.0] * len(sessions), strict=True)), facts.num_ws)
        except RequestError as error:
            self._messages.warning(error.sentence)
            return
        self._editing.edit(TakeLatent(total, label))


def _plain(text: str) -> str:
    """Return a label as a direction may be named: letters, digits, spaces and dashes."""
    return re.sub(r"[^\w -]", "", text).strip() or "kept"
