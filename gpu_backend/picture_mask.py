"""Masks of pictures: one byte for each of `MASK_SIDE` x `MASK_SIDE` parts, whatever the resolution of the picture.

Values are row by row from the top left, 0 for nothing and 255 for all. Point dragging freezes what a mask covers; a
blend of two latents takes it from the second one.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from gpu_backend.errors import LoomError
from gpu_backend.lazy_names import LazyModule
from gpu_backend.quick_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

MASK_SIDE = 128

_MOST_TEXT = 4 * MASK_SIDE * MASK_SIDE


class MaskError(LoomError):
    """A text or bytes are no mask."""


@dataclass(frozen=True, slots=True)
class PictureMask:
    """A mask that covers something.

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

    @property
    def digest(self) -> str:
        """SHA-256 of the values, by which files refer to the mask."""
        return _digest(self)


@lru_cache(maxsize=256)
def _digest(mask: PictureMask) -> str:
    return hashlib.sha256(b"mask:" + mask.values).hexdigest()


def mask_to_text(mask: PictureMask) -> str:
    """Return a mask as text for a file: zlib, then base64."""
    return base64.b64encode(zlib.compress(mask.values, 9)).decode("ascii")


def mask_from_text(text: object) -> PictureMask | None:
    """Read what `mask_to_text` wrote; None for a mask that covers nothing. Raises MaskError."""
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


@lru_cache(maxsize=64)
def layer_mask(mask: PictureMask, side: int, extent: float, softness: float) -> NDArray[np.float32]:
    """Return a mask at the positions of a layer, (side, side) float32, 0..1; read-only.

    Parameters
    ----------
    side
        At most `MASK_SIDE`.
    extent
        Widths of the picture that the layer covers, around the same centre; above 1 where a layer has a margin. What
        lies outside the picture has the value at its edge.
    softness
        Width of the edges, in widths of the picture.
    """
    weights = _weights(side, extent, softness)
    made: NDArray[np.float32] = np.clip(weights @ mask.shares @ weights.T, 0.0, 1.0).astype(np.float32)
    made.flags.writeable = False
    return made


@lru_cache(maxsize=64)
def _weights(side: int, extent: float, softness: float) -> NDArray[np.float32]:
    """Return what each of `side` positions takes from each of the mask's, (side, MASK_SIDE): a box after a Gaussian."""
    centres = np.arange(MASK_SIDE) + 0.5
    ends = ((np.arange(side + 1) / side - 0.5) * extent + 0.5) * MASK_SIDE
    edges = np.arange(MASK_SIDE + 1, dtype=np.float64)
    edges[0], edges[-1] = -np.inf, np.inf
    low, high = ends[:-1, None], ends[1:, None]
    boxes = np.clip(np.minimum(high, edges[1:]) - np.maximum(low, edges[:-1]), 0.0, None) / (high - low)
    made: NDArray[np.float32] = boxes.astype(np.float32)
    if softness <= 0.0:
        return made
    # An edge that fades over `softness` has four deviations of the Gaussian within it.
    deviation = softness * MASK_SIDE / 4.0
    reach = int(np.ceil(4.0 * deviation))
    places = np.arange(-reach, MASK_SIDE + reach) + 0.5
    bells = np.exp(-0.5 * np.square((centres[:, None] - places) / deviation))
    bells /= bells.sum(1, keepdims=True)
    folded = np.zeros((MASK_SIDE, MASK_SIDE))
    np.add.at(folded.T, np.clip(places.astype(np.int64), 0, MASK_SIDE - 1), bells.T)
    return made @ folded.astype(np.float32)
