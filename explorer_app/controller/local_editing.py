"""Local edits: second latents of blends; channels of a layer, and style channels that move a painted region."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Qt, Signal, Slot

import gpu_backend
from explorer_app.controller.editing import Editing
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.single_latents import FetchRows, take_current, take_latents
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import MapsFailed, MapsMade
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.adapting import adapt
from explorer_app.session.edits import AddBlend, AddStyleChannels, SetParameters
from explorer_app.session.local_edits import StyleChannel
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from gpu_backend import (
    MAX_BLENDS,
    Latent,
    LazyModule,
    LocalEdits,
    LoomError,
    Noise,
    Point,
    RecipeBudget,
    RequestError,
    StoredLatent,
    Transform,
    flat_latent,
    spend_latent,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_backend import ChannelMaps, FoundStyle, Model
else:
    np = LazyModule("numpy")

NO_MASK = "Paint the region first: with Freeze, in the bar of dragging (D)."


class SearchLike(Protocol):
    """What is needed of `gpu_backend.StyleSearch`."""

    @property
    def share(self) -> float:
        """Progress, 0..1."""
        ...

    def step(self) -> tuple[FoundStyle, ...] | None:
        """Do a pass; return the channels after the last one."""
        ...


MakesSearches = Callable[["Model", Noise, LocalEdits, StoredLatent, "NDArray[np.float32]"], SearchLike]
"""Makes a search on any thread. Raises LoomError."""


class LocalEditing(QObject):
    """Requests and passes on what the panel of local edits shows.

    A search runs on a thread of its own, on the processor, so that the render thread never waits for it.

    Signals
    -------
    maps_made(object)
        `gpu_backend.ChannelMaps` of the layer that was requested last.
    maps_failed(str)
        They cannot be rendered; one sentence.
    search_changed()
        `text` and `is_searching`.
    mask_needed(int)
        The blend of this number was added; nothing is painted yet.
    """

    maps_made = Signal(object)
    maps_failed = Signal(str)
    search_changed = Signal()
    mask_needed = Signal(int)
    _advanced = Signal()

    def __init__(
        self,
        renders: RenderThread,
        editing: Editing,
        fetch_rows: FetchRows,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._editing = editing
        self._fetch_rows = fetch_rows
        self._messages = messages
        self.make_search: MakesSearches = _search
        self.maps: ChannelMaps | None = None
        self._worker: FileWorker | None = None
        self._stop = threading.Event()
        self._share: float | None = None
        """Progress of the search under way; None at rest."""
        self._advanced.connect(self.search_changed, Qt.ConnectionType.QueuedConnection)

    @property
    def is_searching(self) -> bool:
        """Whether style channels are searched for."""
        return self._share is not None

    @property
    def text(self) -> str:
        """The state of the search as a user reads it; empty at rest."""
        share = self._share
        if share is None:
            return ""
        return f"Searching: {100 * share:.0f} %" if share else "Searching: opening the network."

    @Slot(str)
    def request_maps(self, layer: str) -> None:
        """Render the channels of a layer for the picture that is shown, without its edits."""
        shown = self._editing.shown
        self._renders.request_maps(resolve(self._editing.session if shown is None else shown[0]), layer)

    # -- blends -----------------------------------------------------------------------------------------------------

    @Slot(int, int)
    def blend_with_seed(self, seed: int, number: int = 0) -> None:
        """Make a seed the second latent of a blend; 0 adds a blend. What is frozen becomes its mask."""
        classes = self._editing.session.classes
        self._blend_with(Latent(Point(((seed, 1.0),)), classes), f"seed {seed}", number)

    @Slot(int)
    def blend_with_shown(self, number: int = 0) -> None:
        """Make what is shown the second latent of a blend; 0 adds a blend."""
        take_current(self._editing, self._fetch_rows, lambda latent: self._blend_with(latent, "", number))

    @Slot(int, int)
    def blend_with_kept(self, kept: int, number: int = 0) -> None:
        """Make a kept entry the second latent of a blend; 0 adds a blend."""
        model, entry = self._renders.model, self._editing.history.entry(kept)
        if model is not None and entry is not None:
            session, name = adapt(entry.session, model.facts).session, entry.label
            take_latents([session], self._fetch_rows, lambda latents: self._blend_with(latents[0], name, number))

    def _blend_with(self, latent: Latent, name: str, number: int) -> None:
        session = self._editing.session
        others = [blend.latent for blend in session.blends if blend.number != number]
        try:
            budget = RecipeBudget()
            for item in (*others, latent):
                spend_latent(item, budget, 1)
        except RequestError as error:
            self._messages.warning(f"This latent is too complex for a blend. {error.sentence}")
            return
        if session.blend(number) is not None:
            path = f"blend/{number}"
            edits = (SetParameter(f"{path}/latent", flat_latent(latent)), SetParameter(f"{path}/name", name))
            self._editing.edit(SetParameters(edits, "Blend's latent"))
        elif len(others) >= MAX_BLENDS:
            self._messages.info(f"A picture has at most {MAX_BLENDS} blends; remove one to add another.")
        else:
            self._editing.edit(AddBlend(latent, session.mask, name))
            if session.mask is None:
                self.mask_needed.emit(self._editing.session.blends[-1].number)

    # -- channels ---------------------------------------------------------------------------------------------------

    @Slot()
    def find_style_channels(self) -> None:
        """Search the style channels that move what is painted; a message says why if there can be no search."""
        model, rows, mask = self._renders.model, self._editing.shown_latent, self._editing.session.mask
        if self.is_searching:
            return
        if mask is None:
            self._messages.info(NO_MASK)
            return
        if self._editing.session.transform != Transform():
            self._messages.warning(
                "The region is painted on a transformed picture, but style channels are searched in the picture "
                "without it; reset the transform first."
            )
            return
        if model is None or rows is None:
            self._messages.warning("Style channels can be searched once the picture is rendered; wait a moment.")
            return
        if self._worker is None:
            self._worker = FileWorker(self._messages, self)
        stop = self._stop = threading.Event()
        self._share = 0.0
        request, shares = resolve(self._editing.session), mask.shares

        def run() -> tuple[FoundStyle, ...] | Exception:
            try:
                search = self.make_search(model, request.noise, request.edits, rows, shares)
                found = None
                while found is None and not stop.is_set():
                    found = search.step()
                    if not stop.is_set():
                        self._share = max(search.share, 1e-6)
                        self._advanced.emit()
            except Exception as error:  # torch has no type of its own for memory that ran out
                return error
            return found or ()

        self._worker.fetch(run, lambda found: self._take(found, stop, model.facts.model_id))
        self.search_changed.emit()

    @Slot()
    def stop_search(self) -> None:
        """End the search after the pass under way, without a result."""
        self._stop.set()
        self._share = None
        self.search_changed.emit()

    def take_maps(self, event: MapsMade | MapsFailed) -> None:
        """Pass on the channels, or why there are none."""
        if isinstance(event, MapsMade):
            self.maps = event.maps
            self.maps_made.emit(event.maps)
            return
        self._messages.exception(event.error)
        sentence = event.error.sentence if isinstance(event.error, LoomError) else str(event.error)
        self.maps_failed.emit(sentence)

    def forget(self) -> None:
        """Another model is open: end a search in the former one."""
        if self.is_searching:
            self._messages.info("The search for style channels ended, since another model was opened.")
            self.stop_search()

    def close(self) -> None:
        """End the search and its thread. May be called twice."""
        self._stop.set()
        if self._worker is not None:
            self._worker.close()

    def _take(self, found: tuple[FoundStyle, ...] | Exception, stop: threading.Event, model_id: str) -> None:
        """Show the channels as sliders, if they are of the model that is open."""
        if stop.is_set():
            return
        self._share = None
        if isinstance(found, Exception):
            self._messages.exception(found)
        elif self._editing.session.model.model_id == model_id:
            channels = tuple(StyleChannel(item.layer, item.channel, 0.0, item.reach) for item in found)
            self._editing.edit(AddStyleChannels(channels))
        self.search_changed.emit()


def _search(
    model: Model, noise: Noise, edits: LocalEdits, latent: StoredLatent, mask: NDArray[np.float32]
) -> SearchLike:
    network = gpu_backend.open_gradients(model, noise, "cpu").edited(edits)
    rows = latent.to_array()
    if latent.num_ws == 1:
        rows = np.repeat(rows, network.spec.num_ws, axis=0)
    return gpu_backend.StyleSearch(network, rows, mask)
