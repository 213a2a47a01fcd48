"""Class weights -> the label vector of a conditional mapping network, and complete labels for table lookups."""

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
        If classes are given for a network without classes, a class does not exist, or a weight is not finite.
    TypeError
        If a class is not a whole number.
    """
    label = np.zeros(c_dim, dtype=np.float64)
    for index, weight in classes:
        if c_dim == 0:
            raise RequestError(f"This network has no classes, but class {index} was requested; leave the class out.")
        if not hasattr(index, "__index__"):
            raise TypeError(f"A class is a whole number, not {index!r:.40}.")
        if not 0 <= index < c_dim:
            raise RequestError(f"The class must be in 0..{c_dim - 1} for this network, not {index}.")
        if not math.isfinite(weight):
            raise RequestError(f"The weight of class {index} must be a finite number, not {weight}.")
        label[index] += weight
    return label.astype(np.float32)


def picking_labels(labels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return labels (n, c_dim) for a network with a table of classes: normalised, and class 0 for all zeros.

    StyleGAN-XL picks the table row of the largest label entry, the first of equal ones (Sauer et al. 2022). With one
    class its weight has no effect; with several, the rows are summed by their weights.
    """
    lengths = np.abs(labels).sum(axis=1, keepdims=True)
    if (lengths == 1.0).all():
        return labels
    found = (labels / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32)
    found[lengths[:, 0] == 0.0, 0] = 1.0
    return found
