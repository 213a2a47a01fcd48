"""Philox4x32-10 and Box-Muller in torch: the numbers of `gpu_backend.ops.noise`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF


def noise(seed: int, layer: int, resolution: int, *, batch: int = 1) -> Tensor:
    """Return (batch, resolution, resolution) standard normal numbers."""
    area = resolution * resolution
    groups = -(-area // 4)
    c0 = torch.arange(groups, dtype=torch.int64).expand(batch, groups)
    c1 = torch.arange(batch, dtype=torch.int64)[:, None].expand(batch, groups)
    c2 = torch.full((batch, groups), layer, dtype=torch.int64)
    c3 = torch.zeros((batch, groups), dtype=torch.int64)
    k0, k1 = seed & _LOW, seed >> 32
    for _ in range(10):
        high0, low0 = _product(c0, 0xD2511F53)
        high1, low1 = _product(c2, 0xCD9E8D57)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    u0, u1, u2, u3 = ((word.double() + 0.5) * 2.0**-32 for word in (c0, c1, c2, c3))
    numbers = []
    for first, second in ((u0, u1), (u2, u3)):
        radius, angle = (-2.0 * first.log()).sqrt(), 2.0 * math.pi * second
        numbers += [radius * angle.cos(), radius * angle.sin()]
    pictures = torch.stack(numbers, dim=-1).reshape(batch, groups * 4)[:, :area]
    return pictures.reshape(batch, resolution, resolution).float()


def _product(word: Tensor, multiplier: int) -> tuple[Tensor, Tensor]:
    """High and low 32 bits of word * multiplier; in 16-bit halves, because int64 has a sign."""
    low = (word & 0xFFFF) * multiplier
    high = (word >> 16) * multiplier + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)
