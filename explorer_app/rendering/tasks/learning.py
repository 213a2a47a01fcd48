"""Trains an encoder of the open model while nothing moves: bursts of steps with the present renderer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from explorer_app.rendering.render_events import LearningAdvanced, LearningEnded, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.burst import SearchTask
from explorer_app.rendering.tasks.task import URGENT, Priority

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


class LearningTask(SearchTask[TrainingLike]):
    """Steps the training under way; the newest replaces the one before.

    Every burst is a `LearningAdvanced` event; the last step, an error and `stop` end the training with a
    `LearningEnded`.
    """

    priority = Priority.LEARNING
    yields_to = URGENT | {Priority.PREVIEW, Priority.DRAG}
    burst_s = BURST_S
    maker_name = "preparing encoder"

    def _step_once(self, work: TrainingLike, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        return work.step(cast("RendersSamples", renderer)).is_done

    def _is_done(self, work: TrainingLike) -> bool:
        return work.report.is_done

    def _advanced(self, number: int, work: TrainingLike) -> RenderEvent:
        return LearningAdvanced(number, work.report, work.found)

    def _ended(self, number: int, work: TrainingLike | None) -> RenderEvent:
        return LearningEnded(number, None if work is None else work.found)

    def _failed(self, number: int, work: TrainingLike | None, error: Exception) -> RenderEvent:
        return LearningEnded(number, None if work is None else work.found, error)
