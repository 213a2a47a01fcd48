"""The channels of a layer as small pictures."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.render_events import MapsFailed, MapsMade, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import Priority, RenderTask
from gpu_backend import RenderRequest


class MapsTask(RenderTask):
    """Renders the channels of a layer; of several requests, the newest wins. Parameters as for `PreviewTask`.

    A step is one run of the network up to the layer, which takes about as long as a picture.
    """

    priority = Priority.MAPS
    preview_share = 0.1

    def __init__(
        self, condition: Condition, report: Callable[[RenderEvent], None], recovers: Callable[[Exception], bool]
    ) -> None:
        self._requests: Mailbox[tuple[RenderRequest, str]] = Mailbox(condition)
        self._report = report
        self._recovers = recovers

    def request(self, request: RenderRequest, layer: str) -> None:
        """Replace the waiting request."""
        self._requests.put((request, layer))

    def seconds_until_ready(self) -> float | None:
        """Return 0 while a request waits."""
        return None if self._requests.is_empty else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Render; a request for a model that has gone is dropped."""
        waiting = self._requests.take()
        if waiting is None or renderer is None or waiting[0].model_id != renderer.facts.model_id:
            return True
        try:
            self._report(MapsMade(renderer.channel_maps(*waiting)))
        except Exception as error:
            if self._recovers(error):
                self._requests.put_back(waiting)
            else:
                self._report(MapsFailed(waiting[1], error))
        return True
