"""Noise that depends on position and seed alone: the same on every device and in every batch."""

import math

import torch

from gpu_backend.training.world.numbers import numbers, whole_numbers

# Odd multipliers of 32-bit hashes as signed integers (xxHash's primes); the overflow of products mixes the bits.
_FIRST = -1640531535
_SECOND = -2048144777
_THIRD = -1028477379
_FOURTH = 668265263
_UNIT = 2.0**-31

Salt = int | torch.Tensor
"""Index that distinguishes the noises of a seed: an integer, or ``() int64``."""

# Octaves are turned by this angle, so that their lattices never line up.
_COSINE, _SINE = math.cos(0.65), math.sin(0.65)
# Not 2: octaves of one lattice would meet in its zeros.
_FINER = 2.03


def _mixed(key: torch.Tensor) -> torch.Tensor:
    # Shifts of signed integers carry the sign along: the masks drop it.
    key = (key ^ (key >> 15 & 0x1FFFF)) * _SECOND
    key = (key ^ (key >> 13 & 0x7FFFF)) * _THIRD
    return key ^ (key >> 16 & 0xFFFF)


def hashed(cell: torch.Tensor, keys: torch.Tensor, salt: Salt) -> torch.Tensor:
    """A random number in 0..1 for every integer ``cell`` ``int32``, from the seeds ``keys`` and ``salt``."""
    key = _mixed(_mixed(cell * _FIRST + keys) + _salted(salt))
    return key.float() * (0.5 * _UNIT) + 0.5


def chance(keys: torch.Tensor, salt: Salt) -> torch.Tensor:
    """A number in 0..1 for every seed in ``keys`` ``int32``; another ``salt`` gives another number."""
    return hashed(torch.zeros_like(keys), keys, salt + 7919)


def smoothstep(low: float | torch.Tensor, high: float | torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Smoothstep: 0 below ``low``, 1 above ``high``."""
    share = ((value - low) / (high - low)).clamp(0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)


def _fade(share: torch.Tensor) -> torch.Tensor:
    return share * share * share * (share * (share * 6.0 - 15.0) + 10.0)


def gradient_noise(x: torch.Tensor, y: torch.Tensor, keys: torch.Tensor, salt: Salt) -> torch.Tensor:
    """Gradient noise on a lattice of pitch 1, about -1..1 (Perlin 2002: quintic interpolation).

    Parameters
    ----------
    x, y : torch.Tensor
        Places, of shapes that broadcast.
    keys : torch.Tensor
        ``(n, 1, 1) int32``: the seeds.
    """
    return _lattice(x, y, keys + _salted(salt))


def _salted(salt: Salt) -> Salt:
    return salt * _FOURTH & 0x7FFFFFFF


def _lattice(x: torch.Tensor, y: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    floor_x, floor_y = x.floor(), y.floor()
    right, up = x - floor_x, y - floor_y
    left, down = right - 1.0, up - 1.0
    column = floor_x.to(torch.int32) * _FIRST + keys
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


def _octaves(x: torch.Tensor, y: torch.Tensor, keys: torch.Tensor, salt: int, count: int) -> torch.Tensor:
    """Noise at ``x``, ``y`` ``(n, W, H)`` in octaves, each turned, twice as fine and elsewhere; ``(n, count, W, H)``.

    All octaves are one set of tensor operations: fewer to launch, or to compile.
    """
    cosines, sines, rights, ups = [1.0], [0.0], [0.0], [0.0]
    for _ in range(count - 1):
        cosine, sine, right, up = cosines[-1], sines[-1], rights[-1], ups[-1]
        cosines.append((cosine * _COSINE - sine * _SINE) * _FINER)
        sines.append((sine * _COSINE + cosine * _SINE) * _FINER)
        rights.append((right * _COSINE - up * _SINE) * _FINER + 3.7)
        ups.append((right * _SINE + up * _COSINE) * _FINER - 1.3)
    turn, side, aside, above = (numbers(row, x.device)[:, None, None] for row in (cosines, sines, rights, ups))
    salts = whole_numbers([(salt + octave) * _FOURTH & 0x7FFFFFFF for octave in range(count)], x.device)[:, None]
    x, y = x[:, None], y[:, None]
    return _lattice(x * turn - y * side + aside, x * side + y * turn + above, keys[:, None] + salts[:, :, None])


def line_noise(x: torch.Tensor, keys: torch.Tensor, salt: Salt) -> torch.Tensor:
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
    """Octaves of noise, each finer by 2 and weaker by ``gain``; octaves finer than ``footprint`` are left out.

    Returns
    -------
    torch.Tensor
        About -1..1.
    """
    finer = numbers([_FINER**octave for octave in range(octaves)], x.device)[:, None, None]
    weight = numbers([gain**octave for octave in range(octaves)], x.device)[:, None, None]
    noise = _octaves(x, y, keys, salt, octaves) * weight
    if isinstance(footprint, torch.Tensor):
        noise = noise * (1.8 - footprint[:, None] * (2.6 * finer)).clamp(0.0, 1.0)
    return noise.sum(1)


def ridged(
    x: torch.Tensor,
    y: torch.Tensor,
    keys: torch.Tensor,
    salt: int,
    octaves: int,
    footprint: torch.Tensor,
    gain: torch.Tensor,
) -> torch.Tensor:
    """Ridged multifractal: each octave is weighted by the one before (Musgrave 1994).

    Returns
    -------
    torch.Tensor
        About 0..1.
    """
    total = torch.zeros_like(x)
    weight: torch.Tensor | float = 1.0
    amplitude = torch.ones_like(gain)
    frequency = 1.0
    fold = 1.0 - _octaves(x, y, keys, salt, octaves).abs() * 1.3
    for octave, crest in enumerate((fold * fold).unbind(1)):
        seen = (1.9 - footprint * (1.6 * frequency)).clamp(0.0, 1.0) if octave > 1 else 1.0
        # Octaves below the sampling limit contribute their mean, so that far mountains do not sink.
        value = (0.45 + (crest - 0.45) * seen) * weight
        total = total + value * amplitude
        weight = (value * 1.7).clamp(0.0, 1.0)
        amplitude, frequency = amplitude * gain, frequency * _FINER
    return total * 0.6
