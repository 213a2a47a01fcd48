"""Validation of caller arrays, and their division into batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_backend.errors import RequestError
from gpu_backend.number_array import number_array


def finite_array(data: ArrayLike, what: str, shape: tuple[int | str, ...]) -> NDArray[np.float32]:
    """Return data as a float32 array of the given shape, in which a name means any length of at least 1.

    Raises
    ------
    RequestError
        If the shape or type differs, or a value is not finite.
    """
    words = f"({', '.join(str(length) for length in shape)})"
    array = np.ascontiguousarray(number_array(data, what, words))
    fits = array.ndim == len(shape) and all(
        length >= 1 if isinstance(wanted, str) else length == wanted
        for length, wanted in zip(array.shape, shape, strict=False)
    )
    if not fits and array.ndim == len(shape) and not array.size:
        raise RequestError(f"{what} must have the shape {words} with at least one row, but has {array.shape}.")
    if not fits:
        raise RequestError(f"{what} must have the shape {words} for this network, but has {array.shape}.")
    if not np.isfinite(array).all():
        raise RequestError(f"{what} must hold finite numbers, but some are not.")
    return array


def chunks(count: int, batches: Sequence[int]) -> list[tuple[int, int]]:
    """Divide `count` items into batches of the given sizes, largest first: (first item, batch size) pairs."""
    cut: list[tuple[int, int]] = []
    first = 0
    for batch in batches:
        while count - first >= batch:
            cut.append((first, batch))
            first += batch
    return cut
