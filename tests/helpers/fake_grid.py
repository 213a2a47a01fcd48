"""A render thread for a grid of variations that paints at once, and a file worker that works at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer_app.controller import VariationGrid
from explorer_app.rendering.render_events import GridRendered
from explorer_app.rendering.tasks.grid import GridOrder
from gpu_backend import Frame, FrameTimings, Point, RenderRequest
from tests.helpers.fake_searches import Calls


class FakeWorker:
    """Stands for `FileWorker`: works at once."""

    def submit(self, task: Callable[[], object], **options: Any) -> None:
        task()

    def fetch(self, task: Callable[[], Any], take: Callable[[Any], None], **options: Any) -> None:
        take(task())


class FakeGridRenders:
    """Stands for the render thread of a grid: paints at once, or when a test says so."""

    def __init__(self, calls: Calls, picture: Callable[[float, float, int], NDArray[np.uint8]]) -> None:
        self._calls = calls
        self._picture = picture
        self.grid: VariationGrid | None = None
        self.orders: list[GridOrder] = []
        self.paints = True

    def request_grid(self, order: GridOrder) -> None:
        self.orders.append(order)
        if self.paints:
            self.paint(order)

    def forget_grid(self) -> None:
        self.orders.clear()

    def request_thumbnail(self, key: object, request: object, side_px: int | None = None) -> None:
        self._calls.append(("sheet_cell", key))

    def paint(self, order: GridOrder) -> None:
        """Answer an order, as if the render thread had."""
        assert self.grid is not None
        cells = tuple(
            (cell, Frame(request, self._picture(*_place_of(request), 64), FrameTimings(1.0, 0.1, 0.9)))
            for cell, request in order.finals or order.drafts
        )
        self.grid.take_rendered(GridRendered(order.number, cells))


def _place_of(request: RenderRequest) -> tuple[float, float]:
    """Return a place of the landscape for a request: neighbours look alike, and any change is seen."""
    recipe = request.blend[0][0]
    point = recipe.latent.point
    seeds = point.seeds if isinstance(point, Point) else ((0, 1.0),)
    amounts = sum(item.amount for item in recipe.latent.directions)
    return sum(weight * (seed % 7) for seed, weight in seeds), amounts + len(recipe.latent.mix)
