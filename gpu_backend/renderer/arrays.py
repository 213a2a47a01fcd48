"""Arrays that callers hand over, and how many of their items are computed at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_backend.errors import RequestError


def finite_array(data: ArrayLike, what: str, shape: tuple[int | str, ...]) -> NDArray[np.float32]:
    """Return data as a float32 array of a shape, in which a name stands for any length from 1 up.

    Raises
    ------
    RequestError
        If it is no such array, or holds a number that is not finite.
    """
    words = f"({', '.join(str(length) for length in shape)})"
    try:
        with np.errstate(over="ignore"):  # what does not fit float32 is refused below
            array = np.ascontiguousarray(data, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise RequestError(f"{what} must be an array of numbers of shape {words}, but is none.", str(error)) from None
    fits = array.ndim == len(shape) and all(
        length >= 1 if isinstance(wanted, str) else length == wanted
        for length, wanted in zip(array.shape, shape, strict=False)
    )
    if not fits:
        raise RequestError(f"{what} must have the shape {words} for this network, but has {array.shape}.")
    if not np.isfinite(array).all():
        raise RequestError(f"{what} must hold finite numbers, but some are not.")
    return array


def chunks(count: int, batches: Sequence[int]) -> list[tuple[int, int]]:
    """Cut `count` items into runs of the given batch sizes, largest first: (first item, batch) pairs."""
    cut: list[tuple[int, int]] = []
    first = 0
    for batch in batches:
        while count - first >= batch:
            cut.append((first, batch))
            first += batch
    return cut
