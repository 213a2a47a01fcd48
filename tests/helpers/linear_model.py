"""A model whose factors are known functions of its w rows, and pictures that contain only those factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.helpers.networks import make_stylegan2

W_DIM, NUM_WS = 12, 8


class LinearModel:
    """Three factors of w: "sun" of rows 0 to 3, "haze" of rows 4 to 7, "water" of all and bending with the sun.

    w is spread unevenly and its dimensions go together, so that the slopes of a regression are not yet pushes.
    """

    factors = ("sun", "haze", "water")

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.facts = make_stylegan2(resolution=32, z_dim=W_DIM, w_dim=W_DIM).facts
        self._mixing = rng.normal(size=(W_DIM, W_DIM)) / 3 + np.diag(np.linspace(0.5, 1.5, W_DIM))
        self.slopes = rng.normal(size=(3, W_DIM))
        self.slopes[1] += 0.5 * self.slopes[0]

    def map(self, z: Any, c: Any = None, psi: float = 1.0, cutoff: int | None = None) -> NDArray[np.float32]:
        """Return w rows (n, num_ws, w_dim)."""
        return np.repeat((psi * z @ self._mixing)[:, None].astype(np.float32), NUM_WS, axis=1)

    def synthesize(self, ws: Any) -> NDArray[np.float32]:
        """Return "pictures" (n, 3, 1, 1): the factors."""
        wide = ws.astype(np.float64)
        sun = wide[:, :4].mean(axis=1) @ self.slopes[0]
        haze = wide[:, 4:].mean(axis=1) @ self.slopes[1]
        water = wide.mean(axis=1) @ self.slopes[2] + 0.02 * sun**2
        return np.stack([np.tanh(sun / 6), np.tanh(haze / 6), water / 6], axis=1)[:, :, None, None].astype(np.float32)


def read_factors(pictures: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return (n, factors) in standard deviations, roughly."""
    return pictures[:, :, 0, 0].astype(np.float64) / 0.4
