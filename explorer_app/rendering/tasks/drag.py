"""Dragging points of the picture: bursts of an optimiser's steps between previews."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING, Protocol

from explorer_app.rendering.render_events import DragAdvanced, DragFailed, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.making import MakerThreads
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask

if TYPE_CHECKING:
    from gpu_backend import DragReport, DragSettings, Handle, Model, Noise, StoredLatent

BURST_S = 0.008
"""A burst ends with the first step after this time, so that a preview waits for one step more at most."""


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

    def step(self) -> DragReport:
        """Do at most one pass forward and backward."""
        ...


class MakesDrags(Protocol):
    """What a maker of drags does: `gpu_backend.DragMaker`. Callable from any thread."""

    def prepare(self, model: Model, noise: Noise) -> None:
        """Open the network of a model."""
        ...

    def make(
        self, model: Model, noise: Noise, latent: StoredLatent, handles: Sequence[Handle], settings: DragSettings
    ) -> DragLike:
        """Make a drag."""
        ...


class DragTask(RenderTask):
    """Steps the drag under way; of several, the newest wins.

    A tool on the canvas uses it so, through `RenderThread`:

    1. On a press, `begin` with a number of its own and a function that makes a `DragOptimizer` from the present rows,
       the handle, pins, mask and row range. The function runs on a thread of its own, since it may import torch.
    2. While the pointer moves, `aim` at where it is.
    3. Each `DragAdvanced` event of its number has a stored latent: the tool sets it as the transient latent of its
       gesture, which requests a preview, and draws the handles where the report has them.
    4. On release, it waits until the report is settled, or calls `end`; then it commits the latent as one undo step.
       On Escape it calls `end` and drops the gesture, which brings the former latent back.

    Parameters
    ----------
    condition, report
        As for `PreviewTask`.
    """

    priority = Priority.DRAG
    yields_to = URGENT | {Priority.PREVIEW}
    preview_share = 0.5

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._condition = condition
        self._report = report
        self._clock = clock
        self._number = -1
        """Of the newest drag; -1 for none."""
        self._drag: DragLike | None = None
        self._targets: dict[int, tuple[float, float]] = {}
        self._is_settled = False
        self._makers = MakerThreads("preparing drag")

    def begin(self, number: int, make: Callable[[], DragLike]) -> None:
        """Replace the drag under way.

        Parameters
        ----------
        number
            At least 0; events carry it.
        make
            Called on a thread of its own.
        """
        with self._condition:
            self._number, self._drag = number, None
            self._targets = {}
        self._makers.start(partial(self._make, number, make))

    def aim(self, index: int, target: tuple[float, float]) -> None:
        """Move the target of a handle; the newest wins, also while the drag is being made."""
        with self._condition:
            if self._number >= 0:
                self._targets[index] = target
                self._condition.notify_all()

    def end(self) -> None:
        """End the drag without an event; a step under way is finished and not reported."""
        with self._condition:
            self._number, self._drag = -1, None
            self._targets = {}

    def close(self) -> None:
        """End the drag and wait for threads that make one."""
        self.end()
        self._makers.close()

    def seconds_until_ready(self) -> float | None:
        """Return 0 while a drag is not settled, or a target moved."""
        return 0.0 if self._drag is not None and (not self._is_settled or self._targets) else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Do steps for `BURST_S`, at least one, and report the latent."""
        with self._condition:
            number, drag = self._number, self._drag
            targets, self._targets = self._targets, {}
        if drag is None:
            return True
        try:
            for index, target in targets.items():
                drag.set_target(index, target)
            end_s = self._clock() + BURST_S
            report = drag.step()
            while not report.is_settled and self._clock() < end_s and not should_yield():
                report = drag.step()
            latent = drag.latent
        except Exception as error:
            self._fail(number, error)
            return True
        with self._condition:
            if number != self._number:
                return True
            self._is_settled = report.is_settled
        self._report(DragAdvanced(number, report, latent))
        return True

    def _make(self, number: int, make: Callable[[], DragLike]) -> None:
        try:
            drag = make()
        except Exception as error:
            self._fail(number, error)
            return
        with self._condition:
            if number == self._number:
                self._drag, self._is_settled = drag, False
                self._condition.notify_all()

    def _fail(self, number: int, error: Exception) -> None:
        with self._condition:
            if number != self._number:
                return
            self._number, self._drag = -1, None
        self._report(DragFailed(number, error))
