"""Dragging points of the picture: bursts of an optimiser's steps between previews."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from explorer_app.rendering.render_events import DragAdvanced, DragFailed, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.burst import BurstTask
from explorer_app.rendering.tasks.task import URGENT, Priority

if TYPE_CHECKING:
    from gpu_backend import DragReport, DragSettings, Handle, LocalEdits, Model, Noise, StoredLatent

BURST_S = 0.008
"""A burst ends with the first step after this time, so that a preview waits for one step more at most. It does not wait
for the picture in which handles are followed, which takes seconds with some networks."""


class DragLike(Protocol):
    """What the task needs of `gpu_backend.DragOptimizer`."""

    @property
    def report(self) -> DragReport:
        """The state after the last step."""
        ...

    @property
    def latent(self) -> StoredLatent:
        """The present rows of w."""
        ...

    def set_target(self, index: int, target: tuple[float, float]) -> None:
        """Move a handle's target, (x, y) in pixels of the full picture."""
        ...

    def step(self, should_yield: Callable[[], bool] | None = None) -> DragReport:
        """Do at most one pass forward and backward.

        Raises
        ------
        CancelledError
            If `should_yield` returned true, and the handles were to be followed through a picture that takes long. The
            next step repeats it.
        """
        ...

    def cancel(self) -> None:
        """Let a step under way on another thread return early where it can; the drag is not stepped again."""
        ...


class MakesDrags(Protocol):
    """What a maker of drags does: `gpu_backend.DragMaker`. Callable from any thread."""

    @property
    def slower_because(self) -> str:
        """A sentence if the last drag takes a slower way than it could; else empty."""
        ...

    def prepare(self, model: Model, noise: Noise, edits: LocalEdits) -> None:
        """Open the network of a model."""
        ...

    def make(
        self,
        model: Model,
        noise: Noise,
        edits: LocalEdits,
        latent: StoredLatent,
        handles: Sequence[Handle],
        settings: DragSettings,
    ) -> DragLike:
        """Make a drag."""
        ...


class DragTask(BurstTask[DragLike]):
    """Steps the drag under way; the newest replaces the one before.

    How a tool on the canvas uses it, through `RenderThread`:

    1. On a press, `begin` with a new number and a function that makes a `DragOptimizer` from the present rows, the
       handle, pins, mask and row range.
    2. While the pointer moves, `aim` at where it is.
    3. Each `DragAdvanced` event of its number has a stored latent: the tool sets it as the transient latent of its
       gesture, which requests a preview, and draws the handles where the report has them.
    4. On release, it waits until the report is settled, or calls `cancel`; then it commits the latent as one undo step.
       On Escape it calls `cancel` and drops the gesture, which brings the former latent back.
    """

    priority = Priority.DRAG
    yields_to = URGENT | {Priority.PREVIEW}
    preview_share = 0.5
    causes_previews = True
    burst_s = BURST_S
    maker_name = "preparing drag"

    _targets: dict[int, tuple[float, float]]
    """New targets of handles, by index, since the last step."""
    _settled: DragLike | None = None
    """The drag that settled last."""

    def aim(self, index: int, target: tuple[float, float]) -> None:
        """Move the target of a handle; the newest wins, also while the drag is being made."""
        with self._condition:
            if self._number >= 0:
                self._targets[index] = target
                self._condition.notify_all()

    def seconds_until_ready(self) -> float | None:
        """Return 0 while a drag is not settled, or a target moved."""
        is_ready = self._work is not None and (self._work is not self._settled or bool(self._targets))
        return 0.0 if is_ready else None

    def _step_once(self, work: DragLike, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        with self._condition:
            targets, self._targets = self._targets, {}
        for index, target in targets.items():
            work.set_target(index, target)
        return work.step(should_yield).is_settled

    def _end_early(self, work: DragLike) -> None:
        work.cancel()

    def _event(self, number: int, work: DragLike) -> tuple[RenderEvent, bool]:
        report = work.report
        self._settled = work if report.is_settled else None
        return DragAdvanced(number, report, work.latent), False

    def _failed(self, number: int, work: DragLike | None, error: Exception) -> RenderEvent:
        return DragFailed(number, error)

    def _reset(self) -> None:
        self._targets = {}
