"""Recipes: how a latent is made, as frozen data.

A recipe names seeds, weights, amounts and strengths, so that it is small, hashable and can be written into a session
file, a PNG or a manifest, and gives the same picture on another machine. Rows that no seed gives are a `StoredLatent`,
which files hold once and name by its content.

The rows that a recipe stands for (`gpu_backend.latent.rows` computes them, in NumPy)::

    base    = sum_k weight_k * mapped(seed_k)                            one row, repeated num_ws times
    rows    = w_avg + psi * (base - w_avg)   on rows [0, cutoff)         truncation
    rows[i] = rows[i] + strength[i] * (source.rows[i] - rows[i])         for each mix source, in order
    rows   += amount * direction             on the rows of its range    for each direction and axis

where w_avg is the average of the latent's own classes if the network has one of each.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from gpu_backend.errors import RequestError
from gpu_backend.limits import MAX_STORED_DIM, MAX_STORED_ROWS

Space = Literal["w", "z"]
NoiseMode = Literal["none", "const", "random"]

SEED_COUNT = 2**32
"""Seeds are the integers 0 .. SEED_COUNT - 1, as NumPy's legacy generator takes them."""


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
class StoredLatent:
    """Rows of w that no seed gives: projected from a photograph, imported, or kept as they were.

    It stands where a `Point` does. Truncation leaves it as it is: its rows are what they should be.

    Attributes
    ----------
    rows
        float32, little-endian, (num_ws, w_dim) in C order. `num_ws` 1 stands for the same row everywhere.
    """

    rows: bytes = field(repr=False)
    num_ws: int
    w_dim: int

    def __post_init__(self) -> None:
        """Check that the bytes have the shape. Raises RequestError."""
        is_shape = 0 < self.num_ws <= MAX_STORED_ROWS and 0 < self.w_dim <= MAX_STORED_DIM
        if not is_shape or len(self.rows) != 4 * self.num_ws * self.w_dim:
            raise RequestError(
                f"A stored latent has up to {MAX_STORED_ROWS} rows of up to {MAX_STORED_DIM} numbers, but one has "
                f"{self.num_ws} of {self.w_dim} in {len(self.rows)} bytes."
            )

    @property
    def digest(self) -> str:
        """SHA-256 of shape and rows: its name in files."""
        return _digest(self)


@lru_cache(maxsize=1024)
def _digest(latent: StoredLatent) -> str:
    return hashlib.sha256(f"{latent.num_ws},{latent.w_dim}:".encode() + latent.rows).hexdigest()


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

    `classes` holds (class, weight) pairs for conditional networks; empty means an all-zero label, which stands for
    class 0 where a network looks classes up.
    """

    point: Point | StoredLatent = Point()
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


@dataclass(frozen=True, slots=True)
class Transform:
    """How the whole picture is moved, turned and scaled inside a network that has such an input.

    Attributes
    ----------
    x, y
        Widths of the picture to the right, and down.
    degrees
        Counterclockwise, around the middle of the picture.
    scale
        Above 0; 2 makes everything twice as large.
    """

    x: float = 0.0
    y: float = 0.0
    degrees: float = 0.0
    scale: float = 1.0

    @property
    def matrix(self) -> tuple[float, ...]:
        """The nine numbers of `RenderRequest.transform`: from a place in the new picture to the one before.

        With y down, the picture goes through m = [[k cos, k sin, x], [-k sin, k cos, y], [0, 0, 1]]; this is its
        inverse.
        """
        turn = math.radians(self.degrees)
        cos, sin = math.cos(turn) / self.scale, math.sin(turn) / self.scale
        return (cos, -sin, sin * self.y - cos * self.x, sin, cos, -sin * self.x - cos * self.y, 0.0, 0.0, 1.0)

    @classmethod
    def of_matrix(cls, matrix: Sequence[float]) -> Transform | None:
        """Return what gives these nine numbers, None if nothing does."""
        cos, _, _, sin = matrix[0], matrix[1], matrix[2], matrix[3]
        size = math.hypot(cos, sin)
        if not 0.0 < size < math.inf:
            return None
        # The middle of the picture before lies at -[c, f] turned back; that is where it goes.
        x, y = -(cos * matrix[2] + sin * matrix[5]) / size**2, (sin * matrix[2] - cos * matrix[5]) / size**2
        found = cls(*(round(value, 9) for value in (x, y, math.degrees(math.atan2(sin, cos)), 1.0 / size)))
        is_same = all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in zip(found.matrix, matrix, strict=True))
        return found if is_same else None


@dataclass(frozen=True, slots=True)
class Tap:
    """A layer shown instead of the picture.

    Attributes
    ----------
    layer
        Its official name without ``synthesis.`` (`ModelFacts.layers` lists them).
    channels
        One, shown as grey, or three, shown as red, green and blue.
    gain_db
        What is shown is brighter by so many decibels: 20 makes it ten times as large.
    is_normalized
        Each channel is divided by its largest magnitude first, so that it fills the range.
    """

    layer: str
    channels: tuple[int, ...] = (0,)
    gain_db: float = 0.0
    is_normalized: bool = True
