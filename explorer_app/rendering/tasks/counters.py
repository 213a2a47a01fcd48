"""Hardware counters of the kernels of a picture, measured on request."""

from __future__ import annotations

from collections.abc import Callable, Generator
from threading import Condition

from explorer_app.rendering.render_events import CountersMeasured, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.newest import NewestTask
from explorer_app.rendering.tasks.task import Priority
from gpu_backend import CancelledError, RenderRequest, dataclass

_END = object()


@dataclass(frozen=True, slots=True)
class _Measurement:
    request: RenderRequest
    renderer: RendererLike
    steps: Generator[None, None, None]


class CountersTask(NewestTask[RenderRequest]):
    """Measures counters, a run of all kernels per step; a request stays until its last step, or its renderer goes."""

    priority = Priority.COUNTERS
    preview_share = 0.5

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        super().__init__(condition, report, recovers)
        self._under_way: _Measurement | None = None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Count once."""
        is_done = super().step(renderer, should_yield)
        if self._requests.is_empty:
            self._end()
        return is_done

    def close(self) -> None:
        """End a measurement under way."""
        self._requests.clear()
        self._end()

    def _is_for(self, request: RenderRequest, renderer: RendererLike) -> bool:
        under_way = self._under_way
        if under_way is not None and under_way.request is request:
            return under_way.renderer is renderer
        return request.model_id == renderer.facts.model_id

    def _answer(self, request: RenderRequest, renderer: RendererLike, should_yield: Callable[[], bool]) -> None:
        under_way = self._under_way
        if under_way is None or under_way.request is not request:
            self._end()
            under_way = self._under_way = _Measurement(request, renderer, renderer.counter_steps(request))
        try:
            is_over = next(under_way.steps, _END) is _END
        except CancelledError as error:  # the plan was freed: these steps cannot go on
            self._report(CountersMeasured(error))
            return
        if is_over:
            self._report(CountersMeasured())
        else:
            self._requests.put_back(request)

    def _failed(self, request: RenderRequest, error: Exception) -> RenderEvent:
        return CountersMeasured(error)

    def _end(self) -> None:
        if self._under_way is not None:
            self._under_way.steps.close()
        self._under_way = None
