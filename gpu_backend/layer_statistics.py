"""What the layers of a network give, in four numbers each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LayerStatistics:
    """Output of one layer over all pictures, channels and pixels.

    Attributes
    ----------
    mean, std, max
        `std` is the population's; `max` is the largest value, sign and all. Of a layer that holds infinity or NaN they
        are not finite either.
    shape
        (pictures, channels, height, width).
    """

    mean: float
    std: float
    max: float
    shape: tuple[int, int, int, int]


def gather_statistics(pictures: Iterable[Mapping[str, NDArray[np.float32]]]) -> dict[str, LayerStatistics]:
    """Return the statistics of each layer over several pictures.

    Parameters
    ----------
    pictures
        For each picture: layer name -> (1, channels, height, width), in execution order.
    """
    moments: dict[str, list[tuple[float, float, float]]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for layers in pictures:
        for name, values in layers.items():
            wide = values.astype(np.float64)
            with np.errstate(invalid="ignore"):  # infinity of both signs has no mean: NaN says so
                numbers = float(wide.mean()), float(np.square(wide).mean()), float(wide.max())
            moments.setdefault(name, []).append(numbers)
            shapes[name] = values.shape[1:]
    return {name: _summed_up(numbers, shapes[name]) for name, numbers in moments.items()}


def _summed_up(moments: list[tuple[float, float, float]], shape: tuple[int, ...]) -> LayerStatistics:
    means, squares, maxima = (np.array(column) for column in zip(*moments, strict=True))
    channels, height, width = shape
    with np.errstate(invalid="ignore"):
        mean = means.mean()
        std = np.sqrt(np.maximum(squares.mean() - mean**2, 0.0))  # rounding may take it below 0; NaN stays
    return LayerStatistics(float(mean), float(std), float(maxima.max()), (len(moments), channels, height, width))
