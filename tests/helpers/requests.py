"""Requests for renderer tests."""

from __future__ import annotations

from typing import Any

from gpu_backend import Latent, Recipe, Renderer, RenderRequest, Truncation, plane_point


def request_for(renderer: Renderer, latent: Latent | None = None, psi: float = 0.7, **fields: Any) -> RenderRequest:
    recipe = Recipe(latent or Latent(plane_point(3.25, 0.5)), Truncation(psi))
    return RenderRequest(renderer.facts.model_id, ((recipe, 1.0),), **fields)
