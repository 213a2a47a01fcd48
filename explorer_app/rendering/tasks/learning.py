"""Trains an encoder of the open model while nothing moves: bursts of steps with the present renderer."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING, Protocol, cast

from explorer_app.rendering.render_events import LearningAdvanced, LearningEnded, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.making import MakerThreads
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask

if TYPE_CHECKING:
    from gpu_backend import EncoderFile, EncoderReport, RendersSamples

BURST_S = 0.03
"""A burst ends with the first step after this time."""


class TrainingLike(Protocol):
    """What the task needs of `gpu_backend.EncoderTraining`."""

    report: EncoderReport
    """The state after the last step."""

    @property
    def found(self) -> EncoderFile | None:
        """The best encoder so far."""
        ...

    def step(self, renderer: RendersSamples) -> EncoderReport:
        """Render a few pictures, and fit the encoder."""
        ...


class LearningTask(RenderTask):
    """Steps the training under way; of several, the newest wins. Parameters as for `ProjectionTask`.

    Every burst is a `LearningAdvanced` event. The last step, an error and `stop` end the training with a
    `LearningEnded`, `cancel` without an event.
    """

    priority = Priority.LEARNING
    yields_to = URGENT | {Priority.PREVIEW, Priority.DRAG}

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._condition = condition
        self._report = report
        self._clock = clock
        self._number = -1
        """Of the newest training; -1 for none."""
        self._training: TrainingLike | None = None
        self._is_stopping = False
        self._makers = MakerThreads("preparing encoder")

    def begin(self, number: int, make: Callable[[], TrainingLike]) -> None:
        """Replace the training under way. `make` runs on a thread of its own; events carry `number`, at least 0."""
        with self._condition:
            self._number, self._training, self._is_stopping = number, None, False
        self._makers.start(partial(self._make, number, make))

    def stop(self) -> None:
        """End the training with the best encoder so far; one that is still being made has none."""
        with self._condition:
            number, is_made = self._number, self._training is not None
            self._is_stopping = True
            if not is_made:
                self._number = -1
            self._condition.notify_all()
        if number >= 0 and not is_made:
            self._report(LearningEnded(number, None))

    def cancel(self) -> None:
        """End the training without an event."""
        with self._condition:
            self._number, self._training = -1, None

    def close(self) -> None:
        """End the training and wait for threads that make one."""
        self.cancel()
        self._makers.close()

    def seconds_until_ready(self) -> float | None:
        """Return 0 while there is a training."""
        return None if self._training is None else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Do steps for `BURST_S`, at least one, and report them; or end the training."""
        with self._condition:
            number, training, is_stopping = self._number, self._training, self._is_stopping
        if training is None or renderer is None:
            return True
        error: Exception | None = None
        try:
            if not is_stopping:
                end_s = self._clock() + BURST_S
                report = training.step(cast("RendersSamples", renderer))
                while not report.is_done and self._clock() < end_s and not should_yield():
                    report = training.step(cast("RendersSamples", renderer))
        except Exception as raised:
            error = raised
        if error is None and not is_stopping and not training.report.is_done:
            self._report_if_newest(LearningAdvanced(number, training.report))
        elif self._ends(number):
            self._report(LearningEnded(number, training.found, error))
        return True

    def _report_if_newest(self, event: LearningAdvanced) -> None:
        with self._condition:
            is_newest = event.number == self._number
        if is_newest:
            self._report(event)

    def _ends(self, number: int) -> bool:
        """Forget the training if it is still the newest one; return whether it was."""
        with self._condition:
            if number != self._number:
                return False
            self._number, self._training = -1, None
        return True

    def _make(self, number: int, make: Callable[[], TrainingLike]) -> None:
        try:
            training = make()
        except Exception as error:
            if self._ends(number):
                self._report(LearningEnded(number, None, error))
            return
        with self._condition:
            if number == self._number:
                self._training = training
                self._condition.notify_all()
