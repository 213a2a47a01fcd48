"""A picture rendered in every way: fused and plain kernels, with and without the graph."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.rendering.render_events import Compared, CompareFailed, RenderEvent
from explorer_app.rendering.renderer_like import PROCESSOR_ID, RendererLike
from explorer_app.rendering.tasks.newest import NewestTask
from explorer_app.rendering.tasks.task import URGENT, Priority
from gpu_backend import DeviceMemoryError, RenderRequest


class ComparisonTask(NewestTask[RenderRequest]):
    """Compares ways of rendering a picture."""

    priority = Priority.COMPARISON
    preview_share = 0.1

    def _is_for(self, request: RenderRequest, renderer: RendererLike) -> bool:
        return request.model_id == renderer.facts.model_id

    def _answer(self, request: RenderRequest, renderer: RendererLike, should_yield: Callable[[], bool]) -> None:
        # On a GPU it takes a few milliseconds, and so is done even while the picture never rests.
        is_slow = renderer.device.id == PROCESSOR_ID
        self.yields_to = URGENT | {Priority.PREVIEW} if is_slow else URGENT
        try:
            self._report(Compared(renderer.compare(request, should_cancel=should_yield)))
        except DeviceMemoryError as error:
            self._report(CompareFailed(error))  # two kinds of kernels take more memory than pictures do

    def _failed(self, request: RenderRequest, error: Exception) -> RenderEvent:
        return CompareFailed(error)
