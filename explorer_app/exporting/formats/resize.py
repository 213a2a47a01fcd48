"""Pictures at another size, by Lanczos' filter with three lobes (Duchon, 1979), and without their alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer_app.exporting.formats.picture_format import Size
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


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
    alpha = pixels[..., 3:].astype(np.uint16)
    mixed = pixels.copy()
    mixed[..., :3] = (pixels[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255
    mixed[..., 3] = 255
    return mixed
