"""Settings and reports of a drag: plain values, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from gpu_backend.quick_dataclass import dataclass
from gpu_backend.recipe import RowRange

if TYPE_CHECKING:  # the window imports this before it is shown
    import numpy as np
    from numpy.typing import NDArray

Solver = Literal["adam", "gauss-newton"]
Pixels = tuple[float, float]
"""A point (x, y) in pixels of the full picture; whole numbers are centres."""

MAX_HANDLES = 64


def default_drag_rows(row_resolutions: Sequence[int]) -> RowRange:
    """Return the coarse and middle rows: those up to 32 pixels, or to an eighth of a larger picture."""
    most = max(32, max(row_resolutions) // 8)
    return RowRange(0, max(index for index, side in enumerate(row_resolutions) if index == 0 or side <= most))


@dataclass(frozen=True, slots=True)
class Handle:
    """A point that is dragged: where it was taken, and where it is to be."""

    source: Pixels
    target: Pixels


@dataclass(frozen=True, slots=True, eq=False)
class DragSettings:
    """What a drag may change, and how fast.

    Attributes
    ----------
    pins
        Points that stay where they are.
    mask
        (height, width) of any size, 0..1: 1 keeps that part of the picture unchanged. None keeps nothing.
    rows
        Rows of w that may change; None for the coarse and middle ones (`default_drag_rows`).
    blend
        Place in the network's edits of the blend whose second latent changes; None for the picture's own.
    block
        Whose features are compared; None for `default_block`.
    radius
        Of the patch around a handle, in samples of the features.
    rate
        Length of Adam's steps, in deviations of each dimension of w.
    keep, faint
        Weights of the difference under the mask and of that everywhere.
    check_every
        Most steps from one check of the handles by tracking to the next; 0 for none. While handles are on their way,
        Adam's are checked more often.
    solver
        None for Adam on StyleGAN2 and Gauss-Newton on other families.
    """

    pins: tuple[Pixels, ...] = ()
    mask: NDArray[np.float32] | None = None
    rows: RowRange | None = None
    blend: int | None = None
    block: int | None = None
    radius: int = 2
    rate: float = 0.012
    keep: float = 10.0
    faint: float = 0.3
    check_every: int = 8
    solver: Solver | None = None


@dataclass(frozen=True, slots=True)
class HandleState:
    """A handle after a step.

    Attributes
    ----------
    position
        Where the optimiser holds it.
    tracked
        Where tracking through the pictures found its content at the last check.
    distance
        Pixels from `position` to the target.
    is_weak
        The picture has too little texture there; the handle does not pull.
    is_lost
        Its content did not come along; the handle no longer pulls.
    is_covered
        A blend shows another latent there than the one that changes; the handle does not pull.
    """

    position: Pixels
    tracked: Pixels
    distance: float
    is_weak: bool
    is_lost: bool
    is_covered: bool = False


@dataclass(frozen=True, slots=True)
class DragReport:
    """State of a drag.

    Attributes
    ----------
    step
        Finished iterations.
    loss
        Of the latent before the last iteration; NaN before the first.
    handles
        In the order that they were given in.
    is_settled
        Every handle that pulls is at its target, or none pulls, and tracking has looked at this latent. May never be
        where the model has no such picture, so callers limit the steps.
    """

    step: int
    loss: float
    handles: tuple[HandleState, ...]
    is_settled: bool
