"""Painting a mask of a picture (`gpu_backend.PictureMask`): what point dragging preserves, where a blend shows. Pure.

None stands for a mask that covers nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpu_backend import MASK_SIDE, LazyModule, PictureMask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

_SPACING = 0.3
"""Distance of the stamps of a brush along its way, in radii."""


def painted(
    mask: PictureMask | None,
    way: Sequence[tuple[float, float]],
    radius: float,
    softness: float,
    *,
    freezes: bool,
) -> PictureMask | None:
    """Return the mask after a stroke of a round brush.

    Parameters
    ----------
    way
        Points (x, y) of the stroke in widths of the picture, 0..1 inside it.
    radius
        Of the brush, in widths of the picture.
    softness
        Share of the radius over which the brush fades, 0..1.
    freezes
        Whether it freezes or thaws.
    """
    values = np.zeros((MASK_SIDE, MASK_SIDE), np.float32) if mask is None else mask.shares
    centres = (np.arange(MASK_SIDE, dtype=np.float32) + np.float32(0.5)) / MASK_SIDE
    hard = radius * (1.0 - min(max(softness, 0.0), 1.0))
    # At least the width of one value, so that a hard edge is not jagged.
    fade = max(radius - hard, 1.0 / MASK_SIDE)
    for x, y in _stamps(way, radius):
        distance = np.hypot(centres[None, :] - np.float32(x), centres[:, None] - np.float32(y))
        stamp = np.clip((hard + fade - distance) / fade, 0.0, 1.0).astype(np.float32)
        values = np.maximum(values, stamp) if freezes else np.minimum(values, 1.0 - stamp)
    return _mask(values)


def inverted(mask: PictureMask | None) -> PictureMask | None:
    """Return the mask that freezes what this one leaves free."""
    free = np.zeros((MASK_SIDE, MASK_SIDE), np.float32) if mask is None else mask.shares
    return _mask(1.0 - free)


def _mask(values: NDArray[np.float32]) -> PictureMask | None:
    bytes_ = np.rint(values * 255.0).astype(np.uint8)
    return PictureMask(bytes_.tobytes()) if bytes_.any() else None


def _stamps(way: Sequence[tuple[float, float]], radius: float) -> list[tuple[float, float]]:
    """Return points along a way, close enough for an even stroke."""
    stamps = list(way[:1])
    spacing = max(_SPACING * radius, 0.25 / MASK_SIDE)
    for (x0, y0), (x1, y1) in itertools.pairwise(way):
        count = max(1, math.ceil(math.dist((x0, y0), (x1, y1)) / spacing))
        stamps += [(x0 + (x1 - x0) * k / count, y0 + (y1 - y0) * k / count) for k in range(1, count + 1)]
    return stamps
