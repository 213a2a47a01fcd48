"""Optimisations on the render thread: steps in bursts between previews, until they end or a newer one begins."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import ClassVar, Generic, TypeVar

from explorer_app.rendering.render_events import RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.making import MakerThreads
from explorer_app.rendering.tasks.task import RenderTask
from gpu_backend import CancelledError

WorkT = TypeVar("WorkT")


class BurstTask(RenderTask, Generic[WorkT]):
    """Steps one work at a time; the newest replaces the one under way.

    A work has a number, which its events carry, so that the receiver drops those of a former one. A burst ends with an
    event: `_advanced`, or `_failed` after an error, which also ends the work.

    Parameters
    ----------
    condition, report
        As for `NewestTask`.
    clock
        Seconds from any start, never going back.
    """

    burst_s: ClassVar[float]
    """A burst ends with the first step after this time, in seconds."""
    maker_name: ClassVar[str]
    """Name of the threads that make a work."""

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._condition = condition
        self._report = report
        self._clock = clock
        self._number = -1
        """Of the newest work; -1 for none."""
        self._work: WorkT | None = None
        """None also while it is being made."""
        self._makers = MakerThreads(self.maker_name)
        self._reset()

    def begin(self, number: int, make: Callable[[], WorkT]) -> None:
        """Replace the work under way.

        Parameters
        ----------
        number
            At least 0; events carry it.
        make
            Called on a thread of its own, because it may import torch.
        """
        self._replace(number)
        self._makers.start(partial(self._make, number, make))

    def cancel(self) -> None:
        """End the work without an event; a step under way is not reported, and returns early where it can."""
        self._replace(-1)

    def close(self) -> None:
        """Cancel the work and wait for the threads that make one."""
        self.cancel()
        self._makers.close()

    def seconds_until_ready(self) -> float | None:
        """Return 0 while there is a work to step."""
        return None if self._work is None else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Do steps for `burst_s`, at least one, and report them; return False, without a report, if one is put off."""
        with self._condition:
            number, work = self._number, self._work
        if work is None:
            return True
        try:
            self._burst(work, renderer, should_yield)
            event, is_last = self._event(number, work)
        except CancelledError:
            return False
        except Exception as error:
            event, is_last = self._failed(number, work, error), True
        self._report_newest(number, event, is_last=is_last)
        return True

    def _burst(self, work: WorkT, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> None:
        end_s = self._clock() + self.burst_s
        while not self._step_once(work, renderer, should_yield):
            if self._clock() >= end_s or should_yield():
                break

    def _replace(self, number: int) -> None:
        """Let go of the work under way; the next one has a number, or -1 for none."""
        with self._condition:
            former, self._work = self._work, None
            self._number = number
            self._reset()
        if former is not None:
            self._end_early(former)

    def _end_early(self, work: WorkT) -> None:
        """Let a step under way on the render thread return early; the work is not stepped again."""

    def _reset(self) -> None:
        """Forget the state of the former work; called with the condition held."""

    @abstractmethod
    def _step_once(self, work: WorkT, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Do one step; return whether another one would do nothing more.

        Raises
        ------
        CancelledError
            If `should_yield` returned true and the step was put off.
        """

    @abstractmethod
    def _event(self, number: int, work: WorkT) -> tuple[RenderEvent, bool]:
        """Return what a burst reports, and whether the work has ended."""

    @abstractmethod
    def _failed(self, number: int, work: WorkT | None, error: Exception) -> RenderEvent:
        """Return what reports an error; `work` is None if it could not be made."""

    def _make(self, number: int, make: Callable[[], WorkT]) -> None:
        try:
            work = make()
        except Exception as error:
            self._report_newest(number, self._failed(number, None, error), is_last=True)
            return
        with self._condition:
            if number == self._number:
                self._work = work
                self._condition.notify_all()

    def _report_newest(self, number: int, event: RenderEvent, *, is_last: bool) -> None:
        """Report an event unless its work was cancelled or replaced."""
        with self._condition:
            if number != self._number:
                return
            if is_last:
                self._number, self._work = -1, None
        self._report(event)


class SearchTask(BurstTask[WorkT]):
    """Works that end by themselves, or on request with the best result so far."""

    _is_stopping: bool

    def stop(self) -> None:
        """End the work with its best result so far; one that is still being made has none."""
        with self._condition:
            number, work = self._number, self._work
            if work is not None:
                self._is_stopping = True
            else:
                self._number = -1
            self._condition.notify_all()
        if work is not None:
            self._end_early(work)
        elif number >= 0:
            self._report(self._ended(number, None))

    def _burst(self, work: WorkT, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> None:
        if not self._is_stopping:
            super()._burst(work, renderer, should_yield)

    def _event(self, number: int, work: WorkT) -> tuple[RenderEvent, bool]:
        if self._is_stopping or self._is_done(work):
            return self._ended(number, work), True
        return self._advanced(number, work), False

    def _reset(self) -> None:
        self._is_stopping = False

    @abstractmethod
    def _is_done(self, work: WorkT) -> bool:
        """Return whether the last step was done."""

    @abstractmethod
    def _advanced(self, number: int, work: WorkT) -> RenderEvent:
        """Return what reports a burst."""

    @abstractmethod
    def _ended(self, number: int, work: WorkT | None) -> RenderEvent:
        """Return what reports the end; `work` is None if it was stopped before it was made."""
