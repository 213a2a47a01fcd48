"""The mask of a picture: the region that point dragging preserves. Frozen values and pure functions.

A mask covers the picture whatever its resolution: `MASK_SIDE` x `MASK_SIDE` bytes, row by row from the top left, 0 for
free and 255 for frozen. A session without any frozen part has no mask.
"""

from __future__ import annotations

import base64
import itertools
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpu_backend import LazyModule, LoomError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

MASK_SIDE = 128

_MOST_TEXT = 4 * MASK_SIDE * MASK_SIDE
_SPACING = 0.3
"""Distance of the stamps of a brush along its way, in radii."""


class MaskError(LoomError):
    """A text or bytes are no mask."""


@dataclass(frozen=True, slots=True)
class PictureMask:
    """A mask that freezes something.

    Attributes
    ----------
    values
        MASK_SIDE^2 bytes.
    """

    values: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Check the size. Raises MaskError."""
        if len(self.values) != MASK_SIDE * MASK_SIDE:
            raise MaskError(f"A mask has {MASK_SIDE} x {MASK_SIDE} bytes, but one has {len(self.values)}.")

    @property
    def shares(self) -> NDArray[np.float32]:
        """The mask as (MASK_SIDE, MASK_SIDE) float32, 0..1."""
        bytes_ = np.frombuffer(self.values, np.uint8).reshape(MASK_SIDE, MASK_SIDE)
        return (bytes_ / np.float32(255)).astype(np.float32)


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


def mask_to_text(mask: PictureMask) -> str:
    """Return a mask as text for a file."""
    return base64.b64encode(zlib.compress(mask.values, 9)).decode("ascii")


def mask_from_text(text: object) -> PictureMask | None:
    """Read what `mask_to_text` wrote; None for a mask that freezes nothing. Raises MaskError."""
    if not isinstance(text, str) or len(text) > _MOST_TEXT:
        raise MaskError("A mask must be a text of a usual length, but is something else.")
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        values = unpacker.decompress(packed, MASK_SIDE * MASK_SIDE + 1)
    except (ValueError, zlib.error) as error:
        raise MaskError("A mask is damaged.", str(error)) from error
    mask = PictureMask(values)
    return mask if any(values) else None


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
