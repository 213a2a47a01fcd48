"""Finding rows of w for a picture: bursts of steps between previews."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING, Protocol

from explorer_app.rendering.render_events import (
    ProjectionAdvanced,
    ProjectionEnded,
    ProjectionFailed,
    RenderEvent,
)
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.making import MakerThreads
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask

if TYPE_CHECKING:
    from gpu_backend import ProjectionReport, StoredLatent

BURST_S = 0.03
"""A burst ends with the first step after this time."""


class ProjectionLike(Protocol):
    """What the task needs of `gpu_backend.Projection`."""

    report: ProjectionReport
    """The state after the last step."""

    @property
    def has_found(self) -> bool:
        """Whether `latent` is that of a picture that was compared."""
        ...

    @property
    def latent(self) -> StoredLatent:
        """The best rows so far."""
        ...

    def step(self) -> ProjectionReport:
        """Do at most one pass forward and backward."""
        ...


class ProjectionTask(RenderTask):
    """Steps the projection under way; of several, the newest wins. Parameters as for `DragTask`.

    Every burst is a `ProjectionAdvanced` event; the last step and `stop` end the projection with a `ProjectionEnded`,
    `cancel` without an event.
    """

    priority = Priority.PROJECTION
    yields_to = URGENT | {Priority.PREVIEW, Priority.DRAG}
    preview_share = 0.5

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._condition = condition
        self._report = report
        self._clock = clock
        self._number = -1
        """Of the newest projection; -1 for none."""
        self._projection: ProjectionLike | None = None
        self._is_stopping = False
        self._best: float | None = None
        """Loss and resolution of the latent that was reported last decide whether there is a better one."""
        self._side = 0
        self._makers = MakerThreads("preparing projection")

    def begin(self, number: int, make: Callable[[], ProjectionLike]) -> None:
        """Replace the projection under way. `make` runs on a thread of its own; events carry `number`, at least 0."""
        with self._condition:
            self._number, self._projection = number, None
            self._is_stopping, self._best = False, None
        self._makers.start(partial(self._make, number, make))

    def stop(self) -> None:
        """End the projection with the best latent so far; one that is still being made has none."""
        with self._condition:
            if self._number < 0:
                return
            number = self._number
            is_made = self._projection is not None
            self._is_stopping = True
            if not is_made:
                self._number = -1
            self._condition.notify_all()
        if not is_made:
            self._report(ProjectionEnded(number, None))

    def cancel(self) -> None:
        """End the projection without an event."""
        with self._condition:
            self._number, self._projection = -1, None

    def close(self) -> None:
        """End the projection and wait for threads that make one."""
        self.cancel()
        self._makers.close()

    def seconds_until_ready(self) -> float | None:
        """Return 0 while there is a projection."""
        return None if self._projection is None else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Do steps for `BURST_S`, at least one, and report them; or end the projection."""
        with self._condition:
            number, projection, is_stopping = self._number, self._projection, self._is_stopping
        if projection is None:
            return True
        try:
            if not is_stopping:
                end_s = self._clock() + BURST_S
                report = projection.step()
                while not report.is_done and self._clock() < end_s and not should_yield():
                    report = projection.step()
            event = self._event(number, projection, is_stopping)
        except Exception as error:
            self._fail(number, error)
            return True
        with self._condition:
            if number != self._number:
                return True
            if isinstance(event, ProjectionEnded):
                self._number, self._projection = -1, None
        self._report(event)
        return True

    def _event(self, number: int, projection: ProjectionLike, is_stopping: bool) -> RenderEvent:
        report = projection.report
        if is_stopping or report.is_done:
            return ProjectionEnded(number, projection.latent if projection.has_found else None)
        is_better = projection.has_found and (self._best, self._side) != (report.loss, report.resolution)
        self._best, self._side = report.loss, report.resolution
        return ProjectionAdvanced(number, report, projection.latent if is_better else None)

    def _make(self, number: int, make: Callable[[], ProjectionLike]) -> None:
        try:
            projection = make()
        except Exception as error:
            self._fail(number, error)
            return
        with self._condition:
            if number == self._number:
                self._projection = projection
                self._condition.notify_all()

    def _fail(self, number: int, error: Exception) -> None:
        with self._condition:
            if number != self._number:
                return
            self._number, self._projection = -1, None
        self._report(ProjectionFailed(number, error))
