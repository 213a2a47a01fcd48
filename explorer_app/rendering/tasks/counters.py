"""Hardware counters of the kernels of a picture, measured on request."""

from __future__ import annotations

from collections.abc import Callable, Generator
from threading import Condition

from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.render_events import CountersMeasured, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import Priority, RenderTask
from gpu_backend import RenderRequest


class CountersTask(RenderTask):
    """Measures counters, a run of all kernels per step; the newest request wins. Parameters as `PreviewTask`."""

    priority = Priority.COUNTERS
    preview_share = 0.5

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        self._requests: Mailbox[RenderRequest] = Mailbox(condition)
        self._report = report
        self._recovers = recovers
        self._steps: Generator[None, None, None] | None = None
        self._renderer: RendererLike | None = None
        """What `_steps` belongs to."""

    def request(self, request: RenderRequest) -> None:
        """Replace the waiting request."""
        self._requests.put(request)

    def seconds_until_ready(self) -> float | None:
        """Return 0 while counters are measured or to be measured."""
        return None if self._requests.is_empty and self._steps is None else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Count once; a request for a model or a device that has gone is dropped."""
        request = self._requests.take()
        if request is not None or renderer is not self._renderer:
            self.close()
        if renderer is None:
            return True
        try:
            if request is not None and request.model_id == renderer.facts.model_id:
                self._steps, self._renderer = renderer.counter_steps(request), renderer
            if self._steps is not None:
                next(self._steps)
        except StopIteration:
            self.close()
            self._report(CountersMeasured())
        except Exception as error:
            self.close()
            if not self._recovers(error):
                self._report(CountersMeasured(error))
        return True

    def close(self) -> None:
        """End a measurement under way."""
        if self._steps is not None:
            self._steps.close()
        self._steps = self._renderer = None
