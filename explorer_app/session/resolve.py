"""Session -> request: pure, and the only place that knows how the two relate."""

from __future__ import annotations

from dataclasses import replace

from explorer_app.session.session import Session
from gpu_backend import (
    DirectionAmount,
    Latent,
    MixSource,
    Recipe,
    RenderRequest,
    Transform,
    flat_latent,
    plane_point,
)


def resolve(session: Session, *, resolution: int | None = None, measure_steps: bool = False) -> RenderRequest:
    """Return the request for the picture that a session describes, or for the layer that it shows instead.

    A held latent (`Session.held`) gets the session's mix and directions on top, as the plane's point does. A layer
    comes at its own resolution, whatever is asked for.
    """
    return RenderRequest(
        model_id=session.model.model_id,
        blend=resolve_blend(session),
        noise=session.noise,
        transform=resolve_transform(session),
        resolution=resolution if session.tap is None else None,
        measure_steps=measure_steps,
        tap=session.tap,
    )


def unobserved(request: RenderRequest) -> RenderRequest:
    """Return a request without what is only looked at beside the picture: as `resolve` makes it for a resolution."""
    return replace(request, measure_steps=False, wants_tap_values=False, wants_image=False)


def resolve_transform(session: Session) -> tuple[float, ...] | None:
    """Return the nine numbers of a session's transform; None at rest, so that the network keeps its own."""
    return None if session.transform == Transform() else session.transform.matrix


def resolve_blend(session: Session) -> tuple[tuple[Recipe, float], ...]:
    """Return the (recipe, weight) pairs that a session describes."""
    mix = tuple(MixSource(latent=source.latent, strengths=source.strengths) for source in session.mix)
    directions = tuple(
        DirectionAmount(name=slider.direction, amount=slider.amount, rows=slider.rows)
        for slider in session.sliders
        if slider.amount != 0.0
    )
    if session.held:
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
            for recipe, weight in session.held
        )
    latent = Latent(
        point=plane_point(session.position.x, session.position.y),
        classes=session.classes,
        mix=mix,
        directions=directions,
    )
    return ((Recipe(latent=latent, truncation=session.truncation), 1.0),)


def kept_latent(session: Session) -> Latent:
    """Return the latent that "Mix in current" stores as a mix source: point, classes, mix and directions.

    Its sources hold no sources (`flat_latent`), so that keeping again and again never nests them. A held latent may
    lie between several recipes, which one latent cannot say: the heaviest of them is kept.
    """
    recipe, _ = max(resolve_blend(session), key=lambda pair: pair[1])
    return flat_latent(recipe.latent)
