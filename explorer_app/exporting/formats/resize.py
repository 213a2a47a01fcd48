"""Pictures at another size, by Lanczos' filter with three lobes (Duchon, 1979), and without their alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer_app.exporting.formats.picture_format import Background, Size
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


_CHECKS = 32
"""Squares of a checkerboard along the shorter side."""
_CHECK_GREYS = (255, 204)


def resized(samples: NDArray[Any], size: Size) -> NDArray[Any]:
    """Return a picture scaled to a size, cropped evenly on two sides where its shape is another.

    Parameters
    ----------
    samples
        (height, width, channels) uint8 with four channels, or float32.
    size
        Width and height.
    """
    height, width = samples.shape[:2]
    if (width, height) == size:
        return samples
    from PIL import Image

    box = crop_box((width, height), size)
    if samples.dtype == np.uint8:
        # "RGBX": Pillow weighs "RGBA" by alpha, and the fourth byte of most frames is no alpha.
        picture = Image.frombuffer("RGBX", (width, height), np.ascontiguousarray(samples), "raw", "RGBX", 0, 1)
        return np.asarray(picture.resize(size, Image.Resampling.LANCZOS, box=box))
    planes = [
        np.asarray(
            Image.fromarray(np.ascontiguousarray(samples[..., channel])).resize(size, Image.Resampling.LANCZOS, box=box)
        )
        for channel in range(samples.shape[2])
    ]
    return np.stack(planes, axis=-1)


def crop_box(shown: Size, size: Size) -> tuple[float, float, float, float]:
    """Return the part of a picture that fills a size: left, top, right, bottom in the picture's pixels."""
    width, height = shown
    scale = min(width / size[0], height / size[1])
    across, down = scale * size[0], scale * size[1]
    left, top = (width - across) / 2, (height - down) / 2
    return left, top, left + across, top + down


def over_white(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return pixels (height, width, 4) with alpha as they look on white, for formats without alpha."""
    return over_background(pixels, "white")


def over_background(pixels: NDArray[np.uint8], background: Background) -> NDArray[np.uint8]:
    """Return pixels (height, width, 4) B, G, R, A as they look on a background; their alpha is 255."""
    behind = background_pixels(pixels.shape[0], pixels.shape[1], background).astype(np.uint16)
    alpha = pixels[..., 3:].astype(np.uint16)
    mixed = pixels.copy()
    mixed[..., :3] = (pixels[..., :3] * alpha + behind[..., ::-1] * (255 - alpha) + 127) // 255
    mixed[..., 3] = 255
    return mixed


def values_over_background(values: NDArray[np.float32], background: Background) -> NDArray[np.float32]:
    """Return values (height, width, 4) R, G, B, A in 0..1 as they look on a background: (height, width, 3)."""
    behind = background_pixels(values.shape[0], values.shape[1], background).astype(np.float32) / np.float32(255.0)
    alpha = values[..., 3:].clip(0.0, 1.0)
    return np.asarray(values[..., :3] * alpha + behind * (1 - alpha), np.float32)


def background_pixels(height: int, width: int, background: Background) -> NDArray[np.uint8]:
    """Return R, G, B of a background, broadcastable to (height, width, 3)."""
    if background == "checkerboard":
        side = max(4, min(height, width) // _CHECKS)
        squares = np.add.outer(np.arange(height) // side, np.arange(width) // side) % 2
        greys: NDArray[np.uint8] = np.array(_CHECK_GREYS, np.uint8)[squares]
        return np.stack((greys,) * 3, axis=2)
    if background in ("white", "black"):
        return np.full((1, 1, 3), 255 if background == "white" else 0, np.uint8)
    return np.array([[[int(background[place : place + 2], 16) for place in (1, 3, 5)]]], np.uint8)
