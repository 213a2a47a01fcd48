"""Searches for the fastest tiles on the GPU that renders, one tile a step, while pictures rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from threading import Condition

from explorer_app.rendering.backend import TuningLike
from explorer_app.rendering.render_events import RenderEvent, TuningAdvanced, TuningEnded, TuningFound
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask

_POLL_S = 0.05
"""Interval between looks at kernels that are being compiled."""

_END_S = 10.0
"""A driver that hangs must not block the exit."""

_REPORT_S = 0.1
"""Shortest interval between reports of progress."""


class TuningTask(RenderTask):
    """Tunes once at a time. Kernels are compiled on other threads, and no step waits for them.

    Parameters
    ----------
    condition, report
        As for `PreviewTask`.
    make
        Given a budget in seconds, makes a tuning on a separate thread, because that reads every weight.
    rest_s
        How long previews must have rested.
    """

    priority = Priority.TUNING
    needs_renderer = False
    yields_to = URGENT | {Priority.PREVIEW}

    def __init__(
        self,
        condition: Condition,
        make: Callable[[float], TuningLike],
        report: Callable[[RenderEvent], None],
        rest_s: float,
    ) -> None:
        self._condition = condition
        self._make = make
        self._report = report
        self._rest_s = rest_s
        self._last_preview_s = self._reported_s = float("-inf")
        self._maker: threading.Thread | None = None
        self._made: TuningLike | Exception | None = None
        self._is_stopping = False

    def put(self, budget_s: float) -> None:
        """Begin, unless a tuning is under way."""
        with self._condition:
            if self._maker is not None:
                return
            self._is_stopping = False
            self._maker = threading.Thread(target=self._prepare, args=(budget_s,), name="preparing tuning", daemon=True)
            self._maker.start()

    def stop(self) -> None:
        """End after the step under way; an event reports it."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()

    def note_preview(self) -> None:
        """Record that a preview is requested now."""
        self._last_preview_s = time.monotonic()

    def seconds_until_ready(self) -> float | None:
        """Return how long previews have to rest until the next step, or kernels may take to be compiled."""
        made = self._made
        if made is None:
            return None
        if self._is_stopping or isinstance(made, Exception):
            return 0.0
        if made.is_waiting:
            return _POLL_S
        return max(0.0, self._last_preview_s + self._rest_s - time.monotonic())

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Time or check one tile."""
        made = self._made
        if made is None:
            return True
        if isinstance(made, Exception):
            self._end(made)
        elif self._is_stopping:
            self._end(None)
        else:
            self._advance(made)
        return True

    def close(self) -> None:
        """Free the GPU, without an event."""
        maker = self._maker
        if maker is not None:
            maker.join(_END_S)
        if self._made is not None and not isinstance(self._made, Exception):
            self._made.close()

    def _advance(self, tuning: TuningLike) -> None:
        try:
            found = tuning.step()
        except Exception as error:
            self._end(error)
            return
        if found is not None:
            self._report(TuningFound(found))
        if tuning.is_done:
            self._end(None)
        elif found is not None or time.monotonic() - self._reported_s >= _REPORT_S:
            self._reported_s = time.monotonic()
            self._report(TuningAdvanced(tuning.state))

    def _end(self, error: Exception | None) -> None:
        if self._made is not None and not isinstance(self._made, Exception):
            self._made.close()
        with self._condition:
            self._made = self._maker = None
        self._report(TuningEnded(error))

    def _prepare(self, budget_s: float) -> None:
        made: TuningLike | Exception
        try:
            made = self._make(budget_s)
        except Exception as error:
            made = error
        with self._condition:
            self._made = made
            self._condition.notify_all()
