"""Adds latents to the mix: the present one, and kept ones."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Slot

from explorer_app.controller.editing import Editing
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.single_latents import FetchRows, take_current, take_latents
from explorer_app.messages import MessageLog
from explorer_app.session.adapting import adapt
from explorer_app.session.edits import AddSources
from explorer_app.session.session import Source
from gpu_backend import Latent, RecipeBudget, RequestError, spend_latent


class Mixing(QObject):
    """Adds mix sources at strength 0, until they are painted; each call is one step of undo."""

    def __init__(
        self,
        model: ModelOpener,
        editing: Editing,
        fetch_rows: FetchRows,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._editing = editing
        self._fetch_rows = fetch_rows
        self._messages = messages

    @Slot()
    def add_current(self) -> None:
        """Add the current latent."""
        facts, session = self._model.facts, self._editing.session
        if facts is None:
            return
        count = 1 + sum(source.label.startswith(("current ", "kept ")) for source in session.mix)
        name = f"current {count}"
        take_current(
            self._editing, self._fetch_rows, lambda latent: self._add_latents([latent], [name], "Mix in current")
        )

    @Slot(object)
    def add_kept(self, numbers: Sequence[int]) -> None:
        """Add kept entries (`HistoryEntry.number`), fitted to the open model."""
        facts, history = self._model.facts, self._editing.history
        entries = [entry for number in numbers if (entry := history.entry(number)) is not None]
        if facts is not None and entries:
            sessions = [adapt(entry.session, facts).session for entry in entries]
            label = f"Mix in {entries[0].label}" if len(entries) == 1 else "Mix in several"
            names = [entry.label for entry in entries]
            take_latents(sessions, self._fetch_rows, lambda latents: self._add_latents(latents, names, label))

    def _add_latents(self, latents: Sequence[Latent], names: Sequence[str], label: str) -> None:
        facts = self._model.facts
        if facts is not None:
            strengths = (0.0,) * facts.num_ws
            pairs = zip(latents, names, strict=True)
            self._add(tuple(Source(latent, strengths, name) for latent, name in pairs), label)

    def _add(self, sources: Sequence[Source], label: str) -> None:
        """Add mix sources as one step; with a message instead if the mix becomes too large."""
        try:
            budget = RecipeBudget()
            for item in (*self._editing.session.mix, *sources):
                spend_latent(item.latent, budget, 1)
        except RequestError as error:
            self._messages.warning(f"The mix is full; remove a source to add another. {error.sentence}")
            return
        self._editing.edit(AddSources(tuple(sources), label))
