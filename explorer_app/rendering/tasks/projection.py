"""Finding rows of w for a picture: bursts of steps between previews."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from explorer_app.rendering.render_events import (
    ProjectionAdvanced,
    ProjectionEnded,
    ProjectionFailed,
    RenderEvent,
)
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.burst import SearchTask
from explorer_app.rendering.tasks.task import URGENT, Priority

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        """The best rows so far; on a GPU they are copied from its memory."""
        ...

    @property
    def latent_version(self) -> tuple[float, int]:
        """A value that differs whenever `latent` does, and costs nothing."""
        ...

    def changes(self) -> Mapping[str, NDArray[np.float32]]:
        """Return the changes of weights so far, by official state-dict names; empty without a tuning."""
        ...

    def step(self) -> ProjectionReport:
        """Do at most one pass forward and backward."""
        ...

    def cancel(self) -> None:
        """Let a step under way on another thread return early where it can; the work is not stepped again."""
        ...


class ProjectionTask(SearchTask[ProjectionLike]):
    """Steps the projection under way; the newest replaces the one before.

    Every burst is a `ProjectionAdvanced` event; the last step and `stop` end the projection with a `ProjectionEnded`,
    an error with a `ProjectionFailed`.
    """

    priority = Priority.PROJECTION
    yields_to = URGENT | {Priority.PREVIEW, Priority.DRAG}
    preview_share = 0.5
    causes_previews = True
    burst_s = BURST_S
    maker_name = "preparing projection"

    _reported: tuple[float, int] | None
    """`latent_version` of the latent that was reported last."""

    def _step_once(self, work: ProjectionLike, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        return work.step().is_done

    def _end_early(self, work: ProjectionLike) -> None:
        work.cancel()

    def _is_done(self, work: ProjectionLike) -> bool:
        return work.report.is_done

    def _advanced(self, number: int, work: ProjectionLike) -> RenderEvent:
        if not work.has_found or work.latent_version == self._reported:
            return ProjectionAdvanced(number, work.report, None)
        self._reported = work.latent_version
        return ProjectionAdvanced(number, work.report, work.latent)

    def _ended(self, number: int, work: ProjectionLike | None) -> RenderEvent:
        if work is None or not work.has_found:
            return ProjectionEnded(number, None)
        return ProjectionEnded(number, work.latent, work.changes())

    def _failed(self, number: int, work: ProjectionLike | None, error: Exception) -> RenderEvent:
        return ProjectionFailed(number, error)

    def _reset(self) -> None:
        super()._reset()
        self._reported = None
