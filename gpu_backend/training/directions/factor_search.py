"""Search for directions that each move one factor: regression first, then verification on pictures.

1. Factors of random latents are regressed on w, and turned into pushes that by the regression move one factor each.
2. On every range of rows it is measured what each push does to every factor in pictures; on each range a combination of
   pushes is taken that moves one factor and, by those measurements, no other.
3. The ranges with the least crosstalk for the least push are swept, and the best is kept.
4. The push is scaled so that 1 moves its factor by one standard deviation, its ends are put where the factor stops
   following, and its effect is measured on latents that were not used before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model import NamedDirections
from gpu_backend.recipe import RowRange
from gpu_backend.training.directions.probe import Effect, Probe, effect_of
from gpu_backend.training.directions.ridge import Regression, combined, pushes, regress
from gpu_backend.training.directions.row_ranges import candidate_ranges
from gpu_backend.training.quality.generated import MapsAndRenders, rows_of_seeds

_AMOUNTS = (-2.0, -1.0, 0.0, 1.0, 2.0)
_ENDS = (1.0, 1.5, 2.0, 3.0, 4.0)
_STILL_FOLLOWS = 0.25
"""A slider ends where a further unit moves its factor by less than this fraction of the first unit's effect."""
_FINAL_STEPS = 9
_TRIED = 6
_CROSSTALK = 0.05
"""Crosstalk below which ranges of rows count as equally good."""
_WIDE = 0.25
"""Cost of using all rows: of equally good ranges, a narrower one changes fewer unnamed attributes."""
_ENOUGH = 10.0
"""Selectivity above which more gives no benefit."""
_LEAST_SLOPE = 0.02
"""Minimum effect, in standard deviations, of a push that should move its factor by one."""


@dataclass(frozen=True, slots=True)
class FactorSearch:
    """Extent of the search.

    Attributes
    ----------
    latents
        Random latents that the regression is fitted to.
    probes
        Latents that ranges are chosen on.
    measured
        Fresh latents that the effect is measured on.
    step
        How far the pushes are tried to either side, in standard deviations.
    """

    latents: int = 4096
    probes: int = 32
    measured: int = 64
    psi: float = 0.7
    seed: int = 0
    step: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class FactorDirection:
    """A direction that moves one factor; `low` and `high` are the ends of its slider."""

    factor: str
    vector: NDArray[np.float64]
    rows: RowRange
    low: float
    high: float
    effect: Effect
    explained: float


def find_factor_directions(
    renderer: MapsAndRenders,
    probe: Probe,
    factors: Sequence[str],
    search: FactorSearch,
    wanted: Sequence[str] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[FactorDirection]:
    """Return a direction for each factor that can be moved.

    Parameters
    ----------
    factors
        Names of what the probe reads, in its order. All of them count as crosstalk.
    wanted
        Factors that get a direction; None means all.
    note
        Called with the progress, and with factors that no direction changes.
    """
    say = note or (lambda text: None)
    seeds = range(search.seed, search.seed + search.latents)
    rows = rows_of_seeds(renderer, seeds, search.psi)
    say(f"Reading the factors of {search.latents} latents")
    regression = regress(rows[:, 0], probe.factors(rows))
    found = pushes(regression)
    probes = rows[: search.probes]
    fresh = rows_of_seeds(renderer, range(seeds.stop, seeds.stop + search.measured), search.psi)
    responses = {}
    for where in candidate_ranges(rows.shape[1]):
        say(f"Trying rows {where.first} to {where.last}")
        responses[where] = probe.responses(probes, found, where, search.step)
    directions = []
    for own, factor in enumerate(factors):
        if wanted is not None and factor not in wanted:
            continue
        say(f"Measuring {factor}")
        chosen = _chosen(probe, probes, found, responses, own)
        if chosen is None:
            say(f"Nothing moves {factor}; it gets no direction")
            continue
        directions.append(_measured(probe, probes, fresh, *chosen, own, factor, regression))
    return directions


def _chosen(
    probe: Probe,
    rows: NDArray[np.float32],
    found: NDArray[np.float64],
    responses: dict[RowRange, NDArray[np.float64]],
    own: int,
) -> tuple[NDArray[np.float64], RowRange] | None:
    """Return the vector (w_dim,) that moves a factor by 1, and its rows; None if there is none."""
    candidates = []
    for where, response in responses.items():
        weights = combined(response, own)
        moves = weights @ response
        if moves[own] <= _LEAST_SLOPE:
            continue
        vector = weights @ found / moves[own]
        others = np.abs(np.delete(moves, own)).max(initial=0.0) / moves[own]
        cost = (others + _CROSSTALK) * float(np.sqrt(np.linalg.norm(vector)))
        candidates.append((cost * _width(where, rows.shape[1]), where, vector))
    candidates.sort(key=lambda item: item[0])
    best: tuple[float, NDArray[np.float64], RowRange] | None = None
    for _, where, vector in candidates[:_TRIED]:
        values = probe.sweep(rows, vector, where, _AMOUNTS)
        slope = float((values[3] - values[1])[:, own].mean()) / 2.0
        if slope <= _LEAST_SLOPE:
            continue
        effect = effect_of(values, _AMOUNTS, own)
        score = max(effect.spearman, 0.0) ** 2 * min(effect.selectivity, _ENOUGH) / _width(where, rows.shape[1])
        if best is None or score > best[0]:
            best = (score, vector / slope, where)
    return None if best is None else best[1:]


def _width(where: RowRange, num_ws: int) -> float:
    """Return the cost factor of a range of rows, at least 1."""
    last = num_ws - 1 if where.last is None else where.last
    return 1.0 + _WIDE * (last - where.first + 1) / num_ws


def _measured(
    probe: Probe,
    rows: NDArray[np.float32],
    fresh: NDArray[np.float32],
    vector: NDArray[np.float64],
    where: RowRange,
    own: int,
    factor: str,
    regression: Regression,
) -> FactorDirection:
    low, high = (_end(probe, rows, vector, where, own, side) for side in (-1.0, 1.0))
    amounts = tuple(float(amount) for amount in np.linspace(low, high, _FINAL_STEPS))
    effect = effect_of(probe.sweep(fresh, vector, where, amounts), amounts, own)
    return FactorDirection(factor, vector, where, low, high, effect, float(regression.explained[own]))


def _end(
    probe: Probe, rows: NDArray[np.float32], vector: NDArray[np.float64], where: RowRange, own: int, side: float
) -> float:
    """Return the largest amount on one side up to which the factor responds."""
    amounts = (0.0, *(side * end for end in _ENDS))
    means = side * probe.sweep(rows, vector, where, amounts)[:, :, own].mean(axis=1)
    first = means[1] - means[0]
    end = _ENDS[0]
    for index in range(1, len(_ENDS)):
        gain = (means[index + 1] - means[index]) / (_ENDS[index] - _ENDS[index - 1])
        if gain < _STILL_FOLLOWS * max(first, _LEAST_SLOPE):
            break
        end = _ENDS[index]
    return side * end


def named(directions: Sequence[FactorDirection], prefix: str) -> NamedDirections:
    """Return directions as they are written into a file, under names of a set: ``world/sun height``."""
    return NamedDirections(
        names=tuple(direction_name(prefix, item.factor) for item in directions),
        vectors=np.stack([item.vector for item in directions]).astype(np.float32),
        rows=tuple(item.rows for item in directions),
        reach=tuple((item.high - item.low) / 2.0 for item in directions),
        centre=tuple((item.high + item.low) / 2.0 for item in directions),
        measures=tuple(_measures(item) for item in directions),
    )


def direction_name(prefix: str, factor: str) -> str:
    """Return the name of a factor's direction: ``world/sun height``."""
    return f"{prefix}/{factor.replace('_', ' ').replace('/', ' ').strip()[:40].rstrip()}"


def _measures(item: FactorDirection) -> dict[str, float]:
    metrics = {
        "spearman": item.effect.spearman,
        "selectivity": item.effect.selectivity,
        "mean selectivity": item.effect.mean_selectivity,
        "shift": item.effect.shift,
        "explained": item.explained,
    }
    return {name: round(value, 4) for name, value in metrics.items() if np.isfinite(value)}
