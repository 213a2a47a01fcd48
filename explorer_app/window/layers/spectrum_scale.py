"""Maps a spectrum in decibels to shades, and a position in it to a frequency: pure functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


_STEP_DB = 10.0
_LEAST_SPAN_DB, _MOST_SPAN_DB = 40.0, 100.0
_WEAK = 10.0
"""Percentile of the levels that maps to the darkest shade."""

_SAMPLED = 256
"""Number of rows and columns sampled for that percentile."""


def ends_of(spectrum: NDArray[np.float32]) -> tuple[float, float]:
    """Return the levels in dB of the darkest and the brightest shade, rounded to steps so that they rarely change."""
    top = _STEP_DB * math.ceil(float(spectrum.max()) / _STEP_DB)
    stride = max(1, spectrum.shape[0] // _SAMPLED)
    low = _STEP_DB * math.floor(float(np.percentile(spectrum[::stride, ::stride], _WEAK)) / _STEP_DB)
    return max(top - _MOST_SPAN_DB, min(top - _LEAST_SPAN_DB, low)), top


def shades(spectrum: NDArray[np.float32], ends_db: tuple[float, float]) -> NDArray[np.uint8]:
    """Map a spectrum (height, width) in dB to uint8 shades, 0 at the lower end and 255 at the upper; read-only."""
    low, top = ends_db
    shares = (spectrum - low) * (255.0 / (top - low))
    result = np.ascontiguousarray(np.clip(shares, 0.0, 255.0).astype(np.uint8))
    result.flags.writeable = False
    return result


def wave_at(column: int, row: int, shape: tuple[int, int]) -> tuple[float, float]:
    """Return the frequency at a cell of a spectrum (height, width): cycles per pixel, right and down, -0.5..0.5."""
    height, width = shape
    return (column - width // 2) / width, (row - height // 2) / height


def picture_values(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert a picture (height, width, 4) to grey (height, width) float32, from -1 (black) to 1 (white)."""
    total = pixels[..., 0].astype(np.uint16)
    total += pixels[..., 1]
    total += pixels[..., 2]
    return total.astype(np.float32) * np.float32(2 / 765) - np.float32(1)
