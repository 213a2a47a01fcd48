"""Small pictures, made while nothing moves: one per key, the newest request first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Condition

from explorer_app.rendering.render_events import RenderEvent, ThumbnailFailed, ThumbnailMade
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.preview_rest import PreviewRest
from explorer_app.rendering.tasks.task import URGENT, Priority, RenderTask
from explorer_app.rendering.thumbnails import THUMBNAIL_PX, shrink
from gpu_backend import CancelledError, RenderRequest, dataclass

MAX_WAITING = 1024
"""Largest number of waiting requests; beyond it the oldest is dropped: it has scrolled away."""


@dataclass(frozen=True, slots=True)
class _Order:
    key: Hashable
    request: Callable[[], RenderRequest]
    side_px: int | None


class ThumbnailTask(RenderTask):
    """Makes small pictures once no preview was requested by hand lately.

    Parameters
    ----------
    condition, report, recovers
        As for `NewestTask`.
    rest
        Says when previews rest.
    """

    priority = Priority.THUMBNAIL
    yields_to = URGENT | {Priority.PREVIEW}

    def __init__(
        self,
        condition: Condition,
        report: Callable[[RenderEvent], None],
        recovers: Callable[[Exception], bool],
        rest: PreviewRest,
    ) -> None:
        self._condition = condition
        self._report = report
        self._recovers = recovers
        self._rest = rest
        self._orders: OrderedDict[Hashable, _Order] = OrderedDict()

    def __len__(self) -> int:
        with self._condition:
            return len(self._orders)

    def request(self, key: Hashable, request: Callable[[], RenderRequest], side_px: int | None = THUMBNAIL_PX) -> None:
        """Request a picture, or move its request to the front; `request` is called later, on the render thread.

        Parameters
        ----------
        side_px
            The picture is shrunk to it; None leaves it as large as it is rendered.
        """
        with self._condition:
            self._orders[key] = _Order(key, request, side_px)
            self._orders.move_to_end(key)
            while len(self._orders) > MAX_WAITING:
                self._orders.popitem(last=False)
            self._condition.notify_all()

    def clear(self) -> None:
        """Drop all requests."""
        with self._condition:
            self._orders.clear()

    def seconds_until_ready(self) -> float | None:
        """Return how long previews have to rest until the next picture is made."""
        return self._rest.seconds_left() if self._orders else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Make the picture that was requested last, or prepare its plan."""
        with self._condition:
            order = self._orders.popitem()[1] if self._orders else None
        if order is None or renderer is None:
            return True
        try:
            request = order.request()
            if request.model_id == renderer.facts.model_id:
                if renderer.prepare_step(request):
                    self._put_back(order)
                    return True
                frame = renderer.render(request, should_cancel=should_yield)
                self._report(ThumbnailMade(order.key, shrink(frame, order.side_px or max(frame.width, frame.height))))
        except CancelledError:
            self._put_back(order)
            return False
        except Exception as error:
            if self._recovers(error):
                self._put_back(order)
            else:
                self._report(ThumbnailFailed(order.key, error))
        return True

    def _put_back(self, order: _Order) -> None:
        """Queue a taken request again, unless there is a newer one for its key."""
        with self._condition:
            if order.key not in self._orders:
                self.request(order.key, order.request, order.side_px)
