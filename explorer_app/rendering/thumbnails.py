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


def w_signature(ws: NDArray[np.float32]) -> NDArray[np.float16]:
    """Return what likeness of latents is measured by: the means of three thirds of the rows of w, (3 * w_dim,).

    Parameters
    ----------
    ws
        (num_ws, w_dim).
    """
    thirds = np.array_split(ws, 3) if ws.shape[0] >= 3 else [ws] * 3
    limit = float(np.finfo(np.float16).max)
    means = np.concatenate([third.mean(axis=0) for third in thirds])
    signature: NDArray[np.float16] = np.clip(means, -limit, limit).astype(np.float16)
    return signature


class ThumbnailStore:
    """At most `capacity` small frames, and the signatures of their latents. Used on the GUI thread only."""

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._frames: OrderedDict[Hashable, Frame] = OrderedDict()
        self._signatures: dict[Hashable, NDArray[np.float16]] = {}

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

    def signature(self, key: Hashable) -> NDArray[np.float16] | None:
        """Return the signature of the latent of a key, None if there is none."""
        return self._signatures.get(key)

    def put(self, key: Hashable, frame: Frame, signature: NDArray[np.float16] | None = None) -> None:
        """Store a frame under a key, without its rows of w, which are larger; the least recently used one is dropped.

        `signature` is the frame's own if there are rows, unless given.
        """
        if signature is None and frame.ws is not None:
            signature = w_signature(frame.ws)
        self._frames[key] = frame if frame.ws is None else replace(frame, ws=None)
        self._frames.move_to_end(key)
        if signature is not None:
            self._signatures[key] = signature
        while len(self._frames) > self._capacity:
            dropped, _ = self._frames.popitem(last=False)
            self._signatures.pop(dropped, None)

    def clear(self) -> None:
        """Drop everything: pictures depend on the model."""
        self._frames.clear()
        self._signatures.clear()


def shrink(frame: Frame, side_px: int = THUMBNAIL_PX) -> Frame:
    """Return the frame with its longest side at most `side_px`, by averaging whole blocks of pixels.

    It owns its pixels, so that a stored thumbnail never pins memory that a device copies to.
    """
    factor = math.ceil(max(frame.width, frame.height) / side_px)
    if factor <= 1:
        return frame if frame.pixels.flags.owndata else replace(frame, pixels=_copy(frame.pixels))
    return replace(frame, pixels=_block_mean(frame.pixels, factor))


def _block_mean(pixels: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Return the means of blocks of `factor` x `factor` pixels: sums of strided rows and columns, not of small blocks.

    NumPy's mean over the blocks takes fifteen times as long, and the window's thread may be the one that waits.
    """
    height, width = pixels.shape[0] // factor, pixels.shape[1] // factor
    whole = pixels[: height * factor, : width * factor]
    sums_fit = factor * 255 <= np.iinfo(np.uint16).max
    rows = np.zeros((height, *whole.shape[1:]), np.uint16 if sums_fit else np.uint32)
    for row in range(factor):
        rows += whole[row::factor]
    sums = np.zeros((height, width, pixels.shape[2]), np.uint32)
    for column in range(factor):
        sums += rows[:, column::factor]
    return _copy(np.rint(sums.astype(np.float32) / np.float32(factor * factor)).astype(np.uint8))


def _copy(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    copied = np.array(pixels, order="C")
    copied.flags.writeable = False
    return copied
