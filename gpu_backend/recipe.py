"""Recipes: how a latent is made, as frozen data.

A recipe names seeds, weights, amounts and strengths, never arrays, so that it is small, hashable and can be written
into a session file, a PNG or a manifest, and gives the same picture on another machine.

The rows that a recipe stands for (`gpu_backend.latent.rows` computes them, in NumPy)::

    base    = sum_k weight_k * mapped(seed_k)                            one row, repeated num_ws times
    rows    = w_avg + psi * (base - w_avg)   on rows [0, cutoff)         truncation
    rows[i] = rows[i] + strength[i] * (source.rows[i] - rows[i])         for each mix source, in order
    rows   += amount * direction             on the rows of its range    for each direction and axis
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Space = Literal["w", "z"]
NoiseMode = Literal["none", "const", "random"]

SEED_COUNT = 2**32
"""Seeds are the integers 0 .. SEED_COUNT - 1, as NumPy's legacy generator takes them."""

MAX_MIX_DEPTH = 8
"""Mix sources may hold mix sources, nested this deep."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place in latent space, blended from seeds.

    Attributes
    ----------
    seeds
        (seed, weight) pairs. Weights are used as they are; a blend in w sums to one.
    space
        Where the weights apply: ``"w"`` blends mapped seeds, ``"z"`` blends the normal vectors before mapping.
    """

    seeds: tuple[tuple[int, float], ...] = ((0, 1.0),)
    space: Space = "w"


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows first..last of w, both included; `last` None means up to the end."""

    first: int = 0
    last: int | None = None


@dataclass(frozen=True, slots=True)
class DirectionAmount:
    """`amount` times the named direction of the model, added to the rows of a range.

    `name` is ``"sefa/0"`` and so on (`Renderer.directions` lists them) or ``"axis/17"`` for one dimension of w.
    """

    name: str
    amount: float
    rows: RowRange = RowRange()


@dataclass(frozen=True, slots=True)
class MixSource:
    """A latent laid over the rows above it, row by row.

    `strengths` has one number in 0..1 for each row; rows past its end have strength 0.
    """

    latent: Latent
    strengths: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Latent:
    """A point, what is mixed into it and how far it is pushed along directions.

    `classes` holds (class, weight) pairs for conditional networks; empty means an all-zero label.
    """

    point: Point = Point()
    classes: tuple[tuple[int, float], ...] = ()
    mix: tuple[MixSource, ...] = ()
    directions: tuple[DirectionAmount, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncation:
    """Rows [0, cutoff) move towards w_avg: w_avg + psi * (w - w_avg). `cutoff` None means all rows."""

    psi: float = 1.0
    cutoff: int | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """A latent with the truncation that its own points and those of its mix sources get."""

    latent: Latent = Latent()
    truncation: Truncation = Truncation()


@dataclass(frozen=True, slots=True)
class Noise:
    """What the noise inputs of the synthesis network get.

    `gain` scales all layers, `layer_gains` (one number a noise layer in execution order; missing ones are 1) each.
    `seed` matters for mode ``"random"`` only: the same seed gives the same noise.
    """

    mode: NoiseMode = "const"
    seed: int = 0
    gain: float = 1.0
    layer_gains: tuple[float, ...] = ()
