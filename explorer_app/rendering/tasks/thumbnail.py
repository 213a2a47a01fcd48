"""Small pictures, made while nothing moves: one per key, those that are awaited first, then the newest request."""

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
    is_awaited: bool


class ThumbnailTask(RenderTask):
    """Makes small pictures once no preview was requested lately.

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
        self._awaited: OrderedDict[Hashable, _Order] = OrderedDict()
        """Those that are made first, in the order in which they were requested; none is dropped."""

    def __len__(self) -> int:
        with self._condition:
            return len(self._orders) + len(self._awaited)

    def request(
        self,
        key: Hashable,
        request: Callable[[], RenderRequest],
        side_px: int | None = THUMBNAIL_PX,
        *,
        is_awaited: bool = False,
    ) -> None:
        """Request a picture, or move its request to the front; `request` is called later, on the render thread.

        Parameters
        ----------
        side_px
            The picture is shrunk to it; None leaves it as large as it is rendered.
        is_awaited
            Something else than a place on the screen waits for the picture: it comes before all that are not awaited,
            and is made however many are requested after it.
        """
        with self._condition:
            orders = self._awaited if is_awaited else self._orders
            orders[key] = _Order(key, request, side_px, is_awaited)
            if not is_awaited:
                orders.move_to_end(key)
                while len(orders) > MAX_WAITING:
                    orders.popitem(last=False)
            self._condition.notify_all()

    def clear(self) -> None:
        """Drop all requests."""
        with self._condition:
            self._orders.clear()
            self._awaited.clear()

    def seconds_until_ready(self) -> float | None:
        """Return how long previews have to rest until the next picture is made."""
        return self._rest.seconds_left() if self._orders or self._awaited else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Make the picture that is awaited longest, else the one that was requested last, or prepare its plan."""
        with self._condition:
            order: _Order | None = None
            if self._awaited:
                order = self._awaited.popitem(last=False)[1]
            elif self._orders:
                order = self._orders.popitem()[1]
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
            if order.is_awaited:
                self._awaited.setdefault(order.key, order)
                self._awaited.move_to_end(order.key, last=False)
                self._condition.notify_all()
            elif order.key not in self._orders:
                self.request(order.key, order.request, order.side_px)
