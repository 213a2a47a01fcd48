"""The maker of drags of the open model: made at the first use, its network opened on a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import gpu_backend
from explorer_app.rendering.tasks.drag import MakesDrags
from gpu_backend import LoomError, RenderRequest

if TYPE_CHECKING:
    from gpu_backend import Model

_JOIN_S = 10.0

_log = logging.getLogger(__name__)


class DragPreparation:
    """Prepares dragging.

    Parameters
    ----------
    make_maker
        Makes the maker of optimisers at the first use; None for `gpu_backend.DragMaker`.
    """

    def __init__(self, make_maker: Callable[[], MakesDrags] | None = None) -> None:
        self._make_maker = make_maker
        self._maker: MakesDrags | None = None
        self._thread: threading.Thread | None = None
        self._slower_because = ""
        """What was said last about the pace of drags."""

    @property
    def maker(self) -> MakesDrags:
        """The maker for the open model."""
        if self._maker is None:
            self._maker = (self._make_maker or gpu_backend.DragMaker)()
        return self._maker

    @property
    def is_under_way(self) -> bool:
        """Whether a network is being opened."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, model: Model, request: RenderRequest) -> None:
        """Open the model's network, so that the first stroke begins at once; does nothing while one is opened."""
        if self.is_under_way:
            return
        self._thread = threading.Thread(
            target=_prepare, args=(self.maker, model, request), name="preparing dragging", daemon=True
        )
        self._thread.start()

    def new_slowness(self) -> str:
        """Return why steps take longer than without edits, if that was not said last; else empty."""
        sentence, before = self.maker.slower_because, self._slower_because
        self._slower_because = sentence
        return sentence if sentence != before else ""

    def forget(self) -> None:
        """Make another maker for the next model; this one may be opening a network, which nothing waits for."""
        self._maker = None

    def join(self) -> None:
        """Wait until no network is being opened, for a while."""
        if self._thread is not None:
            self._thread.join(_JOIN_S)


def _prepare(maker: MakesDrags, model: Model, request: RenderRequest) -> None:
    try:
        maker.prepare(model, request.noise, request.edits)
    except LoomError as error:
        # The first stroke shows the error in the window.
        _log.info("Dragging could not be prepared: %s", error.sentence)
