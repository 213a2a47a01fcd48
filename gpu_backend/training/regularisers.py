"""Penalties on gradients: R1 (Mescheder et al. 2018, equation 9) and path length (Karras et al. 2020b, section 3.2).

Both use lazy regularisation: they run every few steps, weighted by that interval, and `lazy_correction` adjusts the
optimiser (Karras et al. 2020b, appendix B).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_backend.training.networks.convolution import no_weight_gradients

_PATH_DECAY = 0.01


def r1_penalty(pictures: Tensor, real_logits: Tensor, scale: float = 1.0) -> Tensor:
    """Return the squared gradient of each logit with respect to its picture, (n,) float32.

    The penalty of the loss is gamma / 2 times its mean.

    Parameters
    ----------
    pictures
        Input of the discriminator, a leaf that requires gradients.
    scale
        Gradient scale, which keeps small gradients within half precision.
    """
    with no_weight_gradients():
        (gradient,) = torch.autograd.grad(real_logits.sum() * scale, pictures, create_graph=True)
    return (gradient.float() / scale).square().sum((1, 2, 3))


def path_lengths(pictures: Tensor, ws: Tensor, noise: Tensor, scale: float = 1.0) -> Tensor:
    """Return the length of J^T y for every picture, (n,) float32: y is normal noise, J = d picture / d w.

    Parameters
    ----------
    ws
        (n, num_ws, w_dim), from which the pictures were made.
    noise
        Standard normal numbers of the pictures' shape; the division by their number of pixels is done here.
    scale
        As in `r1_penalty`.
    """
    side = math.sqrt(pictures.shape[2] * pictures.shape[3])
    with no_weight_gradients():
        (gradient,) = torch.autograd.grad((pictures * noise).sum() * (scale / side), ws, create_graph=True)
    return (gradient.float() / scale).square().sum(2).mean(1).sqrt()


class PathLength:
    """Running mean of path lengths in persistent memory, and the squared deviation of a batch from it."""

    def __init__(self, device: torch.device) -> None:
        self.mean = torch.zeros([], device=device)

    def penalty(self, lengths: Tensor) -> Tensor:
        """Update the mean and return the batch average of (length - mean)^2."""
        followed = self.mean.lerp(lengths.detach().mean(), _PATH_DECAY)
        # With fp16 a length may overflow. The loss scale is reduced then, and the mean must exclude that length.
        self.mean.copy_(torch.where(followed.isfinite(), followed, self.mean))
        return (lengths - self.mean).square().mean()


def lazy_correction(learning_rate: float, betas: tuple[float, float], every: int) -> tuple[float, tuple[float, float]]:
    """Return learning rate and betas of an optimiser that takes (every + 1) steps instead of `every`.

    With c = every / (every + 1), the learning rate is multiplied by c and the betas are raised to the power c.
    """
    if every <= 0:
        return learning_rate, betas
    c = every / (every + 1)
    return learning_rate * c, (betas[0] ** c, betas[1] ** c)
