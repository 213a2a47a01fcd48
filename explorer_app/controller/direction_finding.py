"""Finding directions: a search on the rendering thread, its file, and the model read again with what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from explorer_app.controller.adapting import adapt
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import DirectionsAdvanced, DirectionsFailed, DirectionsFound
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.direction_files import AddedDirections, DirectionFiles
from explorer_app.session.resolve import resolve_blend
from explorer_app.session.session import Session
from gpu_backend import LoomError, ModelFacts

if TYPE_CHECKING:
    from gpu_backend import DirectionFinder, DirectionSearch


@dataclass(frozen=True, slots=True)
class DirectionsState:
    """How far a search is.

    Attributes
    ----------
    share
        0..1 while a search is under way, None otherwise.
    added
        What was found last, and can be taken back.
    """

    share: float | None = None
    added: AddedDirections | None = None


class DirectionFinding(QObject):
    """Searches in the open model, stores the directions beside it or in the user's folder, and removes them again.

    After either, the model is read again, so that its sliders show what its files hold.
    """

    changed = Signal()

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
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
        self._export = export
        self._finder: DirectionFinder | None = None
        self._facts: ModelFacts | None = None
        self.state = DirectionsState()

    def find(self, search: DirectionSearch, having: Sequence[Session] = (), lacking: Sequence[Session] = ()) -> None:
        """Search directions in the open model; `changed` reports progress.

        Parameters
        ----------
        search
            Its name gets a number where it is taken; its examples are those of the sessions.
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
        """Another model is open: a search in the former one ends, and nothing can be taken back."""
        self.cancel()
        self._show(DirectionsState())

    def take_back(self) -> None:
        """Remove the directions that were found last; nothing happens during an export."""
        added, facts = self.state.added, self._facts
        if self._export.progress is None and added is not None and facts is not None:
            self._show(replace(self.state, added=None))
            path = Path(facts.path)
            self._worker.fetch(
                lambda: self._files.take_back(added),
                lambda _: self._model.open(path),
                failed=f"{added.path.name} could not be changed",
            )

    def take_advanced(self, event: DirectionsAdvanced) -> None:
        """A search got on."""
        if event.finder is self._finder:
            self._show(replace(self.state, share=event.share))

    def take_failed(self, event: DirectionsFailed) -> None:
        """A search could not go on."""
        if event.finder is self._finder:
            self._finder = None
            self._messages.exception(event.error)
            self._show(replace(self.state, share=None))

    def take_found(self, event: DirectionsFound) -> None:
        """A search is done: keep what it found, then show it."""
        facts = self._facts
        if event.finder is not self._finder or facts is None:
            return
        self._finder = None
        self._show(replace(self.state, share=None))
        self._worker.fetch(
            lambda: self._files.add(facts, event.found), self._take_added, failed="Directions could not be kept"
        )

    def _take_added(self, added: AddedDirections) -> None:
        assert self._facts is not None
        count = len(added.names)
        what = f"{count} directions are" if count != 1 else "A direction is"
        details = f"{', '.join(added.names)}\n{added.path}"
        self._messages.info(f"{what} found; the sliders show what is new.", details)
        self._show(replace(self.state, added=added))
        self._model.open(Path(self._facts.path))

    def _show(self, state: DirectionsState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit()
