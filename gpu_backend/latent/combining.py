"""Combining: the weighted sum of several latents, row by row, as one latent without nested sources.

In each row, a latent is a weighted sum of mapped points plus a sum of directions (see `flattening`), so a weighted
sum of latents is one too::

    sum_k c_k * (sum_j a_kj * point_j + d_k)  =  sum_j (sum_k c_k * a_kj) * point_j  +  sum_k c_k * d_k

Rows that all parts treat alike have the same sum, which is computed once: most cells of a grid have one or two kinds of
rows. Seeds that are blended in w are merged into one point, also across latents, so that combining again and again (a
variation of a variation, a child of children) does not let recipes grow without bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NoReturn

from gpu_backend.errors import RequestError
from gpu_backend.recipe import Arc, DirectionAmount, Latent, MixSource, Point, RowRange, StoredLatent

NEGLIGIBLE_SHARE = 1e-5
"""Seeds below this weight are dropped from a merged point: in w that is far less than a step of a byte."""

_Classes = tuple[tuple[int, float], ...]

_Atom = tuple[int | Point | Arc | StoredLatent, _Classes]
"""A seed in w, or another point, with its classes."""

_Push = tuple[str, bool]
"""A direction, and whether it keeps within its own rows."""

_Layer = tuple[Point | Arc | StoredLatent, _Classes]
"""A point of the result, with its classes."""


def combined_latent(parts: Sequence[tuple[Latent, Sequence[float]]]) -> Latent:
    """Return the latent whose row i is the sum of weight[i] times row i of each part.

    All recipes that use it must have one truncation.

    Parameters
    ----------
    parts
        (latent, weights) pairs; `weights` has one number a row of w. In each row the weights sum to one.

    Returns
    -------
    A latent whose mix sources hold neither sources nor directions, with the classes of the first part. Its rows agree
    with the sum to about 1e-5 of the distance between seeds.

    Raises
    ------
    RequestError
        If there is no part or no row, or the sum cannot be written with strengths of 0..1: a point other than seeds in
        w, or all seeds of some classes, with a negative weight.
    """
    if not parts or not parts[0][1]:
        raise RequestError("A combination needs at least one latent, and weights for its rows, but has none.")
    count = len(parts[0][1])
    alike: dict[tuple[float, ...], list[int]] = {}
    for row in range(count):
        kind = tuple(number for latent, weights in parts for number in (weights[row], *_strengths_at(latent, row)))
        alike.setdefault(kind, []).append(row)
    layers: dict[_Layer, list[float]] = {}
    for rows in alike.values():
        atoms: dict[_Atom, float] = {}
        for latent, weights in parts:
            _add_atoms(atoms, latent, weights[rows[0]], rows[0])
        for layer, weight in _row_layers(atoms):
            whole = layers.setdefault(layer, [0.0] * count)
            for row in rows:
                whole[row] += weight
    return _latent_of(layers, _directions(parts, count), parts[0][0].classes, count)


def _strengths_at(latent: Latent, row: int) -> Iterator[float]:
    """Yield the strength in a row of every source of a latent, nested ones too."""
    for source in latent.mix:
        yield source.strengths[row] if row < len(source.strengths) else 0.0
        yield from _strengths_at(source.latent, row)


def _add_atoms(atoms: dict[_Atom, float], latent: Latent, weight: float, row: int) -> None:
    """Add a latent's points in one row, times a weight."""
    for source in reversed(latent.mix):
        strength = min(max(source.strengths[row], 0.0), 1.0) if row < len(source.strengths) else 0.0
        if strength:
            _add_atoms(atoms, source.latent, weight * strength, row)
            weight *= 1.0 - strength
    if not weight:
        return
    if isinstance(latent.point, Point) and latent.point.space == "w":
        for seed, share in latent.point.seeds:
            key = (seed, latent.classes)
            atoms[key] = atoms.get(key, 0.0) + weight * share
    else:
        point = (latent.point, latent.classes)
        atoms[point] = atoms.get(point, 0.0) + weight


def _row_layers(atoms: dict[_Atom, float]) -> Iterator[tuple[_Layer, float]]:
    """Yield the points of one row and their weights; seeds in w with the same classes are one point."""
    seeds_of: dict[_Classes, dict[int, float]] = {}
    for (point, classes), weight in atoms.items():
        if isinstance(point, int):
            seeds_of.setdefault(classes, {})[point] = weight
        elif weight < -NEGLIGIBLE_SHARE:
            raise RequestError("A stored latent, or a point in z, cannot be subtracted in a recipe.")
        else:
            yield (point, classes), weight
    for classes, seeds in seeds_of.items():
        total = sum(seeds.values())
        kept = {seed: weight for seed, weight in seeds.items() if abs(weight) >= NEGLIGIBLE_SHARE}
        if kept and total < NEGLIGIBLE_SHARE:
            _refuse_cancelling()
        if kept:
            scale = 1.0 / sum(kept.values())
            shares = tuple((seed, round(weight * scale, 12)) for seed, weight in sorted(kept.items()))
            yield (Point(shares), classes), total


def _refuse_cancelling() -> NoReturn:
    raise RequestError("Weights of latents must not cancel each other: their difference is a direction, not a latent.")


def _directions(parts: Sequence[tuple[Latent, Sequence[float]]], count: int) -> tuple[DirectionAmount, ...]:
    """Return the weighted sum of the directions of all parts, one item for each run of rows with equal amounts."""
    amounts: dict[_Push, list[float]] = {}
    for latent, weights in parts:
        _add_directions(amounts, latent, weights)
    items = []
    for (name, within_own), pushed in amounts.items():
        first = 0
        for amount, run in groupby(pushed):
            end = first + len(list(run))
            if amount:
                rows = RowRange(first, None if end == count else end - 1)
                items.append(DirectionAmount(name, amount, rows, within_own))
            first = end
    return tuple(items)


def _add_directions(amounts: dict[_Push, list[float]], latent: Latent, weights: Sequence[float]) -> None:
    rest = list(weights)
    for item in latent.directions:
        pushed = amounts.setdefault((item.name, item.within_own), [0.0] * len(rest))
        end = len(rest) if item.rows.last is None else min(item.rows.last + 1, len(rest))
        for row in range(item.rows.first, end):
            pushed[row] += item.amount * rest[row]
    for source in reversed(latent.mix):
        strengths = (*source.strengths[: len(rest)], *(0.0,) * (len(rest) - len(source.strengths)))
        _add_directions(amounts, source.latent, [a * b for a, b in zip(rest, strengths, strict=True)])
        rest = [a * (1.0 - b) for a, b in zip(rest, strengths, strict=True)]


def _latent_of(
    layers: dict[_Layer, list[float]], directions: tuple[DirectionAmount, ...], classes: _Classes, count: int
) -> Latent:
    """Return the latent with these points; those that follow the base are mix sources, as in `flat_latent`."""
    base = max(layers, key=lambda layer: (layer[1] == classes, sum(layers[layer])))
    mix = []
    rest = [1.0] * count
    for (point, own), rows in reversed([item for item in layers.items() if item[0] != base]):
        strengths = (weight / left if left > 1e-9 else 0.0 for weight, left in zip(rows, rest, strict=True))
        mix.append(MixSource(Latent(point, own), tuple(round(min(max(value, 0.0), 1.0), 12) for value in strengths)))
        rest = [left - weight for left, weight in zip(rest, rows, strict=True)]
    return Latent(base[0], base[1], tuple(reversed(mix)), directions)
