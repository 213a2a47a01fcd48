"""Requests for renderer tests."""

from __future__ import annotations

from typing import Any

from gpu_backend import Latent, Point, Recipe, Renderer, RenderRequest, Truncation, plane_point


def point_of(latent: Latent) -> Point:
    """Return the point between seeds; the latent must not be a stored one."""
    assert isinstance(latent.point, Point)
    return latent.point


def request_for(renderer: Renderer, latent: Latent | None = None, psi: float = 0.7, **fields: Any) -> RenderRequest:
    recipe = Recipe(latent or Latent(plane_point(3.25, 0.5)), Truncation(psi))
    return RenderRequest(renderer.facts.model_id, ((recipe, 1.0),), **fields)
