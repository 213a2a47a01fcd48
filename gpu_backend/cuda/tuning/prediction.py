"""Predicts a convolution's time with a tile from all timings that tuning has kept, to try the likeliest tiles first.

log(time) is a ridge regression on logarithms of what a tile makes of a shape, and their products in pairs. Both sides
are taken relative to the mean of their shape: only the differences between the tiles of a shape matter for an order,
and they transfer from shape to shape better than times do. The model is fit on the timings of this GPU and judged on
shapes that are left out of the fit, one after the other; only one that explains those orders candidates. It never
chooses a tile: tiles are still timed and checked.

On 196 timings of seven convolutions that an H200 took in tf32 (assets/results/2026-11-23-h200/tile-timings.jsonl), the
fastest tile came after 20 % of the trials in the predicted order, and after 37 % in the order of the search; the times
themselves, without their means, gave 26 % and explained nothing.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.tuning.timings import Timings
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape, ConvTile
from gpu_backend.quick_dataclass import dataclass

LEAST_R2 = 0.2
MOST_TRIALS = 1 / 3
"""A model that explains less of shapes it has not seen, or comes to their fastest tiles later, orders nothing."""

LEAST_SHAPES = 3
"""With fewer shapes there is nothing to judge by."""

_LEAST_TILES = 8
"""A shape with fewer timings cannot rank tiles."""

_TILES_A_STEP = 256
"""Tiles whose times are predicted in a few milliseconds."""

_RIDGE = 3e-2


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
    def is_judged(self) -> bool:
        """Whether there are shapes enough to judge by."""
        return self.shapes >= LEAST_SHAPES

    @property
    def is_trusted(self) -> bool:
        """Whether candidates are tried in the predicted order."""
        return self.is_judged and self.r2 >= LEAST_R2 and self.trials <= MOST_TRIALS

    @property
    def phrase(self) -> str:
        """In short, for a window."""
        return f"R² {self.r2:.2f}, mean error {self.mean_error:.0%} on shapes left out"

    @property
    def sentence(self) -> str:
        """For the terminal."""
        if not self.is_judged:
            return f"Prediction from {self.timings} timings of {self.shapes} shapes: too few to judge."
        use = "candidates are tried in the predicted order" if self.is_trusted else "too little to order candidates by"
        return (
            f"Prediction from {self.timings} timings of {self.shapes} shapes, judged on shapes left out: "
            f"R² {self.r2:.2f}, mean error {self.mean_error:.0%}, the fastest tile after {self.trials:.0%} of the "
            f"trials; {use}."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The timings of one shape as the regression has them: rows and logarithms less their means, and sums of products.

    Every shape counts the same, so sums are divided by the number of its timings.
    """

    times: Mapping[ConvTile, float]
    rows: NDArray[np.float64]
    logs: NDArray[np.float64]
    gram: NDArray[np.float64]
    moment: NDArray[np.float64]


class Prediction:
    """A model of the times of tiles on one GPU.

    Parameters
    ----------
    timings
        What it is fit on; shapes with few timings are left out.
    multiprocessors
        Of the GPU.
    earlier
        A prediction from fewer timings of the same GPU, whose work is used again.
    """

    def __init__(self, timings: Timings, multiprocessors: int, earlier: Prediction | None = None) -> None:
        self._multiprocessors = multiprocessors
        before: Mapping[ConvShape, _Known] = {} if earlier is None else earlier._known
        self._known: dict[ConvShape, _Known] = {
            shape: before[shape] if shape in before and before[shape].times == times else self._read(shape, times)
            for shape, times in timings.items()
            if len(times) >= _LEAST_TILES
        }
        gram = sum((known.gram for known in self._known.values()), np.zeros(()))
        moment = sum((known.moment for known in self._known.values()), np.zeros(()))
        self.quality = self._judged(gram, moment)
        self._weights = _solved(gram, moment) if self.quality.is_trusted else None

    def ordered(self, shape: ConvShape, candidates: Iterable[ConvTile]) -> tuple[ConvTile, ...]:
        """Return candidates, those with the shortest predicted time first; as they came if the model is not trusted."""
        steps = self.ordering_steps(shape, tuple(candidates))
        while True:
            try:
                next(steps)
            except StopIteration as end:
                tiles: tuple[ConvTile, ...] = end.value
                return tiles

    def ordering_steps(
        self, shape: ConvShape, tiles: tuple[ConvTile, ...]
    ) -> Generator[None, None, tuple[ConvTile, ...]]:
        """Return what `ordered` returns, in bounded steps."""
        if self._weights is None or not tiles:
            return tiles
        predicted: list[NDArray[np.float64]] = []
        for first in range(0, len(tiles), _TILES_A_STEP):
            predicted.append(self._features(shape, tiles[first : first + _TILES_A_STEP]) @ self._weights)
            yield
        return tuple(tiles[place] for place in np.argsort(np.concatenate(predicted), kind="stable"))

    def ratio(self, shape: ConvShape, tile: ConvTile, to: ConvTile) -> float | None:
        """Return the predicted time of a tile, divided by that of another one; None if the model is not trusted."""
        if self._weights is None:
            return None
        one, other = self._features(shape, (tile, to)) @ self._weights
        return math.exp(float(one - other))

    def _read(self, shape: ConvShape, times: Mapping[ConvTile, float]) -> _Known:
        rows = self._features(shape, tuple(times))
        logs = np.log(np.array(list(times.values())))
        rows, logs = rows - rows.mean(axis=0), logs - logs.mean()
        return _Known(dict(times), rows, logs, rows.T @ rows / len(logs), rows.T @ logs / len(logs))

    def _judged(self, gram: NDArray[np.float64], moment: NDArray[np.float64]) -> PredictionQuality:
        """Judge by each shape in turn, predicted from the sums of all without its own."""
        count = sum(len(known.logs) for known in self._known.values())
        if len(self._known) < LEAST_SHAPES:
            return PredictionQuality(len(self._known), count, 0.0, math.inf, 1.0)
        left, all_of_it = 0.0, 0.0
        errors: list[NDArray[np.float64]] = []
        trials: list[float] = []
        for known in self._known.values():
            predicted = known.rows @ _solved(gram - known.gram, moment - known.moment)
            measured = known.logs
            difference = predicted - measured  # both of them less their means
            left += float(np.square(difference).sum())
            all_of_it += float(np.square(measured).sum())
            errors.append(np.abs(np.expm1(difference - np.median(difference))))
            place = int(np.flatnonzero(np.argsort(predicted, kind="stable") == int(measured.argmin()))[0])
            trials.append((place + 1) / len(measured))
        r2 = 1.0 - left / all_of_it if all_of_it > 0.0 else 0.0
        error = float(np.concatenate(errors).mean())
        return PredictionQuality(len(self._known), count, r2, error, float(np.mean(trials)))

    def _features(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> NDArray[np.float64]:
        """Return a row a tile: features and their products in pairs."""
        single = np.array([_traits(shape, tile, self._multiprocessors) for tile in tiles], np.float64)
        first, second = np.triu_indices(single.shape[1])
        return np.concatenate([single, single[:, first] * single[:, second]], axis=1)


def _solved(gram: NDArray[np.float64], moment: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of the ridge regression with these sums of products."""
    return np.asarray(np.linalg.solve(gram + _RIDGE * np.eye(len(gram)), moment), np.float64)


def _traits(shape: ConvShape, tile: ConvTile, multiprocessors: int) -> tuple[float, ...]:
    """Return logarithms to the base 2, scaled to about 1, of what decides the time of a kernel."""
    geometry = ConvGeometry(shape, tile)
    rounds = math.ceil(geometry.blocks / (multiprocessors * tile.min_blocks))
    sums = shape.cin * shape.kernel**2 / tile.split_k * (shape.itemsize / 2)  # in products of fp16
    outputs = tile.rows * tile.columns * tile.channels * tile.row_tiles
    reads = sums * (tile.rows * tile.columns * tile.row_tiles + tile.channels)
    counts = (
        rounds,
        rounds * tile.min_blocks * outputs * sums,  # products that the busiest multiprocessor computes
        rounds * tile.min_blocks * reads,  # and values that it reads
        tile.threads,
        tile.channels,
        tile.rows * tile.columns,
        tile.depth * shape.itemsize / 2,
        tile.stages,
        tile.split_k,
        tile.row_tiles,
        tile.min_blocks,
        tile.warps_n,
    )
    is_wgmma, keeps_weights = float(tile.mma == "wgmma"), float(tile.weights_in_smem)
    return (*(math.log2(count) / 8.0 for count in counts), is_wgmma, keeps_weights)
