"""The picture on the canvas: of its requests, the newest wins."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Condition

from explorer_app.rendering.preview_request import PreviewFrame, PreviewRequest
from explorer_app.rendering.render_events import RenderEvent, RenderFailed
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.newest import NewestTask
from explorer_app.rendering.tasks.task import Priority
from gpu_backend import CancelledError

_REST_S = 0.1
"""A picture moves as long as requests and pictures follow each other within this time."""


class PreviewTask(NewestTask[PreviewRequest]):
    """Renders the picture of the newest request.

    A request that was made while something moves is always finished, and of requests at rest at least
    every second one: so a drag that never pauses, or a key that is held, always has a picture to show.

    Parameters
    ----------
    condition, report, recovers
        As for `NewestTask`.
    show
        Takes a frame.
    """

    priority = Priority.PREVIEW

    def __init__(
        self,
        condition: Condition,
        show: Callable[[PreviewFrame], None],
        report: Callable[[RenderEvent], None],
        recovers: Callable[[Exception], bool],
    ) -> None:
        super().__init__(condition, report, recovers)
        self._show = show
        self._moved_s = float("-inf")
        self._newest: PreviewRequest | None = None
        self._was_cancelled = False

    def request(self, request: PreviewRequest) -> None:
        """Replace the waiting request."""
        self._moved_s = time.monotonic()
        super().request(request)

    def request_again(self) -> None:
        """Render the newest request again, by a renderer that took over."""
        if self._newest is not None:
            request = replace(self._newest.request, measure_steps=False)
            self._requests.put_back(PreviewRequest(request, None, self._newest.is_at_rest))

    def seconds_to_rest(self) -> float:
        """Return for how many seconds another request is expected: 0 shortly after the last request and frame."""
        return max(0.0, self._moved_s + _REST_S - time.monotonic())

    def close(self) -> None:
        """Accept no more requests."""
        self._requests.close()

    def _is_for(self, request: PreviewRequest, renderer: RendererLike) -> bool:
        return request.request.model_id == renderer.facts.model_id

    def _answer(self, request: PreviewRequest, renderer: RendererLike, should_yield: Callable[[], bool]) -> None:
        """Render the picture, or prepare its plan."""
        self._newest = request
        if renderer.prepare_step(request.request):
            self._requests.put_back(request)
            return
        try:
            frame = renderer.render(request.request, should_cancel=lambda: should_yield() or self._is_outdated(request))
        except CancelledError:
            self._was_cancelled = True
            raise
        self._was_cancelled = False
        if not request.is_at_rest:
            self._moved_s = time.monotonic()
        self._show(PreviewFrame(frame, request.requested_s))

    def _failed(self, request: PreviewRequest, error: Exception) -> RenderEvent:
        return RenderFailed(error)

    def _is_outdated(self, newest: PreviewRequest) -> bool:
        newer = self._requests.peek() if newest.is_at_rest else None
        if newer is None or newer.request == newest.request:
            return False
        return not (newer.is_at_rest and self._was_cancelled)
