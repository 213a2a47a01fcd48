"""Measurements that take many bounded steps, one at a time, while pictures rest: tuning, the ladder."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from threading import Condition
from typing import ClassVar, Generic, TypeVar

from explorer_app.rendering.backend import LadderLike, TuningLike
from explorer_app.rendering.render_events import (
    LadderAdvanced,
    LadderEnded,
    LadderFound,
    RenderEvent,
    TuningAdvanced,
    TuningEnded,
    TuningFound,
)
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.preview_rest import PreviewRest
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask

RunT = TypeVar("RunT", TuningLike, LadderLike)

_POLL_S = 0.05
"""Interval between looks at kernels that are being compiled."""

_END_S = 10.0
"""A driver that hangs must not block the exit."""

_REPORT_S = 0.1
"""Shortest interval between reports of progress."""


class MeasuringTask(RenderTask, Generic[RunT]):
    """Takes the steps of one run at a time. Kernels are compiled on other threads, and no step waits for them.

    Parameters
    ----------
    condition, report
        As for `NewestTask`.
    rest
        Says when previews rest.
    """

    maker_name: ClassVar[str]
    """Name of the thread that makes a run."""

    needs_renderer = False
    yields_to = URGENT | {Priority.PREVIEW}

    def __init__(
        self,
        condition: Condition,
        report: Callable[[RenderEvent], None],
        rest: PreviewRest,
    ) -> None:
        self._condition = condition
        self._report = report
        self._rest = rest
        self._reported_s = float("-inf")
        self._maker: threading.Thread | None = None
        self._made: RunT | Exception | None = None
        self._is_stopping = False

    def put(self, make: Callable[[], RunT]) -> None:
        """Begin, unless a run is under way. `make` is called on a separate thread, because it may read every weight."""
        with self._condition:
            if self._maker is not None:
                return
            self._is_stopping = False
            self._maker = threading.Thread(target=self._prepare, args=(make,), name=self.maker_name, daemon=True)
            self._maker.start()

    def stop(self) -> None:
        """End after the step under way; an event reports it."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()

    def seconds_until_ready(self) -> float | None:
        """Return how long previews have to rest until the next step, or kernels may take to be compiled."""
        made = self._made
        if made is None:
            return None
        if self._is_stopping or isinstance(made, Exception):
            return 0.0
        if made.is_waiting:
            return _POLL_S
        return self._rest.seconds_left()

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Take one step of the run."""
        made = self._made
        if made is None:
            return True
        if isinstance(made, Exception):
            self._end(made)
        elif self._is_stopping:
            self._end(None)
        else:
            self._advance(made, should_yield)
        return True

    def close(self) -> None:
        """Free the GPU, without an event."""
        maker = self._maker
        if maker is not None:
            maker.join(_END_S)
        if self._made is not None and not isinstance(self._made, Exception):
            self._made.close()

    @abstractmethod
    def _take_step(self, run: RunT, should_yield: Callable[[], bool]) -> RenderEvent | None:
        """Take a step; return the event that reports what it found, if it found something."""

    @abstractmethod
    def _advanced(self, run: RunT) -> RenderEvent:
        """Return the event that reports progress."""

    @abstractmethod
    def _ended(self, error: Exception | None) -> RenderEvent:
        """Return the event that reports the end."""

    def _advance(self, run: RunT, should_yield: Callable[[], bool]) -> None:
        try:
            found = self._take_step(run, should_yield)
        except Exception as error:
            self._end(error)
            return
        if found is not None:
            self._report(found)
        if run.is_done:
            self._end(None)
        elif found is not None or time.monotonic() - self._reported_s >= _REPORT_S:
            self._reported_s = time.monotonic()
            self._report(self._advanced(run))

    def _end(self, error: Exception | None) -> None:
        if self._made is not None and not isinstance(self._made, Exception):
            self._made.close()
        with self._condition:
            self._made = self._maker = None
        self._report(self._ended(error))

    def _prepare(self, make: Callable[[], RunT]) -> None:
        made: RunT | Exception
        try:
            made = make()
        except Exception as error:
            made = error
        with self._condition:
            self._made = made
            self._condition.notify_all()


class TuningTask(MeasuringTask[TuningLike]):
    """Searches for the fastest tiles on the GPU that renders, one tile per step."""

    priority = Priority.TUNING
    maker_name = "preparing tuning"

    def _take_step(self, run: TuningLike, should_yield: Callable[[], bool]) -> RenderEvent | None:
        found = run.step()
        return None if found is None else TuningFound(found)

    def _advanced(self, run: TuningLike) -> RenderEvent:
        return TuningAdvanced(run.state)

    def _ended(self, error: Exception | None) -> RenderEvent:
        return TuningEnded(error)


class LadderTask(MeasuringTask[LadderLike]):
    """Measures what each optimisation gains on the device that renders, a few runs per step."""

    priority = Priority.LADDER
    maker_name = "preparing ladder"

    def _take_step(self, run: LadderLike, should_yield: Callable[[], bool]) -> RenderEvent | None:
        found = run.step(should_yield)
        return None if found is None else LadderFound(found)

    def _advanced(self, run: LadderLike) -> RenderEvent:
        return LadderAdvanced(run.state)

    def _ended(self, error: Exception | None) -> RenderEvent:
        return LadderEnded(error)
