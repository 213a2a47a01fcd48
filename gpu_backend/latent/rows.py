"""Recipe -> rows of w.

`gpu_backend.recipe` has the formula. Inputs of the mapping network are listed first, as anchors, so that a caller can
cache mapped anchors: moves on the seed plane, sliders and mixes rarely need a new one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.latent.classes import class_label
from gpu_backend.latent.directions import Directions, add_direction, covers_all_rows
from gpu_backend.latent.mixing import mix_rows
from gpu_backend.latent.slerp import slerp_weights
from gpu_backend.latent.truncation import check_truncation, label_averages, refuse_average
from gpu_backend.limits import MAX_MIX_DEPTH, MAX_RECIPE_SEEDS
from gpu_backend.recipe import Arc, Latent, Point, Recipe, Space, StoredLatent, Truncation

Blend = Sequence[tuple[Recipe, float]]
"""(recipe, weight) pairs, summed in w."""


Classes = tuple[tuple[int, float], ...]
"""(class, weight) pairs."""

_FEW_SEEDS = 16
_AVERAGES = 256
"""Capacity of the cache of averages."""

_SPACES: tuple[str, ...] = get_args(Space)


class Anchor(NamedTuple):
    """One input of the mapping network: z is the weighted sum of the seeds' z, the label that of the classes."""

    seeds: tuple[tuple[int, float], ...]
    classes: Classes


class Mapped(dict[Anchor, NDArray[np.float32]]):
    """Anchors and their w, (w_dim,), before truncation."""

    def __init__(self, found: Mapping[Anchor, NDArray[np.float32]]) -> None:
        super().__init__(found)
        self._anchors: tuple[Anchor, ...] = ()
        self._stacked: NDArray[np.float32] | None = None

    def stacked(self, anchors: tuple[Anchor, ...]) -> NDArray[np.float32]:
        """Return the w of anchors, (count, w_dim), not to be written to; those of the last call are kept."""
        if self._stacked is None or anchors is not self._anchors:
            self._anchors, self._stacked = anchors, np.array([self[anchor] for anchor in anchors])
        return self._stacked


class LatentSpace:
    """Properties of a network that determine rows: their number, the averages of w, and the directions.

    Parameters
    ----------
    w_avg
        (w_dim,), or (c_dim, w_dim) with one for each class.
    """

    def __init__(self, num_ws: int, w_avg: NDArray[np.float32], directions: Directions) -> None:
        self.num_ws = num_ws
        self.w_avg = w_avg
        self.w_dim = w_avg.shape[-1]
        self.directions = directions
        self._averages: dict[Classes, NDArray[np.float64]] = {}

    def average_of(self, classes: Classes) -> NDArray[np.float64]:
        """Return the centre of truncation for these classes, (w_dim,). Raises RequestError if it is not finite."""
        key = classes if self.w_avg.ndim == 2 else ()
        average = self._averages.get(key)
        if average is None:
            label = class_label(key, self.w_avg.shape[0] if self.w_avg.ndim == 2 else 0)
            average = label_averages(self.w_avg, label[None])[0]
            if not np.isfinite(average).all():
                refuse_average()
            if len(self._averages) >= _AVERAGES:
                self._averages.clear()
            self._averages[key] = average
        return average


def anchors_of(blend: Blend) -> tuple[Anchor, ...]:
    """Return the distinct anchors of a blend, in order of first use. Raises RequestError."""
    if len(blend) == 1 and type(blend[0][0].latent.point) is Point and not blend[0][0].latent.mix:
        # A plane drag has the same seeds in frame after frame: the same tuple, which `MappedAnchors` recognises.
        listed = _weighted_anchors(blend[0][0].latent, blend[0][0].latent.point)[0]
        if len(listed) <= MAX_RECIPE_SEEDS and len(set(listed)) == len(listed):
            return listed
    anchors: dict[Anchor, None] = {}
    for recipe, _ in blend:
        _add_anchors(anchors, recipe.latent, 0)
    if len(anchors) > MAX_RECIPE_SEEDS:
        raise RequestError(f"A picture may have {MAX_RECIPE_SEEDS:,} seeds in all, but this one has {len(anchors):,}.")
    return tuple(anchors)


def blend_rows(blend: Blend, space: LatentSpace, mapped: Mapped) -> NDArray[np.float32]:
    """Return the rows of w of a blend of recipes.

    Parameters
    ----------
    blend
        At least one (recipe, weight) pair.
    space
        Properties of the network.
    mapped
        Every anchor of `anchors_of(blend)` -> its w, (w_dim,) float32, before truncation.

    Returns
    -------
    (num_ws, w_dim) float32. Sums run in float64 and are rounded once.

    Raises
    ------
    RequestError
        If a recipe does not fit the network, or contains a number that is not finite.
    """
    return sum_rows(((recipe_rows(recipe, space, mapped), weight) for recipe, weight in blend), space)


def recipe_rows(recipe: Recipe, space: LatentSpace, mapped: Mapped) -> NDArray[np.float64]:
    """Return the rows of w of one recipe, (num_ws, w_dim), or (1, w_dim) if all are the same. Raises RequestError.

    Call it while `sum_rows` reads its parts: NumPy does not warn of overflow there, which is refused afterwards.
    """
    return _latent_rows(recipe.latent, recipe.truncation, space, mapped)


def sum_rows(parts: Iterable[tuple[NDArray[np.float64], float]], space: LatentSpace) -> NDArray[np.float32]:
    """Return the weighted sum of rows of recipes, at least one: (num_ws, w_dim) float32. Raises RequestError."""
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
        total: NDArray[np.float64] | None = None
        for part, weight in parts:
            _check_weight(weight)
            rows = part if weight == 1.0 else weight * part
            total = rows if total is None else total + rows
        if total is None:
            raise RequestError("A request must hold at least one recipe, but its blend is empty.")
        rounded = total.astype(np.float32)
        # The product takes less time, and is finite unless a number is not, or some are huge.
        is_finite = math.isfinite(np.vdot(rounded, rounded)) or np.isfinite(rounded).all()
    if not is_finite:
        raise RequestError("The recipe's weights and amounts must keep w finite, but they are too large together.")
    if rounded.shape[0] == space.num_ws:
        return rounded
    repeated = np.empty((space.num_ws, space.w_dim), np.float32)
    repeated[...] = rounded
    return repeated


def _latent_rows(latent: Latent, truncation: Truncation, space: LatentSpace, mapped: Mapped) -> NDArray[np.float64]:
    """Return (num_ws, w_dim), or (1, w_dim) while all rows are the same."""
    if isinstance(latent.point, StoredLatent):
        rows = _stored_rows(latent.point, space)
    else:
        if isinstance(latent.point, Arc):
            base = _arc_row(latent, latent.point, space, mapped)
        else:
            base = _point_row(latent, latent.point, mapped)
        rows = _truncated(base[None], latent.classes, truncation, space)
    # One row represents all while they are equal: a push along directions of all rows then costs 1 row, not num_ws.
    has_own_rows = bool(latent.mix) or not all(
        covers_all_rows(item, space.directions, space.num_ws) for item in latent.directions
    )
    if has_own_rows and rows.shape[0] < space.num_ws:
        rows, row = np.empty((space.num_ws, space.w_dim)), rows
        rows[...] = row
    for source in latent.mix:
        mix_rows(rows, _latent_rows(source.latent, truncation, space, mapped), source.strengths)
    for item in latent.directions:
        add_direction(rows, item, space.directions, space.num_ws)
    return rows


def _point_row(latent: Latent, point: Point, mapped: Mapped) -> NDArray[np.float64]:
    """Return the w of a point, (w_dim,): products in float32, summed in float64 in the order of the seeds."""
    anchors, weights = _weighted_anchors(latent, point)
    stacked = mapped.stacked(anchors)
    products = stacked * np.array(weights, stacked.dtype)[:, None]
    row: NDArray[np.float64] = np.add.reduce(products, axis=0, dtype=np.float64, initial=0.0)
    return row


def _arc_row(latent: Latent, arc: Arc, space: LatentSpace, mapped: Mapped) -> NDArray[np.float64]:
    """Return the w of a point on an arc around the average, (w_dim,); a model without an average has 0."""
    _check_weight(arc.fraction)
    centre = space.average_of(latent.classes) if np.isfinite(space.w_avg).all() else np.zeros(space.w_dim)
    first, second = (_point_row(latent, point, mapped) - centre for point in (arc.first, arc.second))
    lengths = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    cosine = float(first @ second) / (lengths[0] * lengths[1]) if all(lengths) else 1.0
    weights = slerp_weights(arc.fraction, math.acos(min(max(cosine, -1.0), 1.0)), *lengths)
    moved: NDArray[np.float64] = centre + weights[0] * first + weights[1] * second
    return moved


def _truncated(
    row: NDArray[np.float64], classes: Classes, truncation: Truncation, space: LatentSpace
) -> NDArray[np.float64]:
    """Truncate a row (1, w_dim) that is the same everywhere; the result has one row if the cutoff spans all rows."""
    psi, cutoff = truncation.psi, truncation.cutoff
    check_truncation(psi, cutoff, space.num_ws)
    if psi == 1.0 or cutoff == 0:
        return row
    average = space.average_of(classes)
    moved = row - average
    moved *= psi
    moved += average
    if cutoff is None or cutoff == space.num_ws:
        return moved
    rows = np.empty((space.num_ws, average.shape[0]))
    rows[:cutoff] = moved
    rows[cutoff:] = row
    return rows


def _add_anchors(anchors: dict[Anchor, None], latent: Latent, depth: int) -> None:
    if depth > MAX_MIX_DEPTH:
        raise RequestError(f"Mix sources may be nested {MAX_MIX_DEPTH} deep, but these are nested deeper.")
    if not isinstance(latent.point, StoredLatent):
        points = (latent.point.first, latent.point.second) if isinstance(latent.point, Arc) else (latent.point,)
        for point in points:
            anchors.update(dict.fromkeys(_weighted_anchors(latent, point)[0]))
    for source in latent.mix:
        _add_anchors(anchors, source.latent, depth + 1)


def _stored_rows(stored: StoredLatent, space: LatentSpace) -> NDArray[np.float64]:
    """Return a stored latent's rows as a new array, (num_ws, w_dim) or (1, w_dim). Raises RequestError."""
    if stored.w_dim != space.w_dim or stored.num_ws not in (1, space.num_ws):
        raise RequestError(
            f"This model's w has {space.num_ws} rows of {space.w_dim} numbers, but the stored latent has "
            f"{stored.num_ws} of {stored.w_dim}; it belongs to another model."
        )
    rows = np.frombuffer(stored.rows, dtype="<f4").astype(np.float64)
    return rows.reshape(stored.num_ws, stored.w_dim)


def _weighted_anchors(latent: Latent, point: Point) -> tuple[tuple[Anchor, ...], tuple[float, ...]]:
    """Return the anchors of a latent's own point and their weights: one for each seed in w, a blended one in z."""
    given: object = point
    if not isinstance(given, Point):
        raise TypeError(f"The point of a latent is a Point, Arc or StoredLatent, not {given!r:.40}.")
    if not point.seeds:
        raise RequestError("A latent's point must hold at least one seed, but holds none.")
    seeds, weights = zip(*point.seeds, strict=True)
    if not all(map(math.isfinite, weights)):
        for weight in weights:
            _check_weight(weight)
    if point.space not in _SPACES:
        raise RequestError(f"The space of a point must be one of {', '.join(_SPACES)}, not {point.space!r}.")
    if point.space == "z":
        return (Anchor(point.seeds, latent.classes),), (1.0,)
    # Few, and all of them int: a cache of more would be large, and takes 1 for 1.0, which is no seed.
    is_usual = len(seeds) <= _FEW_SEEDS and set(map(type, seeds)) == {int}
    return (_kept_anchors if is_usual else _seed_anchors)(seeds, latent.classes), weights


def _seed_anchors(seeds: tuple[int, ...], classes: Classes) -> tuple[Anchor, ...]:
    """Return the anchor of each seed alone."""
    return tuple([Anchor(((seed, 1.0),), classes) for seed in seeds])


_kept_anchors = lru_cache(maxsize=256)(_seed_anchors)
"""The same tuple for the frames of a gesture, which have the same few seeds."""


def _check_weight(weight: float) -> None:
    if not math.isfinite(weight):
        raise RequestError(f"A weight must be a finite number, not {weight}.")
