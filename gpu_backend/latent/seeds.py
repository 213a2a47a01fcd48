"""Seed -> z, as the official tools draw it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpu_backend.errors import RequestError
from gpu_backend.lazy_names import LazyModule
from gpu_backend.recipe import SEED_COUNT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


def seed_to_z(seed: int, z_dim: int) -> NDArray[np.float32]:
    """Return the z of a seed.

    NumPy's legacy generator is used because its stream is frozen: a seed gives the same z on every machine, and the
    same as the official tools' ``RandomState(seed).randn(1, z_dim)``.

    Returns
    -------
    (z_dim,) float32

    Raises
    ------
    RequestError
        If the seed is not in 0 .. SEED_COUNT - 1.
    TypeError
        If it is not a whole number.
    """
    return _draw(seed, z_dim).astype(np.float32)


def seed_class(seed: int, c_dim: int) -> int:
    """Return the default class, of c_dim, that StyleGAN-XL's tools draw from a seed.

    Raises
    ------
    RequestError
        If the seed is not in 0 .. SEED_COUNT - 1, or there is no class.
    TypeError
        If it is not a whole number.
    """
    if c_dim < 1:
        raise RequestError(f"A class needs at least one to choose from, not {c_dim}.")
    return int(_generator(seed).randint(0, c_dim))


def blend_z(seeds: Sequence[tuple[int, float]], z_dim: int) -> NDArray[np.float32]:
    """Return the weighted sum of the z of several seeds, (z_dim,) float32. Raises as `seed_to_z`."""
    total = np.zeros(z_dim, dtype=np.float64)
    for seed, weight in seeds:
        total += weight * _draw(seed, z_dim)
    return total.astype(np.float32)


def z_angle(first: int, second: int, z_dim: int) -> tuple[float, float, float]:
    """Return the angle between the z of two seeds in radians, and the length of each."""
    a, b = _draw(first, z_dim), _draw(second, z_dim)
    a_norm, b_norm = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if a_norm == 0.0 or b_norm == 0.0:
        return 0.0, a_norm, b_norm
    return float(np.arccos(np.clip(a @ b / (a_norm * b_norm), -1.0, 1.0))), a_norm, b_norm


def _draw(seed: int, z_dim: int) -> NDArray[np.float64]:
    return _generator(seed).randn(z_dim)


def _generator(seed: int) -> np.random.RandomState:
    if not hasattr(seed, "__index__"):
        raise TypeError(f"A seed is a whole number, not {seed!r:.40}.")
    if not 0 <= seed < SEED_COUNT:
        raise RequestError(f"A seed must be in 0..{SEED_COUNT - 1}, not {seed}.")
    return np.random.RandomState(seed)
