"""Tasks that answer one request at a time: the newest wins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from threading import Condition
from typing import Generic, TypeVar

from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.render_events import RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import RenderTask
from gpu_backend import CancelledError

RequestT = TypeVar("RequestT")


class NewestTask(RenderTask, Generic[RequestT]):
    """Answers the newest request; one that was replaced, or that the renderer cannot answer, is dropped.

    A cancelled step is repeated unless a newer request has arrived.

    Parameters
    ----------
    condition
        The render thread's.
    report
        Takes results and what went wrong.
    recovers
        Switches to another device if the error is the device's; returns whether it did.
    """

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        self._requests: Mailbox[RequestT] = Mailbox(condition)
        self._report = report
        self._recovers = recovers

    def request(self, request: RequestT) -> None:
        """Replace the waiting request."""
        self._requests.put(request)

    def seconds_until_ready(self) -> float | None:
        """Return 0 while a request waits."""
        return None if self._requests.is_empty else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Answer the newest request."""
        request = self._requests.take()
        if request is None or renderer is None or not self._is_for(request, renderer):
            return True
        try:
            self._answer(request, renderer, should_yield)
        except CancelledError:
            self._requests.put_back(request)
            return False
        except Exception as error:
            if self._recovers(error):
                self._after_recovery(request)
            else:
                self._report(self._failed(request, error))
        return True

    @abstractmethod
    def _is_for(self, request: RequestT, renderer: RendererLike) -> bool:
        """Return whether the renderer can answer a request: it has the request's model."""

    @abstractmethod
    def _answer(self, request: RequestT, renderer: RendererLike, should_yield: Callable[[], bool]) -> None:
        """Do the step: report its result, or put the request back for the next step."""

    @abstractmethod
    def _failed(self, request: RequestT, error: Exception) -> RenderEvent:
        """Return what reports an error."""

    def _after_recovery(self, request: RequestT) -> None:
        """Go on after another device has taken over."""
