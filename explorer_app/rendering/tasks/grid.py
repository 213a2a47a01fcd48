"""The pictures of a grid: rendered in batches, drafts first, the newest set of them wins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Condition

from explorer_app.rendering.render_events import GridFailed, GridRendered, RenderEvent
from explorer_app.rendering.renderer_like import PROCESSOR_ID, RendererLike
from explorer_app.rendering.tasks.preview_rest import PreviewRest
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask
from explorer_app.rendering.thumbnails import shrink
from gpu_backend import CancelledError, Frame, RenderRequest, dataclass

BATCH = 8
"""Pictures of one step on a GPU; the CPU, which gains nothing from batches, renders one per step."""


@dataclass(frozen=True, slots=True)
class GridOrder:
    """All pictures that a grid needs.

    Attributes
    ----------
    number
        Grows with every order; events carry it.
    drafts
        (cell, request) pairs that are rendered while the picture moves.
    finals
        (cell, request) pairs that follow once the picture rests.
    side_px
        Longest side of the frames, in px; larger ones are shrunk.
    """

    number: int
    drafts: tuple[tuple[Hashable, RenderRequest], ...]
    finals: tuple[tuple[Hashable, RenderRequest], ...] = ()
    side_px: int = 256


class GridTask(RenderTask):
    """Renders the newest order.

    An order replaces the one before. The cells that have waited longest come first, so that every cell follows a
    gesture, however few of them fit between two orders.

    Parameters
    ----------
    condition, report, recovers
        As for `NewestTask`.
    finish
        Makes of a draft what is shown.
    rest
        Says when previews rest; then the final pictures follow.
    """

    priority = Priority.GRID
    preview_share = 0.5

    def __init__(
        self,
        condition: Condition,
        report: Callable[[RenderEvent], None],
        recovers: Callable[[Exception], bool],
        finish: Callable[[Frame], Frame],
        rest: PreviewRest,
    ) -> None:
        self._condition = condition
        self._report = report
        self._recovers = recovers
        self._finish = finish
        self._rest = rest
        self._order: GridOrder | None = None
        self._drafts: list[tuple[Hashable, RenderRequest]] = []
        self._finals: list[tuple[Hashable, RenderRequest]] = []
        self._served: dict[Hashable, int] = {}
        """Cell -> when it was rendered last, counted in steps; only cells of the newest order."""
        self._steps = 0

    def request(self, order: GridOrder) -> None:
        """Replace what waits."""
        with self._condition:
            served = self._served
            self._order = order
            self._drafts = sorted(order.drafts, key=lambda item: served.get(item[0], -1))
            self._finals = list(order.finals)
            cells = {cell for cell, _ in (*order.drafts, *order.finals)}
            self._served = {cell: step for cell, step in served.items() if cell in cells}
            self._condition.notify_all()

    def forget(self) -> None:
        """Drop what waits."""
        with self._condition:
            self._order = None
            self._drafts, self._finals = [], []
            self._served = {}

    def seconds_until_ready(self) -> float | None:
        """Return 0 while drafts wait, and how long previews have to rest for final pictures."""
        if self._drafts:
            return 0.0
        if self._finals:
            return self._rest.seconds_left()
        return None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Render the next cells: a batch on a GPU, one on the CPU."""
        with self._condition:
            order, waiting = self._order, self._drafts or self._finals
            # A draft is finished even while the picture moves; a final picture is cancelled for it.
            self.yields_to = URGENT if self._drafts else URGENT | {Priority.PREVIEW}
            if order is None or renderer is None:
                return True
            count = 1 if renderer.device.id == PROCESSOR_ID else BATCH
            taken = [item for item in waiting[:count] if item[1].model_id == renderer.facts.model_id]
            dropped = len(waiting[:count])
        if not taken:
            self._done(order, waiting, dropped)
            return True
        try:
            frames = renderer.render_batch([request for _, request in taken], should_cancel=should_yield)
        except CancelledError:
            return False
        except Exception as error:
            if not self._recovers(error):
                self.forget()
                self._report(GridFailed(order.number, error))
            return True
        cells = tuple((cell, self._shown(frame, order.side_px)) for (cell, _), frame in zip(taken, frames, strict=True))
        self._done(order, waiting, dropped, [cell for cell, _ in taken])
        self._report(GridRendered(order.number, cells))
        return True

    def _shown(self, frame: Frame, side_px: int) -> Frame:
        return shrink(self._finish(frame) if frame.is_draft else frame, side_px)

    def _done(
        self,
        order: GridOrder,
        waiting: list[tuple[Hashable, RenderRequest]],
        count: int,
        cells: Sequence[Hashable] = (),
    ) -> None:
        """Take rendered cells off the list, unless it was replaced meanwhile."""
        with self._condition:
            self._steps += 1
            for cell in cells:
                self._served[cell] = self._steps
            if self._order is order:
                del waiting[:count]
