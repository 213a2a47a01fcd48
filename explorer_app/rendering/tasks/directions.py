"""Searches directions with the present renderer, one batch of latents per step."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import TYPE_CHECKING, cast

from explorer_app.rendering.render_events import DirectionsAdvanced, DirectionsFailed, DirectionsFound, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.newest import NewestTask
from explorer_app.rendering.tasks.task import Priority

if TYPE_CHECKING:
    from gpu_backend import DirectionFinder, MapsLatents


class DirectionsTask(NewestTask["DirectionFinder"]):
    """Finds directions."""

    priority = Priority.SEARCH

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        super().__init__(condition, report, recovers)
        self._wanted: DirectionFinder | None = None
        """The search under way; one that was cancelled during a step does not continue."""

    def request(self, request: DirectionFinder) -> None:
        """Replace the active search."""
        self._wanted = request
        super().request(request)

    def cancel(self) -> None:
        """End the search without an event."""
        self._wanted = None
        self._requests.clear()

    def _is_for(self, request: DirectionFinder, renderer: RendererLike) -> bool:
        return True

    def _answer(self, request: DirectionFinder, renderer: RendererLike, should_yield: Callable[[], bool]) -> None:
        found = request.step(cast("MapsLatents", renderer))
        if found is not None:
            self._report(DirectionsFound(request, found))
        else:
            self._report(DirectionsAdvanced(request, request.share))
            self._after_recovery(request)

    def _failed(self, request: DirectionFinder, error: Exception) -> RenderEvent:
        return DirectionsFailed(request, error)

    def _after_recovery(self, request: DirectionFinder) -> None:
        if request is self._wanted:
            self._requests.put_back(request)
