"""Noise that is a function of place and seed alone, so that no picture depends on another and none on the device."""

import math

import torch

# Odd multipliers of 32-bit hashes as signed integers (xxHash's primes); products wrap, which is what mixes.
_FIRST = -1640531535
_SECOND = -2048144777
_THIRD = -1028477379
_FOURTH = 668265263
_UNIT = 2.0**-31

# Octaves are turned by this angle, so that their lattices never line up.
_COSINE, _SINE = math.cos(0.65), math.sin(0.65)


def _mixed(key: torch.Tensor) -> torch.Tensor:
    # Shifts of signed integers carry the sign along: the masks drop it.
    key = (key ^ (key >> 15 & 0x1FFFF)) * _SECOND
    key = (key ^ (key >> 13 & 0x7FFFF)) * _THIRD
    return key ^ (key >> 16 & 0xFFFF)


def hashed(cell: torch.Tensor, keys: torch.Tensor, salt: int) -> torch.Tensor:
    """A number in 0..1 for every whole-numbered ``cell`` ``int32``, by the seeds ``keys`` and ``salt``."""
    key = _mixed(_mixed(cell * _FIRST + keys) + (salt * _FOURTH & 0x7FFFFFFF))
    return key.float() * (0.5 * _UNIT) + 0.5


def chance(keys: torch.Tensor, salt: int) -> torch.Tensor:
    """A number in 0..1 for every seed in ``keys`` ``int32``; another ``salt`` gives another number."""
    return hashed(torch.zeros_like(keys), keys, salt + 7919)


def smoothstep(low: float | torch.Tensor, high: float | torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """0 below ``low``, 1 above ``high``, and a smooth way between."""
    share = ((value - low) / (high - low)).clamp(0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)


def _fade(share: torch.Tensor) -> torch.Tensor:
    return share * share * share * (share * (share * 6.0 - 15.0) + 10.0)


def gradient_noise(x: torch.Tensor, y: torch.Tensor, keys: torch.Tensor, salt: int) -> torch.Tensor:
    """Noise of gradients on a lattice of pitch 1, about -1..1 (Perlin 2002: quintic interpolation).

    Parameters
    ----------
    x, y : torch.Tensor
        Places, of shapes that broadcast.
    keys : torch.Tensor
        ``(n, 1, 1) int32``: the seeds.
    salt : int
        Tells the noises of one seed apart.
    """
    floor_x, floor_y = x.floor(), y.floor()
    right, up = x - floor_x, y - floor_y
    left, down = right - 1.0, up - 1.0
    column = floor_x.to(torch.int32) * _FIRST + (keys + (salt * _FOURTH & 0x7FFFFFFF))
    row = floor_y.to(torch.int32) * _FOURTH

    def corner(key: torch.Tensor, dx: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        key = _mixed(key)
        return key.float() * dx + (key << 16).float() * dy

    near = column + row
    far = near + _FOURTH
    a, b = corner(near, right, up), corner(near + _FIRST, left, up)
    c, d = corner(far, right, down), corner(far + _FIRST, left, down)
    along = _fade(right)
    low = a + (b - a) * along
    high = c + (d - c) * along
    return (low + (high - low) * _fade(up)) * (1.6 * _UNIT)


def line_noise(x: torch.Tensor, keys: torch.Tensor, salt: int) -> torch.Tensor:
    """Noise along a line, about -1..1."""
    floor = x.floor()
    cell = floor.to(torch.int32)
    a, b = hashed(cell, keys, salt), hashed(cell + 1, keys, salt)
    return (a + (b - a) * _fade(x - floor)) * 2.0 - 1.0


def fractal(
    x: torch.Tensor,
    y: torch.Tensor,
    keys: torch.Tensor,
    salt: int,
    octaves: int,
    footprint: torch.Tensor | float = 0.0,
    gain: float = 0.5,
) -> torch.Tensor:
    """Octaves of noise, each finer by 2 and weaker by ``gain``; those finer than ``footprint`` are left out.

    Returns
    -------
    torch.Tensor
        About -1..1.
    """
    total = torch.zeros_like(x)
    weight, frequency = 1.0, 1.0
    for octave in range(octaves):
        value = gradient_noise(x, y, keys, salt + octave) * weight
        if isinstance(footprint, torch.Tensor):
            value = value * (1.8 - footprint * (2.6 * frequency)).clamp(0.0, 1.0)
        total = total + value
        x, y = (x * _COSINE - y * _SINE) * 2.03 + 3.7, (x * _SINE + y * _COSINE) * 2.03 - 1.3
        weight, frequency = weight * gain, frequency * 2.03
    return total


def ridged(
    x: torch.Tensor,
    y: torch.Tensor,
    keys: torch.Tensor,
    salt: int,
    octaves: int,
    footprint: torch.Tensor,
    gain: torch.Tensor,
) -> torch.Tensor:
    """Crests and valleys: folded octaves, each fine only where the one before is high (Musgrave 1994).

    Returns
    -------
    torch.Tensor
        About 0..1.
    """
    total = torch.zeros_like(x)
    weight: torch.Tensor | float = 1.0
    amplitude = torch.ones_like(gain)
    frequency = 1.0
    for octave in range(octaves):
        fold = 1.0 - gradient_noise(x, y, keys, salt + octave).abs() * 1.3
        crest = fold * fold
        seen = (1.9 - footprint * (1.6 * frequency)).clamp(0.0, 1.0) if octave > 1 else 1.0
        # Octaves that are too fine to see leave their mean behind, so that far mountains do not sink.
        value = (0.45 + (crest - 0.45) * seen) * weight
        total = total + value * amplitude
        weight = (value * 1.7).clamp(0.0, 1.0)
        x, y = (x * _COSINE - y * _SINE) * 2.03 + 5.1, (x * _SINE + y * _COSINE) * 2.03 + 9.2
        amplitude, frequency = amplitude * gain, frequency * 2.03
    return total * 0.6
