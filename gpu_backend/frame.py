"""A rendered picture, its request and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpu_backend.request import RenderRequest


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time that one step of the plan took. `layer` says where in the network, `kernel` which operation ran."""

    layer: str
    kernel: str
    time_us: float
    flops: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class FrameTimings:
    """What a frame cost.

    Attributes
    ----------
    total_ms
        From the request being taken to the bytes being there.
    latent_ms
        Recipe to w rows.
    synthesis_ms
        All steps of the plan.
    steps
        In execution order; empty when this frame was not measured step by step.
    """

    total_ms: float
    latent_ms: float
    synthesis_ms: float
    steps: tuple[StepTime, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A picture that owns its bytes.

    Attributes
    ----------
    request
        The request that this frame answers.
    pixels
        (height, width, 4) uint8, contiguous and read-only: B, G, R, X as Qt's Format_RGB32 has them in memory, X = 255;
        with `has_alpha` the fourth byte is alpha (not premultiplied, Format_ARGB32).
    is_draft
        True when the picture left the network early, at a lower resolution than the model's.
    """

    request: RenderRequest
    pixels: NDArray[np.uint8]
    timings: FrameTimings
    is_draft: bool = False
    has_alpha: bool = False
    warnings: tuple[str, ...] = field(default=())

    @property
    def width(self) -> int:
        """Width in pixels."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Height in pixels."""
        return int(self.pixels.shape[0])

    def to_rgb(self) -> NDArray[np.uint8]:
        """Return the picture as (height, width, 3) uint8 R, G, B, or (height, width, 4) R, G, B, A with alpha."""
        order = [2, 1, 0, 3] if self.has_alpha else [2, 1, 0]
        return np.ascontiguousarray(self.pixels[..., order])
