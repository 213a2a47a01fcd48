"""Distance of a picture from a target: mean square, structural similarity, and features of the model's own networks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.picture_features import PictureFeatures, gradient_of
from gpu_backend.gradients.picture_terms import PictureTerms

_C1, _C2 = 0.01**2, 0.03**2
"""Of structural similarity, for values in 0..1 (Wang et al. 2004)."""
_WINDOW = 7
_SQUARE, _STRUCTURE = 10.0, 0.1
"""Weights: at 20 dB the mean square counts more, from 35 dB on both count alike."""
_FEATURES = 0.4
"""Weight of the distance by features, 0..4; assets/results/projection has what other weights find."""


class PictureLoss:
    """The loss of a search: 10 times the mean square, plus a tenth of 1 - SSIM, plus the distance by features.

    The first two are smooth, so that L-BFGS finds their curvature; an absolute difference has a kink where pictures
    agree.

    Parameters
    ----------
    wanted
        Pictures in -1..1, (batch, channels, side, side); one, or as many as are compared with them.
    features
        Of a network of the model; None compares without.
    terms
        Instead of torch, for as many wanted pictures as are compared with them.
    """

    def __init__(
        self, wanted: Tensor, features: PictureFeatures | None = None, terms: PictureTerms | None = None
    ) -> None:
        self._wanted, self._features, self._terms = wanted, features, terms
        self._structure = _Structure(wanted)
        with torch.no_grad():
            self._maps = [] if features is None else features.wanted(wanted)

    def __call__(self, found: Tensor) -> Tensor:
        """Return one number for each picture (batch, channels, side, side)."""
        if self._terms is not None:
            windows, weights = self._structure, (_SQUARE, _STRUCTURE)
            total = _STRUCTURE + self._terms.pixels(found, self._wanted, windows.mean, windows.variance, weights)
        else:
            total = _SQUARE * (found - self._wanted).square().mean((1, 2, 3))
            total = total + _STRUCTURE * (1.0 - self._structure.similarity(found))
        if self._features is not None:
            total = total + _FEATURES * self._features.distance(found, self._maps, self._terms)
        return total

    def with_gradient(self, found: Tensor) -> tuple[Tensor, Tensor]:
        """Return one number for each picture, and its gradient by that picture, shaped as these; neither has a graph.

        With own kernels that takes fewer passes over the pictures than a graph of all terms.
        """
        if self._terms is None:
            return gradient_of(self, found)
        windows, weights = self._structure, (_SQUARE, _STRUCTURE)
        total, gradient = self._terms.pixels_with_gradient(found, self._wanted, windows.mean, windows.variance, weights)
        total = total + _STRUCTURE
        if self._features is not None:
            distances, gradients = self._features.distance_with_gradient(found, self._maps, self._terms)
            total = torch.add(total, distances, alpha=_FEATURES)
            gradient = torch.add(gradient, gradients, alpha=_FEATURES)
        return total, gradient


class _Structure:
    """Local means and variances of pictures in -1..1 that others are compared with."""

    def __init__(self, wanted: Tensor) -> None:
        self._wanted = (wanted + 1) * 0.5
        self.mean = _local_mean(self._wanted)
        self.variance = _local_mean(self._wanted.square()) - self.mean.square()

    def similarity(self, found: Tensor) -> Tensor:
        """Return the structural similarity, one number a sample."""
        found = (found + 1) * 0.5
        mean = _local_mean(found)
        variance = _local_mean(found.square()) - mean.square()
        covariance = _local_mean(found * self._wanted) - mean * self.mean
        luminance = (2 * mean * self.mean + _C1) / (mean.square() + self.mean.square() + _C1)
        structure = (2 * covariance + _C2) / (variance + self.variance + _C2)
        return (luminance * structure).mean((1, 2, 3))


def _local_mean(x: Tensor) -> Tensor:
    """Return means over windows of at most 7 x 7. An axis at a time is 14 sums a pixel instead of 49."""
    window = min(_WINDOW, x.shape[-1])
    rows = functional.avg_pool2d(x, (window, 1), stride=1)
    return functional.avg_pool2d(rows, (1, window), stride=1)


def ssim(found: Tensor, wanted: Tensor) -> Tensor:
    """Return the structural similarity of pictures in -1..1, one number a sample; the window is at most 7 x 7."""
    return _Structure(wanted).similarity(found)


@torch.no_grad()
def psnr(found: Tensor, wanted: Tensor) -> float:
    """Return the peak signal-to-noise ratio in dB of pictures in -1..1, clamped as they are shown."""
    error = float((found.clamp(-1, 1) - wanted).square().mean())
    return 10.0 * float(torch.log10(torch.tensor(4.0 / max(error, 1e-12))))
