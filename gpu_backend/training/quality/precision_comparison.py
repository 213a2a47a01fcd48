"""A model's Frechet distance from real pictures in several precisions, with the same latents and real pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.training.quality.frechet import Gaussian, frechet_distance, gaussian_of

_GROUPS = 10
"""Groups of latents for the jackknife."""


@dataclass(frozen=True, slots=True)
class PrecisionRow:
    """The distance in one precision.

    Attributes
    ----------
    frechet
        Distance of its pictures from the real ones.
    change, deviation
        Relative to the first precision, and the standard deviation of this over latents by the jackknife; None for
        the first.
    from_first
        Frechet distance between its pictures and those of the first precision.
    """

    precision: str
    frechet: float
    change: float | None = None
    deviation: float | None = None
    from_first: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON-able data."""
        return asdict(self)


def compare_precisions(real: Gaussian, features: Sequence[tuple[str, NDArray[np.float64]]]) -> list[PrecisionRow]:
    """Compare features (n, d) of the same latents in several precisions, each with its name, with the first of them."""
    (first, exact), *others = features
    own = frechet_distance(real, gaussian_of(exact))
    kept = _leave_one_out(real, exact)
    rows = [PrecisionRow(first, own)]
    for name, found in others:
        frechet = frechet_distance(real, gaussian_of(found))
        changes = _leave_one_out(real, found) / kept - 1.0
        deviation = np.sqrt((len(changes) - 1) / len(changes) * ((changes - changes.mean()) ** 2).sum())
        apart = frechet_distance(gaussian_of(exact), gaussian_of(found))
        rows.append(PrecisionRow(name, frechet, frechet / own - 1.0, float(deviation), apart))
    return rows


def _leave_one_out(real: Gaussian, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance without each group of latents, (groups,)."""
    groups = np.arange(len(features)) % _GROUPS
    return np.array([frechet_distance(real, gaussian_of(features[groups != group])) for group in range(_GROUPS)])


def precision_table(rows: Sequence[PrecisionRow]) -> list[str]:
    """Return rows as lines of text."""
    first = rows[0].precision
    lines = [f"{'':<10}{'Frechet':>10}{f'beside {first}':>16}{'deviation':>12}{f'from {first}':>14}"]
    for row in rows:
        line = f"{row.precision:<10}{row.frechet:>10.4f}"
        if row.change is not None and row.deviation is not None and row.from_first is not None:
            line += f"{100 * row.change:>+14.2f} %{100 * row.deviation:>10.2f} %{row.from_first:>14.5f}"
        lines.append(line)
    return lines
