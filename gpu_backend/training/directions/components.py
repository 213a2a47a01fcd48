"""Directions from w and the weights alone: principal components of w, and SeFa on groups of rows."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.latent.sefa import sefa_directions
from gpu_backend.model import Model, NamedDirections, concatenated
from gpu_backend.recipe import RowRange
from gpu_backend.training.directions.row_ranges import row_groups

_PCA_REACH = 3.0


def pca_directions(w: NDArray[np.floating], where: RowRange, count: int, name: str = "pca") -> NamedDirections:
    """Return the principal components of w (n, w_dim), ``pca/0`` the strongest (Harkonen et al. 2020, GANSpace).

    One unit is one standard deviation of w along the component; its ``share`` is that of the variance. An eigenvector
    has no defined sign, so the component with the largest magnitude is made positive.

    Raises
    ------
    RequestError
        If all w are the same.
    """
    if not np.ptp(w, axis=0).any():
        raise RequestError("Latents should differ to have principal components, but all are the same.")
    centred = w.astype(np.float64) - w.astype(np.float64).mean(axis=0)
    values, columns = np.linalg.eigh(centred.T @ centred / max(len(centred) - 1, 1))
    values, vectors = np.maximum(values[::-1], 0.0), columns.T[::-1]
    keep = min(count, int((values > 1e-12 * max(float(values[0]), 1e-30)).sum()))
    peaks = vectors[np.arange(keep), np.abs(vectors[:keep]).argmax(axis=1)]
    vectors = vectors[:keep] * np.where(peaks < 0.0, -1.0, 1.0)[:, None] * np.sqrt(values[:keep])[:, None]
    return NamedDirections(
        names=tuple(f"{name}/{index}" for index in range(keep)),
        vectors=vectors.astype(np.float32),
        rows=(where,) * keep,
        reach=(_PCA_REACH,) * keep,
        centre=(0.0,) * keep,
        measures=tuple({"share": round(float(value / values.sum()), 6)} for value in values[:keep]),
    )


def sefa_by_rows(model: Model, count: int) -> NamedDirections:
    """Return SeFa's directions of the coarse, the middle and the fine rows by themselves, `count` of each.

    A model always has the components of all rows. Here only the affines of a group are looked at, and only its rows are
    moved.
    """
    groups = row_groups(model.facts.row_resolutions)
    found = [sefa_of_rows(model, name, where, count) for name, where in groups.items()]
    return reduce(concatenated, found)


def sefa_of_rows(model: Model, name: str, where: RowRange, count: int) -> NamedDirections:
    """Return SeFa's directions of a range of rows: only the affines that these style are looked at."""
    inside = [layer for layer in model.spec.layers if layer.w_index >= 0 and where.holds(layer.w_index)]
    styled = [f"synthesis.{layer.name}.affine" for layer in inside]
    found = sefa_directions(
        [model.weights[f"{layer}.weight"] for layer in styled],
        [model.weights[f"{layer}.bias"] for layer in styled],
        model.mean_w,
        count,
    )
    return NamedDirections(
        names=tuple(f"{name}/{index}" for index in range(len(found))),
        vectors=found.vectors,
        rows=(where,) * len(found),
        reach=found.reach,
        centre=(0.0,) * len(found),
        measures=({},) * len(found),
    )
