"""What computes terms of a picture's loss instead of torch: own kernels in `gpu_backend.gradients.gpu.terms`."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class PictureTerms(Protocol):
    """Terms that torch differentiates unless they come with their gradient, one number for each picture."""

    def pixels(
        self, found: Tensor, wanted: Tensor, means: Tensor, variances: Tensor, weights: tuple[float, float]
    ) -> Tensor:
        """Return the mean square times a weight, minus the mean structural similarity times another, (batch,).

        Parameters
        ----------
        found, wanted
            Pictures in -1..1, shaped alike.
        means, variances
            Of the wanted pictures' windows, values in 0..1.
        """
        ...

    def pixels_with_gradient(
        self, found: Tensor, wanted: Tensor, means: Tensor, variances: Tensor, weights: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        """Return the same, and the gradient of each number by its picture, shaped as `found`; without a graph."""
        ...

    def map(self, x: Tensor, wanted: Tensor, least: float) -> Tensor:
        """Return the mean squared distance of feature maps whose channels have unit length at each place, (batch,).

        Parameters
        ----------
        x, wanted
            (batch, channels, height, width); `wanted` is of unit length already.
        least
            Added to the square of a length.
        """
        ...
