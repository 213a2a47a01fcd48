"""Statistics of layer outputs, and the spectrum of a channel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gpu_backend.lazy_names import LazyModule
from gpu_backend.quick_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


@dataclass(frozen=True, slots=True)
class LayerStatistics:
    """Output of one layer over all pictures, channels and pixels.

    Attributes
    ----------
    mean, std, max
        `std` is the population's; `max` is the largest signed value. Infinity or NaN in a layer makes them not finite.
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
            with np.errstate(invalid="ignore"):  # infinities of both signs have the mean NaN
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


_LEAST_AMPLITUDE = 1e-8
"""Lower bound of a spectrum: -160 dB."""


def log_spectrum(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the amplitude spectrum of a channel, (height, width) float32 in dB.

    Frequency 0 is at [height // 2, width // 2]. With x the values minus their mean and h a Hann window
    (0.5 - 0.5 cos(2 pi (i + 0.5) / n) on each axis, against leakage from the discontinuity at the borders), the
    spectrum is 20 log10(2 |FFT(h x)| / sum(h)), clamped at -160. A sine of amplitude 1 is at 0 dB. Values that are not
    finite count as 0.
    """
    clean = np.nan_to_num(np.asarray(values, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    rows, columns = (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size) for size in clean.shape)
    window = np.outer(rows, columns).astype(np.float32)
    waves = np.abs(np.fft.fft2(window * (clean - clean.mean()))) * (2.0 / window.sum())
    return np.asarray(20.0 * np.log10(np.maximum(np.fft.fftshift(waves), _LEAST_AMPLITUDE)), np.float32)
