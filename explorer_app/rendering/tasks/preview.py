"""The picture on the canvas: of its requests, the newest wins."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Condition

from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.preview_request import PreviewFrame, PreviewRequest
from explorer_app.rendering.render_events import RenderEvent, RenderFailed
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import Priority, RenderTask
from gpu_backend import CancelledError

_REST_S = 0.1
"""A picture moves as long as requests and pictures follow each other within this time."""


class PreviewTask(RenderTask):
    """Renders the newest request.

    A request that was made while something moves is always finished, and of requests at rest at least
    every second one: so a drag that never pauses, or a key that is held, always has a picture to show.

    Parameters
    ----------
    condition
        The render thread's.
    show
        Takes a frame.
    report
        Takes what went wrong.
    recovers
        Switches to another device if the error is the device's; returns whether it did.
    """

    priority = Priority.PREVIEW

    def __init__(
        self,
        condition: Condition,
        show: Callable[[PreviewFrame], None],
        report: Callable[[RenderEvent], None],
        recovers: Callable[[Exception], bool],
    ) -> None:
        self._requests: Mailbox[PreviewRequest] = Mailbox(condition)
        self._show = show
        self._report = report
        self._recovers = recovers
        self._moved_s = float("-inf")
        self._newest: PreviewRequest | None = None
        self._was_cancelled = False

    def request(self, request: PreviewRequest) -> None:
        """Replace the waiting request."""
        self._moved_s = time.monotonic()
        self._requests.put(request)

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

    def seconds_until_ready(self) -> float | None:
        """Return 0 while a request waits."""
        return None if self._requests.is_empty else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Render the newest request, or prepare its plan. A request for a model that was replaced is dropped."""
        newest = self._requests.take()
        if newest is None or renderer is None or newest.request.model_id != renderer.facts.model_id:
            return True
        self._newest = newest
        try:
            if renderer.prepare_step(newest.request):
                self._requests.put_back(newest)
                return True
            frame = renderer.render(newest.request, should_cancel=lambda: should_yield() or self._is_outdated(newest))
        except CancelledError:
            self._was_cancelled = True
            self._requests.put_back(newest)
            return False
        except Exception as error:
            if not self._recovers(error):
                self._report(RenderFailed(error))
            return True
        self._was_cancelled = False
        if not newest.is_at_rest:
            self._moved_s = time.monotonic()
        self._show(PreviewFrame(frame, newest.requested_s))
        return True

    def _is_outdated(self, newest: PreviewRequest) -> bool:
        newer = self._requests.peek() if newest.is_at_rest else None
        if newer is None or newer.request == newest.request:
            return False
        return not (newer.is_at_rest and self._was_cancelled)
