"""Flattening: rewrites a latent with nested mix sources as one whose sources have no sources.

In each row, a latent is a weighted sum of mapped points plus a sum of directions (`gpu_backend.recipe` has the
formula), and truncation acts on every point equally. A mix source of strength s that is itself a mix of a point b and a
source c of strength t adds::

    row + s * (b + t * (c - b) - row)  =  (1 - s) * row + s * (1 - t) * b + s * t * c

so its points can be listed side by side. With weights c_1 .. c_k in a row, sources applied in this order need the
strengths::

    a_j = c_j / (1 - sum_{l > j} c_l)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from gpu_backend.lazy_names import LazyModule
from gpu_backend.recipe import Arc, DirectionAmount, Latent, MixSource, Point, RowRange, StoredLatent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Rows = NDArray[np.float64]
else:
    np = LazyModule("numpy")

_NEGLIGIBLE = 1e-8
"""Points with a weight below this in all rows are dropped: w has a 24-bit significand."""

_Term = tuple[Point | Arc | StoredLatent, tuple[tuple[int, float], ...]]
"""A point and its classes."""

_Push = tuple[str, bool]
"""A direction, and whether it keeps within its own rows."""

_Key = TypeVar("_Key", bound=Hashable)


def flat_latent(latent: Latent) -> Latent:
    """Return a latent that gives the same rows, whose mix sources hold neither mix sources nor directions.

    Sources of strength 0 in all rows, and points of negligible weight, are dropped. Equal points become one source,
    so the result never has more sources than the latent has different points. Rows agree within rounding; a latent
    that is already flat is returned unchanged, but without its unused sources.
    """
    used = tuple(source for source in latent.mix if any(source.strengths))
    if not any(source.latent.mix or source.latent.directions for source in used):
        return latent if len(used) == len(latent.mix) else replace(latent, mix=used)
    count = _row_count(latent)
    weights, pushes = _sums(replace(latent, directions=()), count)
    base = (latent.point, latent.classes)
    terms = [(term, rows) for term, rows in weights.items() if term != base and rows.max(initial=0.0) > _NEGLIGIBLE]
    mix = []
    rest = np.ones(count)
    for (point, classes), rows in reversed(terms):
        strengths = np.divide(rows, rest, out=np.zeros(count), where=rest > 1e-12).clip(0.0, 1.0)
        mix.append(MixSource(Latent(point, classes), tuple(strengths.tolist())))
        rest = rest - rows
    pushed = [item for push, rows in pushes.items() for item in _runs(push, rows)]
    return Latent(latent.point, latent.classes, tuple(reversed(mix)), (*pushed, *latent.directions))


def _row_count(latent: Latent) -> int:
    """Return the number of rows that the mix sources affect."""
    return max((max(len(item.strengths), _row_count(item.latent)) for item in latent.mix), default=0)


def _sums(latent: Latent, count: int) -> tuple[dict[_Term, _Rows], dict[_Push, _Rows]]:
    """Return the weight of every point and the amount of every direction in the first `count` rows, (count,) each."""
    weights: dict[_Term, _Rows] = {(latent.point, latent.classes): np.ones(count)}
    pushes: dict[_Push, _Rows] = {}
    for source in latent.mix:
        if not any(source.strengths):
            continue
        strengths = np.zeros(count)
        strengths[: len(source.strengths)] = source.strengths
        strengths.clip(0.0, 1.0, out=strengths)
        source_weights, source_pushes = _sums(source.latent, count)
        _lay_over(weights, source_weights, strengths)
        _lay_over(pushes, source_pushes, strengths)
    for item in latent.directions:
        last = count if item.rows.last is None else item.rows.last + 1
        amounts = np.zeros(count)
        amounts[item.rows.first : last] = item.amount
        push = (item.name, item.within_own)
        pushes[push] = pushes[push] + amounts if push in pushes else amounts
    return weights, pushes


def _lay_over(rows: dict[_Key, _Rows], source: dict[_Key, _Rows], strengths: _Rows) -> None:
    for key in rows:
        rows[key] = rows[key] * (1.0 - strengths)
    for key, added in source.items():
        rows[key] = rows[key] + strengths * added if key in rows else strengths * added


def _runs(push: _Push, amounts: _Rows) -> list[DirectionAmount]:
    """Return a direction as one item for each range of rows with equal nonzero amounts."""
    name, within_own = push
    items = []
    edges = [0, *(np.flatnonzero(np.diff(amounts)) + 1).tolist(), len(amounts)]
    for first, end in pairwise(edges):
        if first < end and amounts[first] != 0.0:
            items.append(DirectionAmount(name, float(amounts[first]), RowRange(first, end - 1), within_own))
    return items
