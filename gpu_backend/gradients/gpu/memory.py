"""Memory, pinned memory and graphs of the device that belong together and are freed together."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.interface import Driver, Graph


class DeviceArrays:
    """Memory taken piece by piece, freed by `close` or with this object.

    All methods but `close` are called on a thread that entered the driver.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._taken: list[Callable[[], None]] = []
        self._finalizer = weakref.finalize(self, _free, self._taken)
        # When the program ends, the memory goes with it.
        self._finalizer.atexit = False

    def empty(self, nbytes: int) -> int:
        """Return the address of memory that holds zeros. Raises DeviceMemoryError."""
        address = self._reserved(nbytes)
        self._driver.zero(address, nbytes)
        return address

    def upload(self, array: NDArray[Any]) -> int:
        """Return the address of a copy of an array. Raises DeviceMemoryError."""
        address = self._reserved(array.nbytes)
        self._driver.upload(address, np.ascontiguousarray(array))
        return address

    def pinned(self, count: int) -> NDArray[np.float32]:
        """Return numbers of the host that the device copies to; they must not outlive this object."""
        driver, address = self._driver, self._driver.reserve_pinned(4 * count)
        self._taken.append(lambda: driver.release_pinned(address))
        memory = (ctypes.c_char * (4 * count)).from_address(address)
        return np.frombuffer(memoryview(memory), np.float32)

    def capture(self, work: Callable[[], None]) -> Graph:
        """Capture what `work` enqueues."""
        driver, graph = self._driver, self._driver.capture(work)
        self._taken.append(lambda: driver.release_graph(graph))
        return graph

    def close(self) -> None:
        """Free everything. Never raises; may be called twice, on any thread."""
        self._finalizer()

    def _reserved(self, nbytes: int) -> int:
        driver, address = self._driver, self._driver.reserve(nbytes)
        self._taken.append(lambda: driver.release(address))
        return address


def _free(taken: list[Callable[[], None]]) -> None:
    while taken:
        taken.pop()()
