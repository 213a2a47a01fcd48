"""Where the samples of a block's features lie in the picture."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class FeatureGrid:
    """Positions of a block's feature samples in the picture.

    Attributes
    ----------
    side
        Samples along an axis, margins included.
    rate
        Samples across the picture.
    picture
        Pixels across the picture.
    """

    side: int
    rate: int
    picture: int

    def to_samples(self, pixels: Tensor) -> Tensor:
        """Return positions in samples of positions in pixels; whole numbers are centres in both."""
        return (pixels + 0.5) * (self.rate / self.picture) + (self.side - self.rate) / 2 - 0.5

    @property
    def pixel_pitch(self) -> float:
        """Samples per pixel."""
        return self.rate / self.picture
