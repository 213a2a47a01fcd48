"""Searches directions with the present renderer, one batch of latents per step."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import TYPE_CHECKING, cast

from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.render_events import DirectionsAdvanced, DirectionsFailed, DirectionsFound, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import Priority, RenderTask

if TYPE_CHECKING:
    from gpu_backend import DirectionFinder, MapsLatents


class DirectionsTask(RenderTask):
    """Finds directions; of several searches, the newest wins. Parameters as for `PreviewTask`."""

    priority = Priority.SEARCH

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        self._finders: Mailbox[DirectionFinder] = Mailbox(condition)
        self._wanted: DirectionFinder | None = None
        """The search under way; one that was cancelled during a step does not continue."""
        self._report = report
        self._recovers = recovers

    def put(self, finder: DirectionFinder) -> None:
        """Replace the active search."""
        self._wanted = finder
        self._finders.put(finder)

    def cancel(self) -> None:
        """End the search without an event."""
        self._wanted = None
        self._finders.clear()

    def seconds_until_ready(self) -> float | None:
        """Return 0 while there is a search."""
        return None if self._finders.is_empty else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Do the next batch."""
        finder = self._finders.take()
        if finder is None or renderer is None:
            return True
        try:
            found = finder.step(cast("MapsLatents", renderer))
        except Exception as error:
            if self._recovers(error):
                self._continue(finder)
            else:
                self._report(DirectionsFailed(finder, error))
            return True
        if found is not None:
            self._report(DirectionsFound(finder, found))
        else:
            self._report(DirectionsAdvanced(finder, finder.share))
            self._continue(finder)
        return True

    def _continue(self, finder: DirectionFinder) -> None:
        if finder is self._wanted:
            self._finders.put_back(finder)
