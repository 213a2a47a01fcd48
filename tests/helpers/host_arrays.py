"""Arrays over host memory that stands for a device's."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def at(address: int, shape: tuple[int, ...], dtype: str = "f4") -> Array:
    """Return an array over memory."""
    count = int(np.prod(shape))
    memory = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), np.dtype(dtype)).reshape(shape)


def added(parts: Iterable[Array]) -> Array:
    """Return the sum of arrays, added in their order."""
    total: Array = functools.reduce(np.add, parts)
    return total


def floats(halves: Array) -> Array:
    """Return fp16 numbers as fp32."""
    return halves.astype(np.float32)
