"""Paths through keyframe latents.

Every frame is a blend of recipes, so a path stores no arrays. Its frames can be written into a manifest, and rendered
in any order and on another machine.

- in w: weights over the keyframes, `w-linear` between two neighbours, `w-cubic` a cubic spline through all of them;
  `w-slerp` is the arc around the average of w between two neighbours that each stand on one point, and a straight line
  between others;
- in z: `z-linear` and `z-slerp` blend the normal vectors of two seeds before mapping. If the neighbours differ in
  class, mix, sliders or truncation, both get the same z and are blended linearly in w. So it is with the arc in w.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from gpu_backend.errors import RequestError
from gpu_backend.latent.seeds import z_angle
from gpu_backend.latent.slerp import lerp_weights, slerp_weights
from gpu_backend.latent.spline import curvature_weights, spline_weights
from gpu_backend.lazy_names import LazyModule
from gpu_backend.recipe import Arc, Point, Recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

PathKind = Literal["w-linear", "w-cubic", "w-slerp", "z-linear", "z-slerp"]

_Blend = tuple[tuple[Recipe, float], ...]


class LatentPath:
    """A path through keyframes, which computes the blend of any frame when it is asked for.

    Parameters
    ----------
    keys
        Keyframes: each a blend, as in `RenderRequest.blend`. The z kinds need each to be one recipe on one seed.
    kind
        Interpolation between keys.
    frames_per_step
        Frames from one key to the next, at least 1.
    loop
        Continue from the last key to the first. The last frame precedes the first one, so that playback repeats
        seamlessly.
    z_dim
        Length of z, which determines the angle of a slerp.

    Raises
    ------
    RequestError
        If there is no key, a key is empty or unsuitable for the kind, or a number is out of range.

    Notes
    -----
    A loop through K keys has K * frames_per_step frames, an open path (K - 1) * frames_per_step + 1. Frame
    k * frames_per_step is key k itself.
    """

    def __init__(
        self, keys: Sequence[_Blend], kind: PathKind, frames_per_step: int, loop: bool, *, z_dim: int = 512
    ) -> None:
        if kind not in get_args(PathKind):
            raise RequestError(f"The path must be one of {', '.join(get_args(PathKind))}, not {kind!r}.")
        if frames_per_step < 1:
            raise RequestError(f"A path must have at least 1 frame a step, not {frames_per_step}.")
        if not keys or not all(keys):
            raise RequestError("A path needs at least one keyframe with a recipe in it, but one is missing.")
        self._keys = keys
        self._kind = kind
        self._frames_per_step = frames_per_step
        self._loop = loop
        self._z_dim = z_dim
        if kind.startswith("z"):
            for index, key in enumerate(keys):
                _recipe_on_seed(key, index)

    def __len__(self) -> int:
        steps = len(self._keys) * self._frames_per_step
        return steps if self._loop else steps - self._frames_per_step + 1

    def blend(self, frame: int) -> _Blend:
        """Return the blend of a frame. Raises RequestError if it is not in 0 .. len(self) - 1."""
        if self._kind in ("w-linear", "w-cubic"):
            recipes, shares = self._merged_keys
            total: dict[int, float] = {}
            for key, weight in self.weights(frame).items():
                for number, share in shares[key]:
                    total[number] = total.get(number, 0.0) + weight * share
            return tuple((recipes[number], share) for number, share in total.items())
        key, fraction = self.place(frame)
        first, second = self._keys[key], self._keys[(key + 1) % len(self._keys)]
        return blend_between(first, second, self._kind, fraction, z_dim=self._z_dim)

    def weights(self, frame: int) -> dict[int, float]:
        """Return the weight of each keyframe in a frame; on an arc and in z, the position between its neighbours.

        Raises RequestError if the path has no such frame.
        """
        key, fraction = self.place(frame)
        if self._kind == "w-cubic":
            return spline_weights(self._curvature, key, fraction)
        return _linear_weights(key, (key + 1) % len(self._keys), fraction)

    @cached_property
    def _merged_keys(self) -> tuple[list[Recipe], list[list[tuple[int, float]]]]:
        """The distinct recipes, and each key's shares of them by number: hashing a recipe costs more than the sums."""
        numbers: dict[Recipe, int] = {}
        shares = [[(numbers.setdefault(recipe, len(numbers)), share) for recipe, share in key] for key in self._keys]
        return list(numbers), shares

    @cached_property
    def _curvature(self) -> NDArray[np.float64]:
        """Spline weights, solved on first use, because thousands of keys take seconds."""
        return curvature_weights(len(self._keys), closed=self._loop)

    def place(self, frame: int) -> tuple[int, float]:
        """Return the keyframe before a frame, and the fraction of the way to the next one, in [0, 1).

        Raises RequestError if the path has no such frame.
        """
        if not 0 <= frame < len(self):
            raise RequestError(f"A frame of this path must be in 0 .. {len(self) - 1}, not {frame}.")
        key, step = divmod(frame, self._frames_per_step)
        return key, step / self._frames_per_step


def path_blends(
    keys: Sequence[_Blend], kind: PathKind, frames_per_step: int, loop: bool, *, z_dim: int = 512
) -> list[_Blend]:
    """Return the blend of every frame of a `LatentPath`, with its arguments and errors."""
    path = LatentPath(keys, kind, frames_per_step, loop, z_dim=z_dim)
    return [path.blend(frame) for frame in range(len(path))]


def blend_between(first: _Blend, second: _Blend, kind: PathKind, fraction: float, *, z_dim: int = 512) -> _Blend:
    """Return the blend at a fraction, 0..1, of the way between two keyframes, of any kind but `w-cubic`.

    Raises
    ------
    RequestError
        If the way goes through z and a keyframe is no single recipe on a whole seed.
    """
    if kind.startswith("z"):
        ends: tuple[Recipe, ...] = (_recipe_on_seed(first, 0), _recipe_on_seed(second, 1))
    elif kind == "w-slerp" and _is_on_point(first) and _is_on_point(second):
        ends = (first[0][0], second[0][0])
    else:
        ends = ()
    if fraction == 0.0 or first == second:
        return first
    if fraction == 1.0:
        return second
    if not ends:
        return weighted_blend((first, second), {0: 1.0 - fraction, 1: fraction})
    points = tuple(recipe.latent.point for recipe in ends)
    point = points[0]
    if points[0] != points[1]:
        assert isinstance(points[0], Point)
        assert isinstance(points[1], Point)
        is_arc = kind == "w-slerp"
        point = Arc(points[0], points[1], fraction) if is_arc else _in_z(points[0], points[1], kind, fraction, z_dim)
    alike = (((replace(recipe, latent=replace(recipe.latent, point=point)), 1.0),) for recipe in ends)
    return weighted_blend(tuple(alike), {0: 1.0 - fraction, 1: fraction})


def is_on_seed(blend: _Blend) -> bool:
    """Return whether a blend is a single recipe on a whole seed, so that a path in z can pass through it."""
    point = blend[0][0].latent.point if len(blend) == 1 and blend[0][1] == 1.0 else None
    return isinstance(point, Point) and len(point.seeds) == 1 and point.seeds[0][1] == 1.0


def weighted_blend(blends: Sequence[_Blend], weights: Mapping[int, float]) -> _Blend:
    """Return the weighted sum of blends, by their index; equal recipes are merged."""
    total: dict[Recipe, float] = {}
    for index, weight in weights.items():
        for recipe, share in blends[index]:
            total[recipe] = total.get(recipe, 0.0) + weight * share
    return tuple(total.items())


def _linear_weights(key: int, following: int, fraction: float) -> dict[int, float]:
    if fraction == 0.0 or key == following:
        return {key: 1.0}
    first, second = lerp_weights(fraction)
    return {key: first, following: second}


def _recipe_on_seed(blend: _Blend, index: int) -> Recipe:
    """Return the recipe of a keyframe that is a single recipe on a single seed."""
    if not is_on_seed(blend):
        raise RequestError(
            f"A path in z needs keyframes that stand on whole seeds, but keyframe {index + 1} lies between seeds; "
            "choose a path in w or snap it to a seed."
        )
    return blend[0][0]


def _in_z(first: Point, second: Point, kind: PathKind, fraction: float, z_dim: int) -> Point:
    """Return the point between two whole seeds in z."""
    seeds = first.seeds[0][0], second.seeds[0][0]
    on_arc = kind == "z-slerp"
    weights = slerp_weights(fraction, *z_angle(*seeds, z_dim)) if on_arc else lerp_weights(fraction)
    return Point(tuple(zip(seeds, weights, strict=True)), "z")


def _is_on_point(blend: _Blend) -> bool:
    """Return whether a blend is a single recipe whose latent is one point, so that an arc in w can begin there."""
    return len(blend) == 1 and blend[0][1] == 1.0 and isinstance(blend[0][0].latent.point, Point)
