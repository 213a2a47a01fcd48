"""Pinned host memory, lent to the readers of a picture.

The device copies a picture straight into one of a few slots. The picture that is handed out is an array over the slot;
when it and all of its views are collected, the slot is free. A slot in use when the ring is closed stays valid.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.memory_pool import MemoryPool

FEWEST_SLOTS, MOST_SLOTS = 3, 16
SLOTS_NBYTES = 256 << 20
"""How many pictures may be looked at before one more costs a copy, and what they may take together."""

SMALL_SLOTS, SMALL_NBYTES = 48, 16 << 20
"""The same for small pictures, which an export gathers before it copies them."""

Memory = ctypes.Array[ctypes.c_char]
"""An owner of host memory; arrays over it keep it alive."""


def pinned_memory(pool: MemoryPool, nbytes: int) -> Memory:
    """Pinned memory that goes back when the object and all arrays over it are gone."""
    address = pool.reserve_pinned(nbytes)
    return _watched(address, nbytes, lambda: pool.release_pinned(address))


def address_of(memory: Memory) -> int:
    """Address of the memory."""
    return ctypes.addressof(memory)


def array_over(memory: Memory, shape: tuple[int, ...], dtype: str, at: int = 0) -> NDArray[Any]:
    """An array over memory from byte `at` on."""
    return np.frombuffer(memoryview(memory), np.dtype(dtype), count=math.prod(shape), offset=at).reshape(shape)


def _watched(address: int, nbytes: int, gone: Callable[[], None]) -> Memory:
    memory = (ctypes.c_char * nbytes).from_address(address)
    finalizer = weakref.finalize(memory, gone)
    # When the program ends, the memory goes with it.
    finalizer.atexit = False
    return memory


class PinnedRing:
    """Slots of equal size, made when they are first needed: as many as `SLOTS_NBYTES` allow, within limits.

    Taken and handed out by one thread; slots are returned on any thread, when the last view is collected.

    Parameters
    ----------
    nbytes
        Of a slot's pixels, which decide the number of slots.
    slot_nbytes
        Of a slot; None if it has nothing but pixels.
    """

    def __init__(self, pool: MemoryPool, nbytes: int, slot_nbytes: int | None = None) -> None:
        self._pool = pool
        self._slot_nbytes = slot_nbytes or nbytes
        few, many = min(SLOTS_NBYTES // nbytes, MOST_SLOTS), min(SMALL_NBYTES // nbytes, SMALL_SLOTS)
        self.slots = max(FEWEST_SLOTS, few, many)
        self._made = 0
        # Appending and popping are atomic: a lock could be held by the very thread that the collector interrupts.
        self._free: deque[int] = deque()
        self._is_closed = False

    @property
    def nbytes(self) -> int:
        """Memory of all slots made so far."""
        return self._made * self._slot_nbytes

    def take(self) -> int | None:
        """Return the address of a free slot; None if all are lent."""
        try:
            return self._free.popleft()
        except IndexError:
            pass
        if self._made == self.slots:
            return None
        address = self._pool.reserve_pinned(self._slot_nbytes)
        self._made += 1
        return address

    def hand_out(self, address: int) -> Memory:
        """Return a taken slot, which is free again when the object and all arrays over it are collected."""
        return _watched(address, self._slot_nbytes, lambda: self.put_back(address))

    def put_back(self, address: int) -> None:
        """Take a slot back."""
        self._free.append(address)
        if self._is_closed:
            self._drain()

    def close(self) -> None:
        """Free the unused slots now, and the others when they are returned. May be called twice."""
        self._is_closed = True
        self._drain()

    def _drain(self) -> None:
        while self._free:
            try:
                address = self._free.popleft()
            except IndexError:
                return
            self._made -= 1
            self._pool.release_pinned(address)
