"""Session -> the recipes that it describes, with their weights."""

from __future__ import annotations

from dataclasses import replace

from explorer_app.session.session import Session
from gpu_backend import DirectionAmount, Latent, MixSource, Recipe, RowRange, plane_point

Blend = tuple[tuple[Recipe, float], ...]
"""(recipe, weight) pairs, as in `gpu_backend.RenderRequest`; the weights sum to one."""

_ALL = RowRange()


def resolve_blend(session: Session) -> Blend:
    """Return the (recipe, weight) pairs that a session describes, without those of weight 0 beside others."""
    pairs = whole_blend(session)
    return tuple(pair for pair in pairs if pair[1] != 0.0) or pairs


def whole_blend(session: Session) -> Blend:
    """Return the (recipe, weight) pairs that a session describes, including weights of 0."""
    mix = tuple(MixSource(latent=source.latent, strengths=source.strengths) for source in session.mix)
    directions = tuple(
        DirectionAmount(slider.direction, slider.amount, slider.rows or _ALL, within_own=slider.rows is None)
        for slider in session.sliders
        if slider.amount != 0.0
    )
    if session.pinned_blend:
        return tuple(
            (
                replace(
                    recipe,
                    latent=replace(
                        recipe.latent,
                        mix=(*recipe.latent.mix, *mix),
                        directions=(*recipe.latent.directions, *directions),
                    ),
                ),
                weight,
            )
            for recipe, weight in session.pinned_blend
        )
    latent = Latent(
        point=plane_point(session.position.x, session.position.y),
        classes=session.classes,
        mix=mix,
        directions=directions,
    )
    return ((Recipe(latent=latent, truncation=session.truncation), 1.0),)
