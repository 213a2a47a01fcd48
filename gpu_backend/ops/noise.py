"""Noise pictures from a counter-based generator, the same on every device.

Philox4x32-10 (Salmon et al. 2011, section 4.3) turns (key, counter) into four 32-bit words, ten rounds of

    (hi0, lo0) = 0xD2511F53 * c0,   (hi1, lo1) = 0xCD9E8D57 * c2
    c = (hi1 ^ c1 ^ k0, lo1, hi0 ^ c3 ^ k1, lo0),   k0 += 0x9E3779B9,   k1 += 0xBB67AE85

The key is (seed mod 2^32, seed div 2^32); the counter is (pixel div 4, sample, layer, 0), where `layer` is the place
among the network's noise layers. Words r0, r1 give two normal numbers by Box and Muller (1958), words r2, r3 two more:

    radius = sqrt(-2 ln((r0 + 0.5) / 2^32)),   angle = 2 pi (r1 + 0.5) / 2^32,   (radius cos(angle), radius sin(angle))

so that pixel p takes number p mod 4 of counter p div 4. There is no state: each thread can generate any pixel.

A phase adds to every angle, which turns each pair of pixels 2q, 2q + 1 in its plane (`turned`)::

    (a, b) -> (a cos(phase) - b sin(phase), a sin(phase) + b cos(phase))

A pair of independent normal numbers stays one, so the noise is normal at every phase, and a whole turn is a closed
loop. Stored noise turns in the same way.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_ROUNDS = 10


def philox4x32(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """Return four 32-bit words for each counter.

    Parameters
    ----------
    counter
        (4, n) words below 2^32.
    key
        Two words below 2^32.

    Returns
    -------
    (4, n) words below 2^32.
    """
    c0, c1, c2, c3 = (row.astype(np.uint64) for row in counter)
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> _SHIFT) ^ c1 ^ np.uint64(k0),
            product1 & _LOW,
            (product0 >> _SHIFT) ^ c3 ^ np.uint64(k1),
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3])


def noise_picture(seed: int, layer: int, resolution: int, *, batch: int = 1) -> NDArray[np.float32]:
    """Return (batch, resolution, resolution) standard normal numbers.

    Parameters
    ----------
    seed
        0 .. 2^64 - 1.
    layer
        Place of the layer among the network's noise layers (`NetworkSpec.noise_layers`).
    """
    area = resolution * resolution
    groups = -(-area // 4)
    counter = np.zeros((4, batch, groups), np.uint64)
    counter[0] = np.arange(groups, dtype=np.uint64)
    counter[1] = np.arange(batch, dtype=np.uint64)[:, None]
    counter[2] = layer
    words = philox4x32(counter.reshape(4, -1), (seed & 0xFFFFFFFF, seed >> 32)).astype(np.float64)
    uniform = (words + 0.5) * 2.0**-32
    numbers = np.empty((batch * groups, 4))
    for pair in (0, 2):
        radius = np.sqrt(-2.0 * np.log(uniform[pair]))
        angle = 2.0 * np.pi * uniform[pair + 1]
        numbers[:, pair] = radius * np.cos(angle)
        numbers[:, pair + 1] = radius * np.sin(angle)
    pictures = numbers.reshape(batch, groups * 4)[:, :area].reshape(batch, resolution, resolution)
    return np.ascontiguousarray(pictures, dtype=np.float32)


def turned(picture: NDArray[np.float32], half_turns: float) -> NDArray[np.float32]:
    """Return a noise picture, (R, R) with R even, turned by a phase of -1..1 half turns."""
    pairs = picture.reshape(-1, 2)
    cos, sin = np.float32(math.cos(math.pi * half_turns)), np.float32(math.sin(math.pi * half_turns))
    made = np.empty_like(pairs)
    made[:, 0] = cos * pairs[:, 0] - sin * pairs[:, 1]
    made[:, 1] = sin * pairs[:, 0] + cos * pairs[:, 1]
    return made.reshape(picture.shape)
