"""Recipe -> rows of w, with the mapping network in torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.latent.classes import picking_labels
from gpu_backend.latent.mapped import MappedAnchors
from gpu_backend.latent.rows import LatentSpace, anchors_of, blend_rows
from gpu_backend.model.model import Model
from gpu_backend.model_directions import model_directions
from gpu_backend.recipe import Recipe


@torch.no_grad()
def rows_of_recipes(
    model: Model, map_to_w: Callable[[Tensor, Tensor | None], Tensor], recipes: tuple[Recipe, ...]
) -> NDArray[np.float32]:
    """Return the rows of w of each recipe, (recipes, num_ws, w_dim).

    Parameters
    ----------
    map_to_w
        z (batch, z_dim) and labels (batch, c_dim), None without classes, to w (batch, w_dim) before truncation.

    Raises
    ------
    RequestError
        If a recipe does not fit the model.
    """
    mapping = model.spec.mapping

    def map_one(z: NDArray[np.float32], label: NDArray[np.float32]) -> NDArray[np.float32]:
        labels = None
        if mapping.c_dim:
            picked = label[None] if mapping.class_table is None else picking_labels(label[None])
            labels = torch.from_numpy(picked)
        w: NDArray[np.float32] = map_to_w(torch.from_numpy(z[None]), labels)[0].float().cpu().numpy()
        return w

    space = LatentSpace(model.spec.num_ws, model.weights["mapping.w_avg"], model_directions(model))
    mapped = MappedAnchors(map_one, mapping.z_dim, mapping.c_dim)
    blends = [((recipe, 1.0),) for recipe in recipes]
    return np.stack([blend_rows(blend, space, mapped.fetch(anchors_of(blend))) for blend in blends])
