"""Predicts a convolution's time with a tile from all timings that tuning has kept, to try the likeliest tiles first.

log(time) is a ridge regression on logarithms of what a tile makes of a shape, and their products in pairs. It is fit on
the timings of this GPU and judged on shapes that are left out of the fit, one after the other; only a model that
explains those orders candidates. It never chooses a tile: tiles are still timed and checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.tuning.timings import Timings
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape, ConvTile

LEAST_R2 = 0.5
"""A model that explains less of shapes it has not seen orders nothing."""

LEAST_SHAPES = 3
"""With fewer shapes there is nothing to judge by."""

_LEAST_TILES = 8
"""A shape with fewer timings does not tell tiles apart."""

_RIDGE = 1e-2


@dataclass(frozen=True, slots=True)
class PredictionQuality:
    """How well times of shapes that were left out of the fit are predicted.

    Attributes
    ----------
    shapes, timings
        Numbers of what the model is fit on.
    r2
        Share of the variance of log(time) that is explained, the mean of each shape left out: 1 is all of it.
    mean_error
        Mean of |predicted / measured - 1| after each shape's own median factor, which ordering does not need.
    trials
        Share of a shape's tiles, in the predicted order, that reaches its fastest; mean over shapes.
    """

    shapes: int
    timings: int
    r2: float
    mean_error: float
    trials: float

    @property
    def is_trusted(self) -> bool:
        """Whether candidates are tried in the predicted order."""
        return self.shapes >= LEAST_SHAPES and self.r2 >= LEAST_R2

    @property
    def sentence(self) -> str:
        """For the terminal."""
        use = "candidates are tried in the predicted order" if self.is_trusted else "too little to order candidates by"
        return (
            f"Prediction from {self.timings} timings of {self.shapes} shapes, judged on shapes left out: "
            f"R² {self.r2:.2f}, mean error {self.mean_error:.0%}, the fastest tile after {self.trials:.0%} of the "
            f"trials; {use}."
        )


class Prediction:
    """A model of the times of tiles on one GPU.

    Parameters
    ----------
    timings
        What it is fit on; shapes with few timings are left out.
    multiprocessors
        Of the GPU.
    """

    def __init__(self, timings: Timings, multiprocessors: int) -> None:
        self._multiprocessors = multiprocessors
        known = {shape: times for shape, times in timings.items() if len(times) >= _LEAST_TILES}
        self._rows = {shape: self._features(shape, tuple(times)) for shape, times in known.items()}
        self._logs = {shape: np.log(np.array(list(times.values()))) for shape, times in known.items()}
        self.quality = self._judged()
        self._weights = self._fit(tuple(known)) if self.quality.is_trusted else None

    def ordered(self, shape: ConvShape, candidates: Iterable[ConvTile]) -> tuple[ConvTile, ...]:
        """Return candidates, those with the shortest predicted time first; as they came if the model is not trusted."""
        tiles = tuple(candidates)
        if self._weights is None or not tiles:
            return tiles
        predicted = self._features(shape, tiles) @ self._weights
        return tuple(tiles[place] for place in np.argsort(predicted, kind="stable"))

    def _judged(self) -> PredictionQuality:
        shapes = tuple(self._rows)
        count = sum(len(logs) for logs in self._logs.values())
        if len(shapes) < LEAST_SHAPES:
            return PredictionQuality(len(shapes), count, 0.0, math.inf, 1.0)
        left, all_of_it = 0.0, 0.0
        errors: list[NDArray[np.float64]] = []
        trials: list[float] = []
        for shape in shapes:
            weights = self._fit([other for other in shapes if other != shape])
            predicted, measured = self._rows[shape] @ weights, self._logs[shape]
            difference = predicted - measured
            left += float(np.square(difference - difference.mean()).sum())
            all_of_it += float(np.square(measured - measured.mean()).sum())
            errors.append(np.abs(np.expm1(difference - np.median(difference))))
            place = int(np.flatnonzero(np.argsort(predicted, kind="stable") == int(measured.argmin()))[0])
            trials.append((place + 1) / len(measured))
        r2 = 1.0 - left / all_of_it if all_of_it > 0.0 else 0.0
        return PredictionQuality(len(shapes), count, r2, float(np.concatenate(errors).mean()), float(np.mean(trials)))

    def _fit(self, shapes: Sequence[ConvShape]) -> NDArray[np.float64]:
        """Return the weights that fit these shapes, each of which counts the same."""
        scales = [1.0 / math.sqrt(len(self._logs[shape])) for shape in shapes]
        rows = np.concatenate([self._rows[shape] * scale for shape, scale in zip(shapes, scales, strict=True)])
        logs = np.concatenate([self._logs[shape] * scale for shape, scale in zip(shapes, scales, strict=True)])
        return np.linalg.solve(rows.T @ rows + _RIDGE * np.eye(rows.shape[1]), rows.T @ logs)

    def _features(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> NDArray[np.float64]:
        """Return a row a tile: 1, features, and their products in pairs."""
        single = np.array([_traits(shape, tile, self._multiprocessors) for tile in tiles], np.float64)
        first, second = np.triu_indices(single.shape[1])
        return np.concatenate([np.ones((len(tiles), 1)), single, single[:, first] * single[:, second]], axis=1)


def _traits(shape: ConvShape, tile: ConvTile, multiprocessors: int) -> tuple[float, ...]:
    """Return logarithms to the base 2, scaled to about 1, of what decides the time of a kernel."""
    geometry = ConvGeometry(shape, tile)
    rounds = math.ceil(geometry.blocks / (multiprocessors * tile.blocks))
    sums = shape.cin * shape.kernel**2 / tile.split_k
    outputs = tile.rows * tile.columns * tile.channels * tile.row_tiles
    reads = sums * (tile.rows * tile.columns * tile.row_tiles + tile.channels)
    counts = (
        rounds,
        rounds * tile.blocks * outputs * sums,  # products that the busiest multiprocessor computes
        rounds * tile.blocks * reads,  # and values that it reads
        tile.threads,
        tile.channels,
        tile.rows * tile.columns,
        tile.depth,
        tile.stages,
        tile.split_k,
        tile.row_tiles,
        tile.blocks,
        tile.warps_n,
    )
    is_wgmma, keeps_weights = float(tile.mma == "wgmma"), float(tile.weights_in_smem)
    return (*(math.log2(count) / 8.0 for count in counts), is_wgmma, keeps_weights)
