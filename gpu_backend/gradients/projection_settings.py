"""Settings and reports of a projection: plain values, without torch."""

from __future__ import annotations

import math

from gpu_backend.quick_dataclass import dataclass

MAX_STEPS = 100_000

PROJECTION_START_S = 5.0
"""`ProjectionSettings.start_s` of a search that is watched."""

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
    """How long to search.

    Attributes
    ----------
    steps
        Along gradients.
    candidates
        Random latents to begin with; an eighth if there is an encoder.
    seed
        Of the random latents.
    start_s
        Seconds for the random latents, as many before them for matching drafts to pictures, and as many after them for
        the units of variables: at least one latent, three pictures and one pass. The mean of w then comes first.
        Infinite for a result that does not depend on the machine.
    """

    steps: int = 300
    candidates: int = 500
    seed: int = 0
    start_s: float = math.inf


@dataclass(frozen=True, slots=True)
class ProjectionReport:
    """State of a projection.

    Attributes
    ----------
    stage
        ``"drafts"`` while these are matched to pictures; ``"random"``; ``"scales"`` while units of variables are
        measured; ``"w"``, ``"rows"``; ``"weights"`` for a tuning.
    step, steps
        Finished steps of all. Pictures count while drafts are matched, then random latents, then passes that measure;
        with a time limit, `steps` of these is an estimate. Those of a tuning are counted alone.
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
