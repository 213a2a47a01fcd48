"""Effect of displacements in w on the factors of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_backend.recipe import RowRange
from gpu_backend.training.directions.rank_correlation import spearman
from gpu_backend.training.quality.generated import MapsAndRenders

ReadFactors = Callable[[NDArray[np.float32]], NDArray[np.float64]]
"""Pictures (n, channels, R, R) -> factors (n, factors), in standard deviations."""

_BATCH = 32


class Probe:
    """Renders rows of w and predicts the factors.

    Parameters
    ----------
    told
        Called with the number of pictures drawn so far.
    """

    def __init__(self, renderer: MapsAndRenders, read: ReadFactors, told: Callable[[int], None] | None = None) -> None:
        self._renderer = renderer
        self._read = read
        self._told = told
        self._drawn = 0

    def factors(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return (n, factors) of w rows (n, num_ws, w_dim)."""
        parts = []
        for first in range(0, len(rows), _BATCH):
            parts.append(self._read(self._renderer.synthesize(rows[first : first + _BATCH])))
            self._drawn += len(parts[-1])
            if self._told is not None:
                self._told(self._drawn)
        return np.concatenate(parts)

    def responses(
        self, rows: NDArray[np.float32], vectors: NDArray[np.float64], where: RowRange, step: float
    ) -> NDArray[np.float64]:
        """Return (vectors, factors): the mean change of each factor for each vector, by central differences."""
        found = []
        for vector in vectors:
            up = self.factors(pushed(rows, step * vector, where))
            down = self.factors(pushed(rows, -step * vector, where))
            found.append((up - down).mean(axis=0) / (2.0 * step))
        return np.stack(found)

    def sweep(
        self, rows: NDArray[np.float32], vector: NDArray[np.floating], where: RowRange, amounts: Sequence[float]
    ) -> NDArray[np.float64]:
        """Return (amounts, n, factors): the factors of each latent at each amount of a vector."""
        return np.stack([self.factors(pushed(rows, amount * vector, where)) for amount in amounts])


def pushed(rows: NDArray[np.float32], push: NDArray[np.floating], where: RowRange) -> NDArray[np.float32]:
    """Return w rows (n, num_ws, w_dim) with a displacement (w_dim,) added on a range of rows."""
    moved = rows.copy()
    last = rows.shape[1] - 1 if where.last is None else where.last
    moved[:, where.first : last + 1] += push.astype(np.float32)
    return moved


class Effect(NamedTuple):
    """Effect of a direction, measured by a sweep.

    Attributes
    ----------
    spearman
        Rank correlation of amount and own factor, the mean over latents.
    selectivity
        How far the own factor goes from end to end, over the farthest of any other: mean distances over latents, in
        standard deviations, so that up here and down there count both. Without other factors it is infinite.
    mean_selectivity
        The same of mean changes, in which up here and down there cancel.
    shift
        Mean change of the own factor from end to end, in standard deviations.
    """

    spearman: float
    selectivity: float
    mean_selectivity: float
    shift: float


def effect_of(values: NDArray[np.float64], amounts: Sequence[float], own: int) -> Effect:
    """Return the effect from the values (amounts, n, factors) of a sweep; amounts ascend."""
    steps = np.asarray(amounts, dtype=np.float64)
    monotone = float(np.mean([spearman(steps, latent) for latent in values[:, :, own].T]))
    change = values[-1] - values[0]
    return Effect(
        spearman=monotone,
        selectivity=_over_others(np.abs(change).mean(axis=0), own),
        mean_selectivity=_over_others(np.abs(change.mean(axis=0)), own),
        shift=float(change[:, own].mean()),
    )


def _over_others(shifts: NDArray[np.float64], own: int) -> float:
    others = np.delete(shifts, own)
    farthest = float(others.max(initial=0.0))
    return float(shifts[own]) / farthest if farthest > 0.0 else float("inf")
