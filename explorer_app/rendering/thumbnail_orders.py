"""Thumbnails that are wanted: one a key, the one asked for last is made first. No Qt."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from gpu_backend import RenderRequest

MAX_WAITING = 1024
"""Orders that wait; beyond, the oldest is forgotten: nobody looks there any more, or will ask again."""


@dataclass(frozen=True, slots=True)
class ThumbnailOrder:
    """A thumbnail to be made. `request` is called when its turn has come, on the rendering thread."""

    key: Hashable
    request: Callable[[], RenderRequest]


class ThumbnailOrders:
    """A bounded stack of orders without duplicates.

    Parameters
    ----------
    condition
        Notified when an order comes in.
    """

    def __init__(self, condition: threading.Condition | None = None) -> None:
        self._condition = condition or threading.Condition()
        self._orders: OrderedDict[Hashable, ThumbnailOrder] = OrderedDict()

    def __len__(self) -> int:
        with self._condition:
            return len(self._orders)

    def put(self, order: ThumbnailOrder) -> None:
        """Order a thumbnail, or move its order to the front."""
        with self._condition:
            self._orders[order.key] = order
            self._orders.move_to_end(order.key)
            while len(self._orders) > MAX_WAITING:
                self._orders.popitem(last=False)
            self._condition.notify_all()

    def put_back(self, order: ThumbnailOrder) -> None:
        """Order again what was taken, unless a newer order for it is there."""
        with self._condition:
            if order.key not in self._orders:
                self.put(order)

    def take(self) -> ThumbnailOrder | None:
        """Take the order that came last, None if none waits."""
        with self._condition:
            return self._orders.popitem()[1] if self._orders else None

    def clear(self) -> None:
        """Forget all orders."""
        with self._condition:
            self._orders.clear()
