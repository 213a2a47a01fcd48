"""A picture rendered in every way: fused and plain kernels, with and without the graph."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.render_events import Compared, CompareFailed, RenderEvent
from explorer_app.rendering.renderer_like import PROCESSOR_ID, RendererLike
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask
from gpu_backend import CancelledError, DeviceMemoryError, RenderRequest


class ComparisonTask(RenderTask):
    """Compares; of several requests, the newest wins. Parameters as for `PreviewTask`."""

    priority = Priority.COMPARISON
    preview_share = 0.1

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        self._requests: Mailbox[RenderRequest] = Mailbox(condition)
        self._report = report
        self._recovers = recovers

    def request(self, request: RenderRequest) -> None:
        """Replace the waiting request."""
        self._requests.put(request)

    def seconds_until_ready(self) -> float | None:
        """Return 0 while a request waits."""
        return None if self._requests.is_empty else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Compare; a request for a model that has gone is dropped."""
        request = self._requests.take()
        if request is None or renderer is None or request.model_id != renderer.facts.model_id:
            return True
        # On a GPU it takes a few milliseconds, and so is done even while the picture never rests.
        is_slow = renderer.device.id == PROCESSOR_ID
        self.yields_to = URGENT | {Priority.PREVIEW} if is_slow else URGENT
        try:
            self._report(Compared(renderer.compare(request, should_cancel=should_yield)))
        except CancelledError:
            self._requests.put_back(request)
            return False
        except DeviceMemoryError as error:
            self._report(CompareFailed(error))  # two kinds of kernels take more memory than pictures do
        except Exception as error:
            if not self._recovers(error):
                self._report(CompareFailed(error))
        return True
