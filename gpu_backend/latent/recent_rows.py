"""Rows of recipes that were rendered lately: a path blends the same few recipes in every frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_backend.latent.mapped import MappedAnchors
from gpu_backend.latent.rows import Anchor, Blend, LatentSpace, Mapped, anchors_of, blend_rows, recipe_rows, sum_rows
from gpu_backend.limits import MAX_RECIPE_SEEDS
from gpu_backend.recipe import Recipe

CAPACITY = 32
"""Recipes; the rows of one take 74 kB at most for 18 rows of 512 numbers."""


class _Kept(NamedTuple):
    recipe: Recipe
    """Held so that no other object gets its identity."""
    rows: NDArray[np.float64]
    """(num_ws, w_dim), or (1, w_dim) if all are the same; never written to."""
    anchor_count: int


class RecentRows:
    """Rows of blends. Those of single recipes are kept in float64, so that a repeated one costs a multiplication.

    Recipes are distinguished by identity: comparing them by value would cost as much as computing the rows again, and a
    path blends the same objects.

    Parameters
    ----------
    mapped
        Maps what is not kept.
    """

    def __init__(self, space: LatentSpace, mapped: MappedAnchors) -> None:
        self._space = space
        self._mapped = mapped
        self._kept: dict[int, _Kept] = {}
        """By the identity of the recipe, the oldest first."""

    @property
    def nbytes(self) -> int:
        """Memory of the rows that are kept, in bytes."""
        return sum(item.rows.nbytes for item in self._kept.values())

    def rows_of(self, blend: Blend) -> NDArray[np.float32]:
        """Return the rows of a blend, (num_ws, w_dim); the same as `blend_rows`, bit for bit. Raises RequestError."""
        if len(blend) > CAPACITY:
            return blend_rows(blend, self._space, self._mapped.fetch(anchors_of(blend)))
        return sum_rows(self._parts(blend), self._space)

    def clear(self) -> None:
        """Forget all rows."""
        self._kept.clear()

    def _parts(self, blend: Blend) -> Iterator[tuple[NDArray[np.float64], float]]:
        """Return rows and weight of each recipe."""
        kept = [item for recipe, _ in blend if (item := self._kept.get(id(recipe))) is not None]
        if len(kept) < len(blend):
            anchors = anchors_of(blend)
            mapped = self._mapped.fetch(anchors)
            if len(blend) == 1:
                kept = [self._keep(blend[0][0], mapped, anchors)]
            else:
                kept = [
                    self._kept.get(id(recipe)) or self._keep(recipe, mapped, anchors_of(((recipe, 1.0),)))
                    for recipe, _ in blend
                ]
            while len(self._kept) > CAPACITY:
                del self._kept[next(iter(self._kept))]
        elif sum(item.anchor_count for item in kept) > MAX_RECIPE_SEEDS:
            anchors_of(blend)  # refuses too many different ones
        for item, (_, weight) in zip(kept, blend, strict=True):
            yield item.rows, weight

    def _keep(self, recipe: Recipe, mapped: Mapped, anchors: tuple[Anchor, ...]) -> _Kept:
        item = _Kept(recipe, recipe_rows(recipe, self._space, mapped), len(anchors))
        self._kept[id(recipe)] = item
        return item
