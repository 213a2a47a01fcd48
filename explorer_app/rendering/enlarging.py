"""Enlarges drafts by cubic interpolation: QPainter's bilinear interpolation shows a grid of soft squares.

Keys, "Cubic convolution interpolation for digital image processing" (1981), a = -1/2, also known as Catmull-Rom:

    k(t) = 1.5 |t|^3 - 2.5 |t|^2 + 1              for |t| <= 1
    k(t) = -0.5 |t|^3 + 2.5 |t|^2 - 4 |t| + 2     for 1 < |t| < 2

With a whole factor f, each of the f phases of the output has fixed weights, so that each axis is one matrix product:
the pixel p of the f that take the place of pixel k lies at k + (p + 1/2) / f - 1/2, and draws on pixels k - 2 .. k + 2.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


_REACH = 2
_TAPS = 2 * _REACH + 1
SIDE_PX = 256
"""QPainter does the rest: after this filter its bilinear enlargement shows no squares."""


def enlarged(pixels: NDArray[np.uint8], side_px: int = SIDE_PX) -> NDArray[np.uint8]:
    """Return a picture (height, width, 4) enlarged by a whole factor to `side_px` at most; a larger one unchanged.

    Edges are continued. What is returned may not be written.
    """
    height, width, channels = pixels.shape
    factor = side_px // max(height, width)
    if factor < 2:
        return pixels
    weights = _weights(factor)
    padded = np.pad(pixels, ((_REACH, _REACH), (_REACH, _REACH), (0, 0)), mode="edge").astype(np.float32)
    row = (width + 2 * _REACH) * channels
    # (height, taps, row): windows of rows that overlap; then (height, factor, row)
    windows = np.lib.stride_tricks.sliding_window_view(padded.reshape(-1, row), _TAPS, axis=0).transpose(0, 2, 1)
    tall = np.matmul(weights, windows).reshape(factor * height, width + 2 * _REACH, channels)
    # (rows, width, taps * channels) @ (taps * channels, factor * channels)
    flat = tall.reshape(factor * height, row)
    steps = np.lib.stride_tricks.sliding_window_view(flat, _TAPS * channels, axis=1)[:, ::channels]
    both = np.kron(weights.T, np.eye(channels, dtype=np.float32))
    wide = np.ascontiguousarray(steps).reshape(-1, _TAPS * channels) @ both
    wide += 0.5  # the conversion to bytes truncates
    np.clip(wide, 0.0, 255.0, out=wide)
    result: NDArray[np.uint8] = wide.astype(np.uint8).reshape(factor * height, factor * width, channels)
    result.flags.writeable = False
    return result


@functools.cache
def _weights(factor: int) -> NDArray[np.float32]:
    """Return the weights of the taps for each phase, (factor, taps)."""
    places = (np.arange(factor) + 0.5) / factor - 0.5
    away = np.abs(places[:, None] - np.arange(-_REACH, _REACH + 1))
    near = 1.5 * away**3 - 2.5 * away**2 + 1.0
    far = -0.5 * away**3 + 2.5 * away**2 - 4.0 * away + 2.0
    return np.where(away <= 1.0, near, np.where(away < 2.0, far, 0.0)).astype(np.float32)
