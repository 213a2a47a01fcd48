"""The channels of a layer as small pictures."""

from __future__ import annotations

from collections.abc import Callable

from explorer_app.rendering.render_events import MapsFailed, MapsMade, RenderEvent
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.newest import NewestTask
from explorer_app.rendering.tasks.task import Priority
from gpu_backend import RenderRequest, dataclass


@dataclass(frozen=True, slots=True)
class MapsRequest:
    """The channels of `layer` while the picture of `request` is rendered."""

    request: RenderRequest
    layer: str


class MapsTask(NewestTask[MapsRequest]):
    """Renders the channels of a layer.

    A step is one run of the network up to the layer, which takes about as long as a picture.
    """

    priority = Priority.MAPS
    preview_share = 0.1

    def _is_for(self, request: MapsRequest, renderer: RendererLike) -> bool:
        return request.request.model_id == renderer.facts.model_id

    def _answer(self, request: MapsRequest, renderer: RendererLike, should_yield: Callable[[], bool]) -> None:
        self._report(MapsMade(renderer.channel_maps(request.request, request.layer)))

    def _failed(self, request: MapsRequest, error: Exception) -> RenderEvent:
        return MapsFailed(request.layer, error)

    def _after_recovery(self, request: MapsRequest) -> None:
        self._requests.put_back(request)
