"""Arrays of callers: lists and tensors too, or a sentence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_backend.errors import RequestError


def number_array(data: ArrayLike, what: str, shape: str = "") -> NDArray[np.float32]:
    """Return data as a float32 array of any shape; an array of this type is not copied.

    Parameters
    ----------
    what
        The noun of the data, for the refusal.
    shape
        That they should have, for the refusal.

    Raises
    ------
    RequestError
        If the data are no real numbers, or a tensor that needs gradients.
    """
    if getattr(data, "requires_grad", False):
        raise RequestError(f"{what} must not need gradients, since none come back; pass a detached tensor.")
    try:
        with np.errstate(over="ignore"):  # the caller refuses what is not finite
            given = np.asarray(data)
            if given.dtype.kind not in "biuf":
                raise TypeError(f"numbers of type {given.dtype}")
            return given.astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        of_shape = f" of shape {shape}" if shape else ""
        raise RequestError(f"{what} must be an array of numbers{of_shape}.", str(error)) from None
