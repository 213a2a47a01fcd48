"""LRU cache of mapped anchors, so that a drag maps only new seeds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpu_backend.latent.classes import class_label
from gpu_backend.latent.rows import Anchor, Mapped
from gpu_backend.latent.seeds import blend_z

MapOne = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]
"""z (z_dim,) and label (c_dim,) -> w (w_dim,), untruncated."""

CAPACITY = 2048
"""Capacity in anchors: 4 MB for a w_dim of 512."""


class MappedAnchors:
    """LRU cache: anchor -> w.

    Each anchor is mapped alone. A matrix product may round differently for another batch size, and a picture must not
    depend on earlier requests.

    Parameters
    ----------
    map_one
        The mapping network.
    z_dim, c_dim
        Lengths of its inputs.
    capacity
        Maximum number of anchors.
    """

    def __init__(self, map_one: MapOne, z_dim: int, c_dim: int, capacity: int = CAPACITY) -> None:
        self._map_one = map_one
        self._z_dim = z_dim
        self._c_dim = c_dim
        self._capacity = capacity
        self._kept: OrderedDict[Anchor, NDArray[np.float32]] = OrderedDict()
        self._last: tuple[tuple[Anchor, ...], Mapped] = (), Mapped({})
        """What was asked for last, and found: the newest anchors of the cache."""

    @property
    def nbytes(self) -> int:
        """Memory of the cached w in bytes."""
        return sum(w.nbytes for w in self._kept.values())

    def fetch(self, anchors: tuple[Anchor, ...]) -> Mapped:
        """Return the w of each anchor, (w_dim,) float32; maps points that are not in the cache. Raises RequestError."""
        if anchors is self._last[0]:
            return self._last[1]
        found = Mapped({anchor: self._one(anchor) for anchor in anchors})
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        self._last = anchors, found
        return found

    def clear(self) -> None:
        """Empty the cache."""
        self._kept.clear()
        self._last = (), Mapped({})

    def _one(self, anchor: Anchor) -> NDArray[np.float32]:
        w = self._kept.get(anchor)
        if w is None:
            label = class_label(anchor.classes, self._c_dim)
            w = self._map_one(blend_z(anchor.seeds, self._z_dim), label)
            self._kept[anchor] = w
        else:
            self._kept.move_to_end(anchor)
        return w
