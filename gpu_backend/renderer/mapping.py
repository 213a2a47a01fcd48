"""The mapping network of an open model: z and labels -> w."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_backend.errors import RequestError
from gpu_backend.latent.classes import picking_labels
from gpu_backend.latent.truncation import label_averages, truncate
from gpu_backend.model import Model
from gpu_backend.model_runner import ModelRunner
from gpu_backend.renderer.arrays import chunks, finite_array

_BATCH = 32


class Mapper:
    """Maps latents of callers with a model's mapping network.

    Parameters
    ----------
    runner
        Runs the network; the caller closes it.
    """

    def __init__(self, model: Model, runner: ModelRunner) -> None:
        self._spec = model.spec
        self._w_avg = model.weights["mapping.w_avg"]
        self._runner = runner

    def rows(self, z: ArrayLike, c: ArrayLike | None, psi: float, cutoff: int | None) -> NDArray[np.float32]:
        """Return truncated rows of w, (n, num_ws, w_dim) float32; `Renderer.map` describes parameters and errors."""
        mapping = self._spec.mapping
        latents = finite_array(z, "z", ("n", mapping.z_dim))
        labels = self._picking(self._labels(c, latents.shape[0]))
        w = np.empty((latents.shape[0], mapping.w_dim), dtype=np.float32)
        for first, count in chunks(latents.shape[0], (_BATCH, 1)):
            w[first : first + count] = self._runner.map(latents[first : first + count], labels[first : first + count])
        rows = np.repeat(w[:, None], self._spec.num_ws, axis=1)
        averages = label_averages(self._w_avg, labels)
        with np.errstate(over="ignore"):  # float32 overflow is refused below
            truncated = truncate(rows, averages[:, None], psi, cutoff).astype(np.float32)
        if not np.isfinite(truncated).all():
            raise RequestError(f"Mapping must give finite numbers, but these z with psi {psi:g} give others.")
        return truncated

    def one(self, z: NDArray[np.float32], label: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the w (w_dim,) of one z (z_dim,) and label (c_dim,). Raises RequestError if it is not finite."""
        w: NDArray[np.float32] = self._runner.map(z[None], self._picking(label[None]))[0]
        if not np.isfinite(w).all():
            raise RequestError("Mapping must give finite numbers, but this model's gives others for these seeds.")
        return w

    def _labels(self, c: ArrayLike | None, count: int) -> NDArray[np.float32]:
        """Return the labels of a caller, (count, c_dim); zeros for None. Raises RequestError."""
        c_dim = self._spec.mapping.c_dim
        if c is None:
            return np.zeros((count, c_dim), dtype=np.float32)
        if c_dim > 0:
            return finite_array(c, "c", (count, c_dim))
        if np.size(c) > 0:
            raise RequestError("This network has no classes; leave c out.")
        return np.zeros((count, 0), dtype=np.float32)

    def _picking(self, labels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return labels as the network takes them: complete ones for a table of classes."""
        return labels if self._spec.mapping.class_table is None else picking_labels(labels)
