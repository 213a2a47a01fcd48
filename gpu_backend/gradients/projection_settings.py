"""Settings and reports of a projection: plain values, without torch."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass

MAX_STEPS = 100_000

PHOTO_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".avif")
"""Files of these kinds are projected from a folder."""


@dataclass(frozen=True, slots=True)
class Crop:
    """A square part of a picture, in pixels of the upright picture, rotated as its EXIF data says."""

    left: float
    top: float
    side: float


@dataclass(frozen=True, slots=True)
class ProjectionSettings:
    """How long to search: steps along gradients, and random latents to begin with; an eighth if there is an encoder."""

    steps: int = 300
    candidates: int = 500
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProjectionReport:
    """State of a projection.

    Attributes
    ----------
    stage
        ``"random"``, ``"w"`` or ``"rows"``; ``"weights"`` for a tuning.
    step, steps
        Finished steps of all; steps of the first stage count latents, and those of a tuning are counted alone.
    loss
        Of the best latent so far, at `resolution`.
    resolution
        At which the best latent is chosen: the full one also for steps at the largest draft resolution.
    is_done
        Nothing is left to do.
    """

    stage: str
    step: int
    steps: int
    loss: float
    resolution: int
    is_done: bool = False
