"""Paths through chosen latents, frame by frame.

Every frame is a blend of recipes again, so a path needs no arrays: its frames can be written into a manifest,
rendered in any order and on another machine.

- in w: weights over the keyframes, `w-linear` between two neighbours, `w-cubic` a cubic spline through all of them;
- in z: `z-linear` and `z-slerp` blend the normal vectors of two seeds before mapping. Where the neighbours differ in
  class, mix, sliders or truncation, both get the same z and what differs goes over linearly in w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from gpu_backend.errors import RequestError
from gpu_backend.latent.seeds import z_angle
from gpu_backend.latent.spline import curvature_weights, spline_weights
from gpu_backend.recipe import Point, Recipe

PathKind = Literal["w-linear", "w-cubic", "z-linear", "z-slerp"]

_Blend = tuple[tuple[Recipe, float], ...]


def path_blends(
    keys: Sequence[_Blend], kind: PathKind, frames_per_step: int, loop: bool, *, z_dim: int = 512
) -> list[_Blend]:
    """Return the blend of each frame of a path through keyframes.

    Parameters
    ----------
    keys
        Keyframes: each a blend, as in `RenderRequest.blend`. The z kinds need each to be one recipe on one seed.
    kind
        How to go from key to key.
    frames_per_step
        Frames from one key to the next, at least 1.
    loop
        Go on from the last key to the first. The last frame comes one before the first again, so that it plays
        endlessly.
    z_dim
        Length of z, which the angle of a slerp depends on.

    Returns
    -------
    K * frames_per_step blends for a loop through K keys, (K - 1) * frames_per_step + 1 otherwise. Frame
    k * frames_per_step is key k itself.

    Raises
    ------
    RequestError
        If there is no key, a key is empty or not of the sort that the kind needs, or a number is out of range.
    """
    if kind not in get_args(PathKind):
        raise RequestError(f"The path must be one of {', '.join(get_args(PathKind))}, but {kind!r} came.")
    if frames_per_step < 1:
        raise RequestError(f"A path needs at least 1 frame a step, but {frames_per_step} came.")
    if not keys or not all(keys):
        raise RequestError("A path needs at least one keyframe with a recipe in it, but one is missing.")
    places = _places(len(keys), frames_per_step, loop)
    if kind == "w-cubic":
        curvature = curvature_weights(len(keys), closed=loop)
        return [_combined(keys, spline_weights(curvature, key, fraction)) for key, fraction in places]
    if kind == "w-linear":
        return [_combined(keys, _linear_weights(key, (key + 1) % len(keys), fraction)) for key, fraction in places]
    recipes = [_recipe_on_seed(blend, index) for index, blend in enumerate(keys)]
    return [
        _between(recipes[key], recipes[(key + 1) % len(recipes)], fraction, kind == "z-slerp", z_dim)
        for key, fraction in places
    ]


def lerp_weights(fraction: float) -> tuple[float, float]:
    """Return the weights of two ends of a straight line."""
    return 1.0 - fraction, fraction


def slerp_weights(fraction: float, angle: float, first_norm: float, second_norm: float) -> tuple[float, float]:
    """Return the weights of two vectors on the arc between them.

    The direction turns at constant speed (Shoemake, "Animating rotation with quaternion curves", 1985:
    sin((1-t) a) / sin a and sin(t a) / sin a on unit vectors); the length goes linearly from one to the other.

    Parameters
    ----------
    fraction
        How far, 0..1.
    angle
        Between the vectors, in radians. Near 0 and pi no arc is determined: the straight line is taken.
    first_norm, second_norm
        Their lengths.
    """
    if math.sin(angle) < 1e-6 or first_norm == 0.0 or second_norm == 0.0:
        return lerp_weights(fraction)
    length = (1.0 - fraction) * first_norm + fraction * second_norm
    first = math.sin((1.0 - fraction) * angle) / math.sin(angle)
    second = math.sin(fraction * angle) / math.sin(angle)
    return first * length / first_norm, second * length / second_norm


def _places(keys: int, frames_per_step: int, loop: bool) -> list[tuple[int, float]]:
    """Return (key before, fraction to the next) of each frame."""
    count = keys * frames_per_step if loop else (keys - 1) * frames_per_step + 1
    return [(frame // frames_per_step, frame % frames_per_step / frames_per_step) for frame in range(count)]


def _linear_weights(key: int, following: int, fraction: float) -> dict[int, float]:
    if fraction == 0.0 or key == following:
        return {key: 1.0}
    first, second = lerp_weights(fraction)
    return {key: first, following: second}


def _combined(keys: Sequence[_Blend], weights: dict[int, float]) -> _Blend:
    """Return the weighted sum of keyframes; a recipe that stands in several of them comes once."""
    total: dict[Recipe, float] = {}
    for index, weight in weights.items():
        for recipe, share in keys[index]:
            total[recipe] = total.get(recipe, 0.0) + weight * share
    return tuple(total.items())


def _recipe_on_seed(blend: _Blend, index: int) -> Recipe:
    """Return the only recipe of a keyframe that stands on one whole seed."""
    recipe, weight = blend[0]
    point = recipe.latent.point
    if len(blend) != 1 or weight != 1.0 or len(point.seeds) != 1 or point.seeds[0][1] != 1.0:
        raise RequestError(
            f"A path in z needs keyframes that stand on whole seeds, but keyframe {index + 1} lies between seeds; "
            "choose a path in w or snap it to a seed."
        )
    return recipe


def _between(first: Recipe, second: Recipe, fraction: float, on_arc: bool, z_dim: int) -> _Blend:
    first_seed, second_seed = first.latent.point.seeds[0][0], second.latent.point.seeds[0][0]
    if fraction == 0.0 or first == second:
        return ((first, 1.0),)
    if first_seed == second_seed:
        seeds: tuple[tuple[int, float], ...] = ((first_seed, 1.0),)
    elif on_arc:
        weights = slerp_weights(fraction, *z_angle(first_seed, second_seed, z_dim))
        seeds = ((first_seed, weights[0]), (second_seed, weights[1]))
    else:
        weights = lerp_weights(fraction)
        seeds = ((first_seed, weights[0]), (second_seed, weights[1]))
    point = Point(seeds=seeds, space="z")
    ends = (replace(recipe, latent=replace(recipe.latent, point=point)) for recipe in (first, second))
    return _combined([((recipe, 1.0),) for recipe in ends], {0: 1.0 - fraction, 1: fraction})
