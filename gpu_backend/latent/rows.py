"""Recipe -> rows of w.

The formula stands in `gpu_backend.recipe`. What needs the mapping network is named first, as anchors, so that a caller
can keep what was mapped: moving along the plane, a slider or a mix needs no new anchor most of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.latent.directions import Directions, add_direction
from gpu_backend.latent.mixing import mix_rows
from gpu_backend.latent.truncation import truncate
from gpu_backend.recipe import MAX_MIX_DEPTH, Latent, Recipe, Truncation

Blend = Sequence[tuple[Recipe, float]]
"""(recipe, weight) pairs, summed in w."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One run of the mapping network: z is the weighted sum of the seeds' z, the label that of the classes."""

    seeds: tuple[tuple[int, float], ...]
    classes: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class LatentSpace:
    """What rows need to know of a network: w_avg (w_dim,), how many rows there are, and its directions."""

    num_ws: int
    w_avg: NDArray[np.float32]
    directions: Directions


def anchors_of(blend: Blend) -> tuple[Anchor, ...]:
    """Return what must be mapped for a blend, each once, in order of first use. Raises RequestError."""
    return tuple(dict.fromkeys(anchor for recipe, _ in blend for anchor in _anchors(recipe.latent, 0)))


def blend_rows(blend: Blend, space: LatentSpace, mapped: Mapping[Anchor, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the rows of w that a blend of recipes stands for.

    Parameters
    ----------
    blend
        At least one (recipe, weight) pair.
    space
        The network's.
    mapped
        Every anchor of `anchors_of(blend)` -> its w, (w_dim,) float32, before truncation.

    Returns
    -------
    (num_ws, w_dim) float32. Sums run in float64 and are rounded once.

    Raises
    ------
    RequestError
        If a recipe asks for what the network does not have or holds a number that is not finite.
    """
    if not blend:
        raise RequestError("A request must hold at least one recipe, but its blend is empty.")
    total = np.zeros((space.num_ws, space.w_avg.shape[0]), dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # what does not stay finite is refused below
        for recipe, weight in blend:
            _check_weight(weight)
            total += weight * _latent_rows(recipe.latent, recipe.truncation, space, mapped)
        rounded = total.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise RequestError("The recipe's weights and amounts must keep w finite, but they are too large together.")
    return rounded


def _latent_rows(
    latent: Latent, truncation: Truncation, space: LatentSpace, mapped: Mapping[Anchor, NDArray[np.float32]]
) -> NDArray[np.float64]:
    base = np.zeros(space.w_avg.shape[0], dtype=np.float64)
    for anchor, weight in _weighted_anchors(latent):
        base += weight * mapped[anchor]
    rows = truncate(np.repeat(base[None], space.num_ws, axis=0), space.w_avg, truncation.psi, truncation.cutoff)
    for source in latent.mix:
        rows = mix_rows(rows, _latent_rows(source.latent, truncation, space, mapped), source.strengths)
    for item in latent.directions:
        add_direction(rows, item, space.directions)
    return rows


def _anchors(latent: Latent, depth: int) -> Iterator[Anchor]:
    if depth > MAX_MIX_DEPTH:
        raise RequestError(f"Mix sources may be nested {MAX_MIX_DEPTH} deep, but these are nested deeper.")
    for anchor, _ in _weighted_anchors(latent):
        yield anchor
    for source in latent.mix:
        yield from _anchors(source.latent, depth + 1)


def _weighted_anchors(latent: Latent) -> tuple[tuple[Anchor, float], ...]:
    """Return what is mapped for a latent's own point: each seed in w, the blended z in z."""
    if not latent.point.seeds:
        raise RequestError("A latent's point must hold at least one seed, but holds none.")
    for _, weight in latent.point.seeds:
        _check_weight(weight)
    if latent.point.space == "z":
        return ((Anchor(latent.point.seeds, latent.classes), 1.0),)
    return tuple((Anchor(((seed, 1.0),), latent.classes), weight) for seed, weight in latent.point.seeds)


def _check_weight(weight: float) -> None:
    if not math.isfinite(weight):
        raise RequestError(f"A weight must be a finite number, but {weight} came.")
