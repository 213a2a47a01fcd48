"""Rows of w that an action of the user waits for: computed without pictures, in the order of the requests."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from threading import Condition

import gpu_backend
from explorer_app.rendering.render_events import RenderEvent, RowsFailed, RowsMade
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask
from gpu_backend import RenderRequest, StoredLatent, dataclass

STEP_S = 0.008
"""A step ends with the first latent after this time: a preview waits for one mapping more at most."""


@dataclass(slots=True, eq=False)
class _Fetch:
    """Latents that are requested together, and the rows of those that are computed."""

    number: int
    requests: Sequence[Callable[[], RenderRequest]]
    rows: list[StoredLatent] = field(default_factory=list)


class RowsTask(RenderTask):
    """Computes rows of w for fetches of latents, the oldest fetch first; none is dropped.

    A fetch ends with a `RowsMade`, or with a `RowsFailed` if one of its latents cannot be computed.

    Parameters
    ----------
    condition, report, recovers
        As for `NewestTask`.
    clock
        Seconds from any start, never going back.
    """

    priority = Priority.ROWS
    yields_to = URGENT | {Priority.PREVIEW}
    preview_share = 0.5

    def __init__(
        self,
        condition: Condition,
        report: Callable[[RenderEvent], None],
        recovers: Callable[[Exception], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._condition = condition
        self._report = report
        self._recovers = recovers
        self._clock = clock
        self._fetches: deque[_Fetch] = deque()

    def request(self, number: int, requests: Sequence[Callable[[], RenderRequest]]) -> None:
        """Add a fetch behind the others; events carry `number`, and `requests` are called on the render thread."""
        with self._condition:
            self._fetches.append(_Fetch(number, requests))
            self._condition.notify_all()

    def clear(self) -> None:
        """Drop all fetches, without an event."""
        with self._condition:
            self._fetches.clear()

    def seconds_until_ready(self) -> float | None:
        """Return 0 while a fetch waits."""
        return 0.0 if self._fetches else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Compute rows of the oldest fetch for `STEP_S`, those of one latent at least."""
        with self._condition:
            fetch = self._fetches[0] if self._fetches else None
        if fetch is None or renderer is None:
            return True
        try:
            self._compute(fetch, renderer, should_yield)
        except Exception as error:
            if not self._recovers(error):
                self._end(fetch, RowsFailed(fetch.number, error))
            return True
        if len(fetch.rows) == len(fetch.requests):
            self._end(fetch, RowsMade(fetch.number, tuple(fetch.rows)))
        return True

    def _compute(self, fetch: _Fetch, renderer: RendererLike, should_yield: Callable[[], bool]) -> None:
        end_s = self._clock() + STEP_S
        while len(fetch.rows) < len(fetch.requests):
            request = fetch.requests[len(fetch.rows)]()
            if request.model_id != renderer.facts.model_id:
                raise gpu_backend.RequestError("Latents were to be computed, but their model is no longer open.")
            fetch.rows.append(gpu_backend.stored_latent(renderer.rows_of(request.blend)))
            if self._clock() >= end_s or should_yield():
                break

    def _end(self, fetch: _Fetch, event: RenderEvent) -> None:
        """Report the end of a fetch, unless it was dropped meanwhile."""
        with self._condition:
            if fetch not in self._fetches:
                return
            self._fetches.remove(fetch)
        self._report(event)
