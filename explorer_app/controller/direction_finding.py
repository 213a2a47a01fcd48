"""Finds directions: searches on the render thread, stores the result in a file, and reads the model again with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.editing import Editing
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import DirectionsAdvanced, DirectionsFailed, DirectionsFound
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.adapting import adapt
from explorer_app.session.direction_files import AddedDirections, DirectionFiles
from explorer_app.session.resolve import resolve_blend
from explorer_app.session.session import Session
from gpu_backend import LoomError, ModelFacts, dataclass

if TYPE_CHECKING:
    from gpu_backend import DirectionFinder, DirectionSearch


@dataclass(frozen=True, slots=True)
class DirectionsState:
    """State of a search.

    Attributes
    ----------
    share
        0..1 while a search is under way, None otherwise.
    added
        The directions found last, which can be removed again.
    """

    share: float | None = None
    added: AddedDirections | None = None


@dataclass(slots=True)
class _Step:
    """The step of the history that a search became, and whether its directions are in their file."""

    number: int
    added: AddedDirections
    is_applied: bool = True


class DirectionFinding(QObject):
    """Searches in the open model, stores the directions beside it or in the user's folder, and removes them again.

    After either, the model is read again, so that its sliders show what its files hold. A search is one step of the
    history: undo removes its directions, redo brings them back.
    """

    changed = Signal()

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
        editing: Editing,
        export: ExportQueueController,
        files: DirectionFiles,
        worker: FileWorker,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._files = files
        self._worker = worker
        self._messages = messages
        self._model = model
        self._editing = editing
        self._export = export
        self._steps: list[_Step] = []
        """Searches in the open model that undo can reach, oldest first."""
        self._finder: DirectionFinder | None = None
        self._facts: ModelFacts | None = None
        self.state = DirectionsState()
        editing.history_changed.connect(self._follow_history)
        export.changed.connect(self._follow_history)

    def find(self, search: DirectionSearch, having: Sequence[Session] = (), lacking: Sequence[Session] = ()) -> None:
        """Search directions in the open model; `changed` reports progress.

        Parameters
        ----------
        search
            Its name gets a number if it is taken; its examples are the sessions'.
        having, lacking
            For a search from examples: sessions with what the direction is to add, and without it.
        """
        facts = self._model.facts
        if facts is None:
            return
        if self._export.progress is not None:
            self._messages.warning("An export is running with this model; find directions when it has ended.")
            return
        from gpu_backend import DirectionFinder, free_example_name, free_set_name

        free_name = free_example_name if search.method == "examples" else free_set_name
        blends = [tuple(resolve_blend(adapt(each, facts).session) for each in side) for side in (having, lacking)]
        search = replace(
            search, name=free_name(search.name, facts.named_directions), having=blends[0], lacking=blends[1]
        )
        try:
            self._finder = DirectionFinder(search)
        except LoomError as error:
            self._messages.error(error.sentence, error.details)
            return
        self._facts = facts
        self._renders.find_directions(self._finder)
        self._show(replace(self.state, share=0.0))

    def cancel(self) -> None:
        """End the search."""
        self._renders.cancel_directions()
        if self._finder is not None:
            self._finder = None
            self._show(replace(self.state, share=None))

    def forget(self) -> None:
        """Another model is open: end a search in the former one, and forget its result."""
        self.cancel()
        self._facts = None
        self._steps.clear()
        self._show(DirectionsState())

    def take_back(self) -> None:
        """Remove the directions that were found last; nothing happens during an export.

        If the search is the newest step, this is undo; otherwise later edits stay, and the step of the search becomes
        empty.
        """
        added, current = self.state.added, self._editing.history.current
        if self._export.progress is not None or added is None:
            return
        number = next((step.number for step in self._steps if step.added is added), None)
        if current is not None and current.number == number:
            self._editing.undo()
        else:
            self._steps = [step for step in self._steps if step.added is not added]
            self._exchange([(self._files.take_back, added)])

    @Slot()
    def _follow_history(self) -> None:
        """Write the directions found up to the current step into the files. During an export the model stays."""
        if not self._steps or self._export.progress is not None:
            return
        history = self._editing.history
        numbers = [entry.number for entry in history.entries]
        done, undone = set(numbers[: history.position + 1]), set(numbers[history.position + 1 :])
        changes: list[tuple[Callable[[AddedDirections], None], AddedDirections]] = []
        for step in reversed(self._steps):
            if step.is_applied and step.number in undone:
                step.is_applied = False
                changes.append((self._files.take_back, step.added))
        for step in self._steps:
            if not step.is_applied and step.number in done:
                step.is_applied = True
                changes.append((self._files.put_back, step.added))
        self._steps = [step for step in self._steps if step.number in done | undone]  # undo cannot reach the others
        if changes:
            self._exchange(changes)

    def _exchange(self, changes: Sequence[tuple[Callable[[AddedDirections], None], AddedDirections]]) -> None:
        """Change files in this order, then read the model again."""
        applied = [step.added for step in self._steps if step.is_applied]
        self._show(replace(self.state, added=applied[-1] if applied else None))
        if self._facts is None:
            return
        facts = self._facts

        def change() -> None:
            for exchange, added in changes:
                exchange(added)

        self._worker.fetch(change, lambda _: self._read_again(facts), failed="Directions could not be changed")

    def _is_of(self, facts: ModelFacts) -> bool:
        """Return whether the steps are those of a model: no other one was opened since its last search."""
        return self._facts is not None and self._facts.model_id == facts.model_id

    def _read_again(self, facts: ModelFacts) -> None:
        """Read a model again, unless the user opens another one meanwhile."""
        loading = self._model.loading
        if self._is_of(facts) and (loading is None or Path(loading.path) == Path(facts.path)):
            self._model.open(Path(facts.path))

    def take_advanced(self, event: DirectionsAdvanced) -> None:
        """Show progress."""
        if event.finder is self._finder:
            self._show(replace(self.state, share=event.share))

    def take_failed(self, event: DirectionsFailed) -> None:
        """Show why a search failed."""
        if event.finder is self._finder:
            self._finder = None
            self._messages.exception(event.error)
            self._show(replace(self.state, share=None))

    def take_found(self, event: DirectionsFound) -> None:
        """Store the result of a search, then show it."""
        facts = self._facts
        if event.finder is not self._finder or facts is None:
            return
        self._finder = None
        self._show(replace(self.state, share=None))
        self._worker.fetch(
            lambda: self._files.add(facts, event.found),
            partial(self._take_added, facts),
            failed="Directions could not be kept",
        )

    def _take_added(self, facts: ModelFacts, added: AddedDirections) -> None:
        count = len(added.names)
        what = f"{count} directions are" if count != 1 else "A direction is"
        details = f"{', '.join(added.names)}\n{added.path}"
        if not self._is_of(facts):  # another model is open, whose sliders and history are not theirs
            self._messages.info(f"{what} found in {facts.name}.", details)
            return
        self._messages.info(f"{what} found; the sliders show what is new.", details)
        self._steps.append(_Step(self._editing.add_step("Find directions"), added))
        self._show(replace(self.state, added=added))
        self._read_again(facts)

    def _show(self, state: DirectionsState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit()
