"""Blends of samples under masks: activations or pictures of second latents replace those of the pictures.

    y[i] = x[i];  y[i] += m_k (s_k - y[i])  for each blend k of the layer, in order      i < pictures
    y[j] = x[j]                                                                          pictures <= j

The second latent's activations s_k are x[pictures + k], or the sample k of another input that an earlier run of a
plan's first steps may have written (`gpu_backend.plan.plan.Plan.kept_steps`). Such a step has no pictures: it keeps x.

The input ``mask/...`` of a blend holds m_k, mask times strength, at the positions of the layer or, where a side has
more than `MASK_SIDE` of them, at that many, between which values are interpolated. They may change without a new plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.picture_mask import MASK_SIDE
from gpu_backend.quick_dataclass import dataclass

MASK_INPUT = "mask/"
"""Prefix of the inputs."""


@dataclass(frozen=True, slots=True)
class BlendSamples:
    """Parameters of the operation; its inputs are x, what is kept of the second latents, a mask for each of `blends`.

    Attributes
    ----------
    pictures
        Samples of x that are pictures; those of the second latents follow them, or are kept.
    blends
        Which blends the layer has.
    samples_out
        Samples of the output: `pictures`, if no later layer is blended.
    extent
        Widths of the picture that the layer covers.
    is_picture
        Whether x is a picture: float32 at any precision.
    reads_kept
        Whether the second latents are an input of their own, after x.
    """

    channels: int
    resolution: int
    pictures: int
    blends: tuple[int, ...]
    samples_out: int
    extent: float = 1.0
    is_picture: bool = False
    reads_kept: bool = False

    @property
    def is_keeping(self) -> bool:
        """Whether the step only keeps the second latents for later ones."""
        return not self.pictures

    @property
    def mask_side(self) -> int:
        """Side of the masks."""
        return min(self.resolution, MASK_SIDE)

    def output_shape(self, batch: int) -> tuple[int, ...]:
        """Shape of the output."""
        return (self.samples_out, self.resolution, self.resolution, self.channels)

    def flops(self, batch: int) -> int:
        """One multiply-add for each value and blend."""
        return 2 * self.pictures * len(self.blends) * self.resolution**2 * self.channels

    def nbytes(self, batch: int) -> int:
        """Reads and writes the activations."""
        kept = len(self.blends) if self.reads_kept else 0
        return 4 * (batch + kept + self.samples_out) * self.resolution**2 * self.channels

    def masks_of(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """Return those of a step's inputs that are masks."""
        return tuple(inputs[len(inputs) - len(self.blends) :])
