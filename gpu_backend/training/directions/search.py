"""Searches directions in steps, so that a caller can render, show progress or stop between them.

Three ways:

- ``pca``: principal components of w (Harkonen et al. 2020, GANSpace);
- ``sefa``: what the weights of the rows amplify most (Shen and Zhou 2021, SeFa);
- ``examples``: the way from latents that lack something to latents that have it.

With n examples on either side, means m_A and m_B of their w over the rows, and d = m_A - m_B, the direction from
examples is d itself. From 20 on each side it is the normal of a linear classifier, Fisher's discriminant with a
covariance S pooled over both sides and shrunk, which leaves out what merely varies within them::

    v = (S + lambda I)^-1 d,   lambda = trace(S) / w_dim,   scaled so that <v, d> = <d, d>

So an amount of 1 moves from one mean to the other along what distinguishes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.latent.rows import Blend
from gpu_backend.model import Model, NamedDirections
from gpu_backend.recipe import RowRange
from gpu_backend.training.directions.components import pca_directions, sefa_of_rows
from gpu_backend.training.quality.generated import MapsAndRenders, rows_of_seeds

SearchMethod = Literal["pca", "sefa", "examples"]

EXAMPLES = "examples"
"""The set that directions from examples are in."""

_BATCH = 64
_ENOUGH = 20
"""Examples on each side from which on a classifier's normal is better than the difference of means."""

_EXAMPLE_REACH = 2.0


@dataclass(frozen=True, slots=True)
class DirectionSearch:
    """What is looked for.

    Attributes
    ----------
    name
        Of the set for ``pca`` and ``sefa`` ("pca" gives ``pca/0``), of the one direction for ``examples``.
    rows
        The rows of w that the directions are for; ``sefa`` looks only at the weights that these style.
    count
        How many directions, for ``pca`` and ``sefa``.
    latents, seed, psi
        How many seeds ``pca`` maps, the first of them, and their truncation.
    having, lacking
        Examples with what the direction adds, and without it.
    """

    method: SearchMethod
    name: str
    rows: RowRange
    count: int = 16
    latents: int = 4096
    seed: int = 0
    psi: float = 0.7
    having: tuple[Blend, ...] = ()
    lacking: tuple[Blend, ...] = ()


class MapsLatents(MapsAndRenders, Protocol):
    """The part of `gpu_backend.renderer.Renderer` that a search needs."""

    @property
    def model(self) -> Model:
        """The model."""
        ...

    def rows_of(self, blend: Blend) -> NDArray[np.float32]:
        """Return the w rows (num_ws, w_dim) of a blend of recipes."""
        ...


class DirectionFinder:
    """One search under way. Raises RequestError for a search that cannot be done."""

    def __init__(self, search: DirectionSearch) -> None:
        self.search = search
        if search.method == "pca" and search.latents < 10:
            raise RequestError(f"A search needs at least 10 latents, not {search.latents}.")
        if search.method == "examples" and not (search.having and search.lacking):
            raise RequestError("Examples should be on both sides, but one side has none; add one there.")
        self._w: list[NDArray[np.float32]] = []

    @property
    def share(self) -> float:
        """How much is done, 0..1."""
        return min(1.0, sum(len(part) for part in self._w) / self._total)

    @property
    def _total(self) -> int:
        search = self.search
        return {"pca": search.latents, "sefa": 1, "examples": len(search.having) + len(search.lacking)}[search.method]

    def step(self, renderer: MapsLatents) -> NamedDirections | None:
        """Do a bounded piece of work; return the directions once they are found.

        Raises
        ------
        RequestError
            If the search does not fit the model, or nothing was found.
        """
        search, facts = self.search, renderer.facts
        where = _whole_rows(search.rows, facts.num_ws)
        if search.method == "sefa":
            return sefa_of_rows(renderer.model, search.name, where, search.count)
        done = sum(len(part) for part in self._w)
        if done < self._total:
            self._w.append(self._next(renderer, done, where))
            return None
        w = np.concatenate(self._w)
        if search.method == "pca":
            return pca_directions(w, where, search.count, search.name)
        return example_direction(w[: len(search.having)], w[len(search.having) :], where, search.name)

    def _next(self, renderer: MapsLatents, done: int, where: RowRange) -> NDArray[np.float32]:
        """Return the w (n, w_dim) of the next latents; of examples their mean over the rows."""
        search = self.search
        if search.method == "pca":
            first = search.seed + done
            stop = min(first + _BATCH, search.seed + search.latents)
            return rows_of_seeds(renderer, range(first, stop), search.psi)[:, 0]
        blends = (*search.having, *search.lacking)[done : done + _BATCH]
        rows = [renderer.rows_of(blend)[where.first : (where.last or 0) + 1] for blend in blends]
        return np.asarray(np.stack(rows).mean(axis=1), np.float32)


def find_directions(search: DirectionSearch, renderer: MapsLatents) -> NamedDirections:
    """Return what a search finds, in one go."""
    finder = DirectionFinder(search)
    while (found := finder.step(renderer)) is None:
        pass
    return found


def example_direction(
    having: NDArray[np.float32], lacking: NDArray[np.float32], where: RowRange, name: str
) -> NamedDirections:
    """Return the direction from w (n, w_dim) that lack something to w (m, w_dim) that have it; the module's formula."""
    ours, others = having.astype(np.float64), lacking.astype(np.float64)
    way = ours.mean(axis=0) - others.mean(axis=0)
    length = float(np.linalg.norm(way))
    if not length > 1e-6:
        raise RequestError("Examples of the two sides should differ in these rows, but they do not; choose others.")
    vector = way
    if min(len(having), len(lacking)) >= _ENOUGH:
        vector = _classifier_normal(ours, others, way)
    return NamedDirections(
        names=(f"{EXAMPLES}/{name}",),
        vectors=vector[None].astype(np.float32),
        rows=(where,),
        reach=(_EXAMPLE_REACH,),
        centre=(0.0,),
        measures=({"examples": float(len(having) + len(lacking)), "distance": round(length, 4)},),
    )


def _classifier_normal(
    having: NDArray[np.float64], lacking: NDArray[np.float64], way: NDArray[np.float64]
) -> NDArray[np.float64]:
    within = np.concatenate([having - having.mean(axis=0), lacking - lacking.mean(axis=0)])
    covariance = within.T @ within / max(len(within) - 2, 1)
    shrinkage = float(np.trace(covariance)) / len(way)
    normal = np.linalg.solve(covariance + max(shrinkage, 1e-12) * np.eye(len(way)), way)
    scaled: NDArray[np.float64] = normal * (float(way @ way) / float(normal @ way))
    return scaled


def _whole_rows(rows: RowRange, num_ws: int) -> RowRange:
    last = num_ws - 1 if rows.last is None else rows.last
    if not 0 <= rows.first <= last < num_ws:
        raise RequestError(f"Rows of this model must be in 0 to {num_ws - 1}, not {rows.first} to {last}.")
    return RowRange(rows.first, last)


def free_set_name(wanted: str, names: Sequence[str]) -> str:
    """Return a set's name that no direction has yet: "pca", else "pca-2" and so on; letters and digits of it alone."""
    letters = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in wanted.lower())
    stem = letters.strip("-").lstrip("0123456789-")[:12].rstrip("-") or "found"
    if stem in ("sefa", "axis"):
        stem = f"{stem}-own"
    taken = {name.partition("/")[0] for name in names}
    return next(name for number in range(1, 1000) if (name := stem if number == 1 else f"{stem}-{number}") not in taken)


def free_example_name(wanted: str, names: Sequence[str]) -> str:
    """Return a direction's name that no other direction from examples has: "smile", else "smile 2" and so on."""
    # Emoji of several parts have a joiner in them, which is not printable.
    words = "".join(letter if letter.isprintable() else "" for letter in " ".join(wanted.replace("/", " ").split()))
    stem = words[:34].strip() or "difference"
    return next(
        name
        for number in range(1, 1000)
        if f"{EXAMPLES}/{(name := stem if number == 1 else f'{stem} {number}')}" not in names
    )
