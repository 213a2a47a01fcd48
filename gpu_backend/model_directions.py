"""Directions of a model: named ones from the file beside it, then SeFa directions of its weights."""

from __future__ import annotations

import numpy as np

from gpu_backend.latent.directions import Directions
from gpu_backend.latent.sefa import sefa_directions
from gpu_backend.model import Model
from gpu_backend.model.named_directions import NamedDirections, is_direction_name


def model_directions(model: Model) -> Directions:
    """Return the named directions, then the SeFa directions."""
    styled = [f"synthesis.{layer.name}.affine" for layer in model.spec.layers if layer.w_index >= 0]
    found = sefa_directions(
        [model.weights[f"{name}.weight"] for name in styled],
        [model.weights[f"{name}.bias"] for name in styled],
        model.mean_w,
    )
    named = model.directions
    if named is None:
        return found
    return Directions(
        names=named.names + found.names,
        vectors=np.concatenate([named.vectors, found.vectors]),
        reach=named.reach + found.reach,
        rows=named.rows + found.rows,
        centre=named.centre + found.centre,
    )


def named_part(directions: Directions) -> NamedDirections | None:
    """Return the named directions among those of a renderer, as a file beside the model has them; None for none."""
    places = [place for place, name in enumerate(directions.names) if is_direction_name(name)]
    if not places:
        return None
    return NamedDirections(
        names=tuple(directions.names[place] for place in places),
        vectors=directions.vectors[places],
        rows=tuple(directions.rows[place] for place in places),
        reach=tuple(directions.reach[place] for place in places),
        centre=tuple(directions.centre[place] for place in places),
        measures=({},) * len(places),
    )
