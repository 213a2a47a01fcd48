"""Two pictures in flight: a GPU renders the next while the one before is copied, encoded and written. No Qt."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from explorer_app.rendering.renderer_like import PROCESSOR_ID, AnswersRequests, PendingLike
from gpu_backend import Frame, RenderRequest

IN_FLIGHT = 2
"""More would use more memory and keep the GPU no busier."""


class Pipeline:
    """Turns a sequence of requests into frames: all of them, in order.

    The CPU gains nothing from a second frame in flight and can cancel the running one, so it gets one at a time.

    Parameters
    ----------
    next_request
        Gives the next request, None if there is none now.
    """

    def __init__(self, next_request: Callable[[], RenderRequest | None]) -> None:
        self._next_request = next_request
        self._renderer: AnswersRequests | None = None
        self._unanswered: deque[RenderRequest] = deque()
        """Unanswered requests; the first ones are in flight."""
        self._in_flight: deque[PendingLike] = deque()

    @property
    def has_in_flight(self) -> bool:
        """Whether a frame is in flight, or a former renderer left one unanswered."""
        return bool(self._unanswered)

    def next_frame(self, renderer: AnswersRequests, *, should_cancel: Callable[[], bool] | None = None) -> Frame | None:
        """Return the next frame, None if none is under way and there is no request now.

        Requests that the previous renderer left unanswered are submitted to this one, so a lost or changed device
        costs no frame. After an error the same request is the next again.

        Raises
        ------
        CancelledError
            If `should_cancel` returned true.
        """
        if renderer is not self._renderer:
            self._in_flight.clear()
            self._renderer = renderer
        if renderer.device.id == PROCESSOR_ID:
            request = self._request(0)
            frame = None if request is None else renderer.render(request, should_cancel=should_cancel)
        else:
            while len(self._in_flight) < IN_FLIGHT and (request := self._request(len(self._in_flight))) is not None:
                self._in_flight.append(renderer.submit(request))
            frame = self._in_flight[0].wait() if self._in_flight else None
            if frame is not None:
                self._in_flight.popleft()
        if frame is not None:
            self._unanswered.popleft()
        return frame

    def close(self) -> None:
        """Drop the frames in flight. May be called twice."""
        while self._in_flight:
            try:
                self._in_flight.popleft().wait()
            except Exception:  # neither its frame nor its error is needed
                continue

    def _request(self, place: int) -> RenderRequest | None:
        """Return the unanswered request at an index."""
        if place == len(self._unanswered):
            request = self._next_request()
            if request is None:
                return None
            self._unanswered.append(request)
        return self._unanswered[place]
