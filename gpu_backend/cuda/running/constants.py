"""The model's weights on the device, each once, however many plans use it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.cuda.schedule import Constant


@dataclass(slots=True)
class _Held:
    address: int
    nbytes: int
    users: int


class ConstantStore:
    """Constants by key. Plans acquire and release their constants; unused ones are freed."""

    def __init__(self, driver: Driver, pool: MemoryPool) -> None:
        self._driver = driver
        self._pool = pool
        self._held: dict[str, _Held] = {}

    @property
    def nbytes(self) -> int:
        """Memory on the device."""
        return sum(held.nbytes for held in self._held.values())

    def take(self, constants: Iterable[Constant]) -> dict[str, int]:
        """Return addresses of constants; upload the missing ones.

        Raises
        ------
        DeviceMemoryError, DeviceLostError
            If the device refuses; then none was taken.
        """
        taken: dict[str, int] = {}
        try:
            for constant in constants:
                if constant.key not in taken:
                    taken[constant.key] = self._take(constant)
        except BaseException:
            self.give_back(taken)
            raise
        return taken

    def give_back(self, keys: Iterable[str]) -> None:
        """Give back what `take` returned, each key once."""
        for key in tuple(keys):
            held = self._held.get(key)
            if held is None:
                continue
            held.users -= 1
            if not held.users:
                del self._held[key]
                self._pool.release(held.address)

    def close(self) -> None:
        """Free everything, also what is in use. May be called twice."""
        for held in self._held.values():
            self._pool.release(held.address)
        self._held.clear()

    def _take(self, constant: Constant) -> int:
        held = self._held.get(constant.key)
        if held is None:
            array = np.ascontiguousarray(constant.make())
            address = self._pool.reserve(array.nbytes)
            try:
                self._driver.upload(address, array)
            except BaseException:
                self._pool.release(address)
                raise
            held = self._held[constant.key] = _Held(address, array.nbytes, 0)
        held.users += 1
        return held.address
