"""Whole sessions between two keys: what "keep the picture here" shows on the way.

Sliders stay numbers of the session, so that a track of their own may move them; everything else that makes the latent
becomes a blend of recipes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from explorer_app.session.blend import Blend, resolve_blend
from explorer_app.session.local_blends import mixed_local_blends
from explorer_app.session.local_edits import mixed_bends, mixed_style_channels
from explorer_app.session.mixing import is_same, mixed_number
from explorer_app.session.session import MAX_SCALE, MIN_SCALE, Session, Slider
from gpu_backend import Noise, PathKind, RequestError, Transform, blend_between, weighted_blend


def placed(state: Session, session: Session) -> Session:
    """Return the session with everything that a state sets; model, timeline and patches stay the session's."""
    return replace(state, model=session.model, timeline=session.timeline, patches=session.patches)


def mixed_states(states: Sequence[Session], weights: Mapping[int, float], before: int) -> Session:
    """Return the session that holds so much of each state; what cannot be mixed is that of the state `before`.

    The weights sum to one; on a spline some are negative.
    """
    first = states[before]
    chosen = {index: states[index] for index in weights}
    sliders, loose = _mixed_sliders(chosen, weights)
    is_same_mix = is_same(state.mix for state in chosen.values())
    bare = {
        index: replace(
            state,
            sliders=tuple(slider for slider in state.sliders if slider.direction in loose),
            mix=() if is_same_mix else state.mix,
        )
        for index, state in chosen.items()
    }
    blends: list[Blend] = [()] * len(states)
    for index, state in bare.items():
        blends[index] = resolve_blend(state)
    return replace(
        _with_blend(first, weighted_blend(blends, weights), bare, weights),
        sliders=sliders,
        mix=first.mix if is_same_mix else (),
        noise=_mixed_noise({index: state.noise for index, state in chosen.items()}, weights, first.noise),
        transform=_mixed_transform({index: state.transform for index, state in chosen.items()}, weights),
        bends=mixed_bends({index: state.bends for index, state in chosen.items()}, weights, before),
        style_channels=mixed_style_channels({index: state.style_channels for index, state in chosen.items()}, weights),
        blends=mixed_local_blends({index: state.blends for index, state in chosen.items()}, weights, before),
    )


def states_between(first: Session, second: Session, kind: PathKind, share: float, z_dim: int) -> Session:
    """Return the session between two states; latents follow an arc in w, or a straight line or an arc in z.

    States with other mixes or slider ranges go straight in w, and in z those that do not stand on whole seeds, too.
    """
    between = mixed_states((first, second), {0: 1.0 - share, 1: share}, 0)
    if first.mix != second.mix or _mixed_sliders({0: first, 1: second}, {0: 0.5, 1: 0.5})[1]:
        return between
    ends = tuple(resolve_blend(replace(state, sliders=(), mix=())) for state in (first, second))
    try:
        blend = blend_between(ends[0], ends[1], kind, share, z_dim=z_dim)
    except RequestError:
        return between
    return replace(between, pinned_blend=blend)


def _with_blend(first: Session, blend: Blend, bare: Mapping[int, Session], weights: Mapping[int, float]) -> Session:
    """Return a state with a blend; one that stays on a place of the plane is not pinned."""
    places = [replace(state, noise=first.noise, transform=first.transform, tap=None) for state in bare.values()]
    if not first.pinned_blend and is_same(resolve_blend(place) for place in places):
        return first
    return replace(first, pinned_blend=tuple((recipe, weight) for recipe, weight in blend if weight))


def _mixed_sliders(
    chosen: Mapping[int, Session], weights: Mapping[int, float]
) -> tuple[tuple[Slider, ...], frozenset[str]]:
    """Return the sliders at mixed amounts, and the directions that act on different rows in different states."""
    amounts: dict[str, float] = {}
    models: dict[str, Slider] = {}
    loose: set[str] = set()
    for index, state in chosen.items():
        for slider in state.sliders:
            name = slider.direction
            known = models.get(name)
            if known is None or known.amount == 0.0:
                models[name] = slider
            elif slider.amount != 0.0 and slider.rows != known.rows:
                loose.add(name)
            amounts[name] = amounts.get(name, 0.0) + weights[index] * slider.amount
    sliders = tuple(replace(slider, amount=0.0 if name in loose else amounts[name]) for name, slider in models.items())
    return tuple(slider for slider in sliders if slider != Slider(slider.direction)), frozenset(loose)


def _mixed_noise(noises: Mapping[int, Noise], weights: Mapping[int, float], first: Noise) -> Noise:
    """Return noise between states. No noise is noise of gain 0, so that it fades; mode and seed are the first's."""
    if is_same(noises.values()):
        return first
    if first.mode == "none":
        shown = next((noise for noise in noises.values() if noise.mode != "none"), first)
        first = replace(first, mode=shown.mode, seed=shown.seed)
    layers = max(len(noise.layer_gains) for noise in noises.values())
    gain = mixed_number(
        {index: 0.0 if noise.mode == "none" else noise.gain for index, noise in noises.items()}, weights
    )
    layer_gains = tuple(
        max(0.0, mixed_number({index: _layer_gain(noise, layer) for index, noise in noises.items()}, weights))
        for layer in range(layers)
    )
    phase = mixed_number({index: noise.phase for index, noise in noises.items()}, weights)
    return replace(first, gain=max(0.0, gain), layer_gains=layer_gains, phase=phase)


def _layer_gain(noise: Noise, layer: int) -> float:
    return noise.layer_gains[layer] if layer < len(noise.layer_gains) else 1.0


def _mixed_transform(transforms: Mapping[int, Transform], weights: Mapping[int, float]) -> Transform:
    """Return a transform between states; it turns by the numbers, so that 0 to 720 degrees are two turns."""
    if is_same(transforms.values()):
        return next(iter(transforms.values()))
    scale = math.exp(mixed_number({index: math.log(item.scale) for index, item in transforms.items()}, weights))
    return Transform(
        x=mixed_number({index: item.x for index, item in transforms.items()}, weights),
        y=mixed_number({index: item.y for index, item in transforms.items()}, weights),
        degrees=mixed_number({index: item.degrees for index, item in transforms.items()}, weights),
        scale=min(max(scale, MIN_SCALE), MAX_SCALE),
    )
