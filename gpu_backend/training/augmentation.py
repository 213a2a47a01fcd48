"""Adaptive discriminator augmentation (Karras et al. 2020a), batched on the device.

Each transformation is applied to each picture independently with probability p (section 2 and appendix B):
mirroring, integer translation, scaling and rotation; then brightness, contrast, saturation and hue. All are combined
into one warp and one colour matrix, so the picture is resampled once. The warp is bilinear and reflects at the edges.
Mirroring and translation alone keep pixel values.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

_TRANSLATION = 0.125
_SCALE_STD = 0.2
_BRIGHTNESS_STD = 0.2
_CONTRAST_STD = 0.5
_SATURATION_STD = 1.0


def augmented(pictures: Tensor, p: Tensor) -> Tensor:
    """Return augmented pictures, (n, 3, R, R) float32; differentiable. p is a scalar tensor on the same device."""
    batch, side, device = pictures.shape[0], pictures.shape[-1], pictures.device
    grid = functional.affine_grid(_warps(batch, side, p, device), list(pictures.shape), align_corners=False)
    warped = functional.grid_sample(pictures, grid, padding_mode="reflection", align_corners=False)
    matrix, offset = _colours(batch, p, device)
    return torch.einsum("nij,njhw->nihw", matrix, warped) + offset[:, :, None, None]


def _warps(batch: int, side: int, p: Tensor, device: torch.device) -> Tensor:
    """Return affine matrices (n, 2, 3) from output to input positions, both in -1..1."""
    flip = 1.0 - 2.0 * _chosen(batch, p * 0.5, device).float()
    pixels = torch.round((torch.rand(batch, 2, device=device) * 2 - 1) * _TRANSLATION * side)
    shift = _chosen(batch, p, device).float()[:, None] * pixels * (2.0 / side)
    scale = _where(p, torch.exp2(torch.randn(batch, device=device) * _SCALE_STD), 1.0)
    angle = _where(p, (torch.rand(batch, device=device) * 2 - 1) * math.pi, 0.0)
    cos, sin = torch.cos(angle) / scale, torch.sin(angle) / scale
    rows = torch.stack([torch.stack([flip * cos, -flip * sin], 1), torch.stack([sin, cos], 1)], 1)
    return torch.cat([rows, shift[:, :, None]], 2)


def _colours(batch: int, p: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return (n, 3, 3) and (n, 3): y = M x + b for a pixel's colour x.

    Saturation scales, and hue rotates, the component perpendicular to the grey axis v = (1, 1, 1) / sqrt(3).
    """
    axis = torch.full((3,), 1.0 / math.sqrt(3.0), device=device)
    grey = torch.outer(axis, axis)
    colourful = torch.eye(3, device=device) - grey
    cross = torch.zeros(3, 3, device=device)
    cross[0, 1], cross[0, 2], cross[1, 2] = -axis[2], axis[1], -axis[0]
    cross = cross - cross.t()
    brightness = _where(p, torch.randn(batch, device=device) * _BRIGHTNESS_STD, 0.0)
    contrast = _where(p, torch.exp2(torch.randn(batch, device=device) * _CONTRAST_STD), 1.0)
    saturation = _where(p, torch.exp2(torch.randn(batch, device=device) * _SATURATION_STD), 1.0)
    hue = _where(p, (torch.rand(batch, device=device) * 2 - 1) * math.pi, 0.0)
    along, across = (saturation * torch.cos(hue))[:, None, None], (saturation * torch.sin(hue))[:, None, None]
    matrix = (grey + colourful * along + cross * across) * contrast[:, None, None]
    return matrix, (brightness * contrast)[:, None].expand(-1, 3)


def _chosen(batch: int, p: Tensor, device: torch.device) -> Tensor:
    return torch.rand(batch, device=device) < p


def _where(p: Tensor, drawn: Tensor, otherwise: float) -> Tensor:
    return torch.where(_chosen(drawn.shape[0], p, drawn.device), drawn, otherwise)


class AdaptiveChance:
    """Adaptive probability p, controlled by an overfitting heuristic (Karras et al. 2020a, section 3.1).

    r_t = E[sign(D(real))]: above the target the discriminator overfits and p grows; below it p shrinks. p needs `kimg`
    thousand pictures from 0 to 1.

    Attributes
    ----------
    p, signs
        Persistent tensors: p; the sum of signs since the last change, and their number.
    """

    EVERY = 4
    """Steps between two changes of p."""

    def __init__(self, target: float, kimg: float, device: torch.device) -> None:
        self.target, self.kimg = target, kimg
        self.p = torch.zeros([], device=device)
        self.signs = torch.zeros(2, device=device)

    def see(self, real_logits: Tensor) -> None:
        """Accumulate the signs of the logits of real pictures."""
        signs = real_logits.detach().float().sign()
        self.signs += torch.stack([signs.sum(), torch.ones_like(signs).sum()])

    def change(self, pictures: int) -> None:
        """Update p after `pictures` pictures from the signs of all processes, and reset the sums."""
        direction = (self.signs[0] / self.signs[1].clamp(min=1) - self.target).sign()
        pace = pictures / max(self.kimg * 1000.0, 1e-8)
        self.p.add_(direction * pace).clamp_(0, 1)
        self.signs.zero_()
