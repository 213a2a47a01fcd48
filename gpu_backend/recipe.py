"""Recipes: how a latent is made, as frozen data.

A recipe consists of seeds, weights, amounts and strengths. It is small and hashable, can be written into a session
file, a PNG or a manifest, and gives the same picture on another machine. Rows that do not come from seeds are a
`StoredLatent`, which files contain once and refer to by its hash.

The rows of a recipe (`gpu_backend.latent.rows` computes them, in NumPy)::

    base    = sum_k weight_k * mapped(seed_k)                            one row, repeated num_ws times
    base    = w_avg + arc(base_a - w_avg, base_b - w_avg, fraction)      between two points, for an `Arc`
    rows    = w_avg + psi * (base - w_avg)   on rows [0, cutoff)         truncation
    rows[i] = rows[i] + strength[i] * (source.rows[i] - rows[i])         for each mix source, in order
    rows   += amount * direction             on the rows of its range    for each direction and axis

where w_avg is the average for the latent's classes if the network has one for each class.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from gpu_backend.errors import RequestError
from gpu_backend.lazy_names import LazyModule
from gpu_backend.limits import MAX_STORED_DIM, MAX_STORED_ROWS
from gpu_backend.picture_mask import PictureMask
from gpu_backend.quick_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

Space = Literal["w", "z"]
NoiseMode = Literal["none", "const", "random"]
BendKind = Literal["gain", "ablate", "threshold", "move", "turn", "scale"]

SEED_COUNT = 2**32
"""Seeds are the integers 0 .. SEED_COUNT - 1, as NumPy's legacy generator takes them."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point in latent space, blended from seeds.

    Attributes
    ----------
    seeds
        (seed, weight) pairs. Weights are not normalised; the weights of a blend in w sum to one.
    space
        Space of the blend: ``"w"`` blends mapped seeds, ``"z"`` blends the normal vectors before mapping.
    """

    seeds: tuple[tuple[int, float], ...] = ((0, 1.0),)
    space: Space = "w"


@dataclass(frozen=True, slots=True)
class Arc:
    """A point on the arc in w from one point to another, around the average of w (`gpu_backend.latent.paths`).

    It turns at constant angular speed, and its distance from the average changes linearly. A straight line passes
    nearer to the average, where pictures are plainer.

    Attributes
    ----------
    fraction
        Share of the way, 0 at `first` and 1 at `second`; beyond them the arc goes on.
    """

    first: Point
    second: Point
    fraction: float


@dataclass(frozen=True, slots=True)
class StoredLatent:
    """Rows of w that do not come from seeds: projected from a photograph, imported, or stored.

    It replaces a `Point` in a latent. Truncation does not apply to it.

    Attributes
    ----------
    rows
        float32, little-endian, (num_ws, w_dim) in C order. `num_ws` 1 means the same row everywhere.
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

    def to_array(self) -> NDArray[np.float32]:
        """Return the rows as an array (num_ws, w_dim), read-only; `stored_latent` makes a latent of one."""
        return np.frombuffer(self.rows, "<f4").reshape(self.num_ws, self.w_dim)

    @property
    def digest(self) -> str:
        """SHA-256 of shape and rows, by which files refer to it."""
        return _digest(self)


@lru_cache(maxsize=1024)
def _digest(latent: StoredLatent) -> str:
    return hashlib.sha256(f"{latent.num_ws},{latent.w_dim}:".encode() + latent.rows).hexdigest()


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows first..last of w, both included; `last` None means up to the end."""

    first: int = 0
    last: int | None = None

    def holds(self, row: int) -> bool:
        """Return whether a row is in the range."""
        return self.first <= row and (self.last is None or row <= self.last)


@dataclass(frozen=True, slots=True)
class DirectionAmount:
    """`amount` times the named direction of the model, added to the rows of a range.

    `name` is ``"sefa/0"`` and so on (`Renderer.directions` lists them) or ``"axis/17"`` for one dimension of w. With
    `within_own` the range is cut to the rows that the direction itself suggests (`Directions.rows`).
    """

    name: str
    amount: float
    rows: RowRange = RowRange()
    within_own: bool = False


@dataclass(frozen=True, slots=True)
class MixSource:
    """A latent that is mixed into the rows, row by row.

    `strengths` has one number in 0..1 for each row; rows past its end have strength 0.
    """

    latent: Latent
    strengths: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Latent:
    """A point with its mix sources and direction amounts.

    `classes` has (class, weight) pairs for conditional networks. Empty means an all-zero label, which means class 0 for
    a network with a table of classes.
    """

    point: Point | Arc | StoredLatent = Point()
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
    """A latent with the truncation of its own points and of its mix sources' points."""

    latent: Latent = Latent()
    truncation: Truncation = Truncation()


@dataclass(frozen=True, slots=True)
class Noise:
    """Settings of the noise inputs of the synthesis network.

    `gain` scales all layers, `layer_gains` (one number per noise layer in execution order; missing ones are 1) each.
    `seed` matters for mode ``"random"`` only: the same seed gives the same noise. `phase`, in degrees, turns the noise
    on a circle: 0 and 360 are the same noise, between them it changes steadily and stays normal
    (`gpu_backend.ops.noise`).
    """

    mode: NoiseMode = "const"
    seed: int = 0
    gain: float = 1.0
    layer_gains: tuple[float, ...] = ()
    phase: float = 0.0


@dataclass(frozen=True, slots=True)
class Transform:
    """Translation, rotation and scale of the picture, for networks with a transform input (StyleGAN3).

    Attributes
    ----------
    x, y
        Translation right and down, in widths of the picture.
    degrees
        Counterclockwise rotation around the centre of the picture.
    scale
        Magnification, above 0.
    """

    x: float = 0.0
    y: float = 0.0
    degrees: float = 0.0
    scale: float = 1.0

    @property
    def matrix(self) -> tuple[float, ...]:
        """The nine numbers of `RenderRequest.transform`: maps output positions to untransformed ones.

        This is the inverse of m = [[k cos, k sin, x], [-k sin, k cos, y], [0, 0, 1]], which transforms the picture
        (y points down).
        """
        turn = math.radians(self.degrees)
        cos, sin = math.cos(turn) / self.scale, math.sin(turn) / self.scale
        return (cos, -sin, sin * self.y - cos * self.x, sin, cos, -sin * self.x - cos * self.y, 0.0, 0.0, 1.0)

    @classmethod
    def of_matrix(cls, matrix: Sequence[float]) -> Transform | None:
        """Return the transform whose matrix has these nine numbers; None if there is none."""
        cos, _, _, sin = matrix[0], matrix[1], matrix[2], matrix[3]
        size = math.hypot(cos, sin)
        if not 0.0 < size < math.inf:
            return None
        # The centre of the untransformed picture moves to -[c, f], rotated back.
        x, y = -(cos * matrix[2] + sin * matrix[5]) / size**2, (sin * matrix[2] - cos * matrix[5]) / size**2
        found = cls(*(round(value, 9) for value in (x, y, math.degrees(math.atan2(sin, cos)), 1.0 / size)))
        if not found.scale:  # too small to be told from none
            return None
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
        Display gain in decibels; 20 multiplies by ten.
    is_normalized
        Each channel is divided by its largest magnitude first, so that it spans the display range.
    """

    layer: str
    channels: tuple[int, ...] = (0,)
    gain_db: float = 0.0
    is_normalized: bool = True


@dataclass(frozen=True, slots=True)
class Bend:
    """A change of some channels of a layer's output ("network bending"). Its amounts never change the plan.

    ==========  =============================================================  ========
    kind        amount                                                         at rest
    ==========  =============================================================  ========
    gain        factor; negative ones turn the sign                            1
    ablate      share that is taken away, 1 for all                            0
    threshold   values of a smaller magnitude become 0                         0
    move        widths to the right; `down` has those down                     0
    turn        degrees, counterclockwise around the centre                    0
    scale       magnification around the centre, above 0                       1
    ==========  =============================================================  ========

    Attributes
    ----------
    layer
        Official name without ``synthesis.``; not a toRGB or a skip.
    channels
        Which channels; empty for all of them.
    """

    layer: str
    kind: BendKind
    amount: float
    channels: tuple[int, ...] = ()
    down: float = 0.0


BEND_REST: dict[BendKind, float] = {
    "gain": 1.0,
    "ablate": 0.0,
    "threshold": 0.0,
    "move": 0.0,
    "turn": 0.0,
    "scale": 1.0,
}
"""Amounts that change nothing."""


@dataclass(frozen=True, slots=True)
class StyleOffset:
    """A number that is added to one channel of a layer's style ("StyleSpace"; Wu et al. 2021), before demodulation."""

    layer: str
    channel: int
    amount: float


@dataclass(frozen=True, slots=True)
class MaskedBlend:
    """A second latent whose activations replace those of the picture under a mask, in the layers of some rows of w.

    It runs through the same network beside the picture, with the same noise, transform, bends and style offsets. A
    layer that is shown instead of the picture (`Tap`) is shown without blends.

    Attributes
    ----------
    recipe
        The second latent.
    mask
        Where it shows.
    rows
        Layers whose row of w is in this range are blended, the picture's sums of toRGB too.
    strength
        Factor on the mask, 0..1.
    softness
        Width of the mask's edges, in widths of the picture, 0..1.
    """

    recipe: Recipe
    mask: PictureMask
    rows: RowRange = RowRange()
    strength: float = 1.0
    softness: float = 0.0


@dataclass(frozen=True, slots=True)
class LocalEdits:
    """Changes inside the synthesis network, on top of the latent.

    Several bends of a channel are joined: their transforms in order, the largest threshold, the product of the factors;
    the threshold acts before the factor. Several offsets of a channel are added. Blends act after a layer's bends, in
    order: a later one covers an earlier one.
    """

    bends: tuple[Bend, ...] = ()
    style_offsets: tuple[StyleOffset, ...] = ()
    blends: tuple[MaskedBlend, ...] = ()

    @property
    def acting(self) -> LocalEdits:
        """Those that change the picture: not at rest."""
        return LocalEdits(
            tuple(bend for bend in self.bends if bend.amount != BEND_REST[bend.kind] or bend.down),
            tuple(offset for offset in self.style_offsets if offset.amount),
            tuple(blend for blend in self.blends if blend.strength),
        )


NO_EDITS = LocalEdits()
