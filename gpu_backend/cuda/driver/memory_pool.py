"""Memory of the device, and pinned memory of the host, that is freed without a wait.

The driver frees memory only when the device has finished all queued work, that of other streams included. Released
memory is therefore kept: for the next request of that size, until the device is idle or its memory runs short.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.errors import DeviceMemoryError

_Made = TypeVar("_Made")


class MemoryPool:
    """The memory of an executor. Pinned memory may be released on any thread, the rest belongs to one."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._device = _FreeBlocks(driver.reserve, driver.release)
        self._pinned = _FreeBlocks(driver.reserve_pinned, driver.release_pinned)
        self._is_closed = False

    def reserve(self, nbytes: int) -> int:
        """Memory on the device. Work that used it may still run; work enqueued from now on comes after that.

        Raises
        ------
        DeviceMemoryError, DeviceLostError
            As the driver.
        """
        return self.make(lambda: self._device.take(nbytes))

    def release(self, address: int) -> None:
        """Release what `reserve` returned; work enqueued before may still use it. Never raises."""
        self._device.put(address)
        if self._is_closed:
            self._free()
        else:
            self.tidy()

    def reserve_pinned(self, nbytes: int) -> int:
        """Memory of the host that the device copies from and to, and that no work uses."""
        return self.make(lambda: self._pinned.take(nbytes))

    def release_pinned(self, address: int) -> None:
        """Give back what `reserve_pinned` returned, on any thread, once no work uses it. Never raises."""
        self._pinned.put(address)
        if self._is_closed:
            self._pinned.free()

    def make(self, make: Callable[[], _Made]) -> _Made:
        """Call a function that needs memory; if there is too little, free all unused memory and call it again.

        Raises
        ------
        DeviceMemoryError
            If there is not enough even then.
        """
        try:
            return make()
        except DeviceMemoryError:
            if not (self._device or self._pinned):
                raise
        self._free()
        return make()

    def tidy(self) -> None:
        """Free unused memory, unless the device is busy. Never raises."""
        if (self._device or self._pinned) and self._driver.is_idle():
            self._free()

    def close(self) -> None:
        """Free unused memory, and from now on all memory at its release. May be called twice."""
        self._is_closed = True
        self._free()

    def _free(self) -> None:
        self._device.free()
        self._pinned.free()


class _FreeBlocks:
    """Unused memory of one kind, by size.

    Without a lock: the collector may interrupt anything here to put something back. Every step is atomic.
    """

    def __init__(self, reserve: Callable[[int], int], release: Callable[[int], None]) -> None:
        self._reserve = reserve
        self._release = release
        self._nbytes: dict[int, int] = {}
        """Size of everything that was not freed, by address."""
        self._spare: dict[int, deque[int]] = {}

    def __bool__(self) -> bool:
        return any(tuple(self._spare.values()))

    def take(self, nbytes: int) -> int:
        """Return a spare block of just that size, or a new one."""
        with contextlib.suppress(KeyError, IndexError):
            return self._spare[nbytes].popleft()
        address = self._reserve(nbytes)
        self._nbytes[address] = nbytes
        return address

    def put(self, address: int) -> None:
        """Take a block back."""
        self._spare.setdefault(self._nbytes[address], deque()).append(address)

    def free(self) -> None:
        """Give all spare blocks back to the driver."""
        for blocks in tuple(self._spare.values()):
            with contextlib.suppress(IndexError):
                while True:
                    address = blocks.popleft()
                    del self._nbytes[address]
                    self._release(address)
