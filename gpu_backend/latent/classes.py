"""Class weights -> the label vector that a conditional mapping network takes, and whole labels where one is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError


def class_label(classes: Sequence[tuple[int, float]], c_dim: int) -> NDArray[np.float32]:
    """Return the label: one class of weight 1 gives a one-hot vector, several their weighted sum, none zeros.

    Returns
    -------
    (c_dim,) float32

    Raises
    ------
    RequestError
        If the network has no classes and one is asked for, a class does not exist or a weight is not finite.
    """
    label = np.zeros(c_dim, dtype=np.float64)
    for index, weight in classes:
        if c_dim == 0:
            raise RequestError(f"This network has no classes, but class {index} was asked for; leave the class out.")
        if not 0 <= index < c_dim:
            raise RequestError(f"The class must be in 0..{c_dim - 1} for this network, but {index} came.")
        if not math.isfinite(weight):
            raise RequestError(f"The weight of class {index} must be a finite number, but {weight} came.")
        label[index] += weight
    return label.astype(np.float32)


def picking_labels(labels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return labels (n, c_dim) for a network that looks classes up: of length 1, and class 0 for all zeros.

    Such a network picks the row of the largest number (Sauer et al. 2022), which of equal ones is the first. So one
    class is the same whatever its weight; several share the row by theirs.
    """
    lengths = np.abs(labels).sum(axis=1, keepdims=True)
    if (lengths == 1.0).all():
        return labels
    found = (labels / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32)
    found[lengths[:, 0] == 0.0, 0] = 1.0
    return found
