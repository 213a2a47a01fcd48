"""Small pictures by key, newest used kept: for the seed plane, mix sources, the history strip and kept latents."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu_backend import Frame, LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

THUMBNAIL_PX = 64
"""Longest side of a stored thumbnail."""


class ThumbnailStore:
    """At most `capacity` small frames. Used on the GUI thread only."""

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._frames: OrderedDict[Hashable, Frame] = OrderedDict()

    def __len__(self) -> int:
        return len(self._frames)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._frames

    def get(self, key: Hashable) -> Frame | None:
        """Return the small frame of a key and count it as used, or None."""
        frame = self._frames.get(key)
        if frame is not None:
            self._frames.move_to_end(key)
        return frame

    def put(self, key: Hashable, frame: Frame) -> None:
        """Store a frame under a key; the least recently used one is dropped."""
        self._frames[key] = frame
        self._frames.move_to_end(key)
        while len(self._frames) > self._capacity:
            self._frames.popitem(last=False)

    def clear(self) -> None:
        """Drop everything: pictures depend on the model."""
        self._frames.clear()


def shrink(frame: Frame, side_px: int = THUMBNAIL_PX) -> Frame:
    """Return the frame with its longest side at most `side_px`, by averaging whole blocks of pixels.

    It owns its pixels, so that a stored thumbnail never pins memory that a device copies to.
    """
    factor = math.ceil(max(frame.width, frame.height) / side_px)
    if factor <= 1:
        return frame if frame.pixels.flags.owndata else replace(frame, pixels=_copy(frame.pixels))
    return replace(frame, pixels=_block_mean(frame.pixels, factor))


def _block_mean(pixels: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    height, width = pixels.shape[0] // factor, pixels.shape[1] // factor
    blocks = pixels[: height * factor, : width * factor].reshape(height, factor, width, factor, pixels.shape[2])
    return _copy(np.rint(blocks.mean(axis=(1, 3), dtype=np.float32)).astype(np.uint8))


def _copy(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    copied = np.array(pixels, order="C")
    copied.flags.writeable = False
    return copied
