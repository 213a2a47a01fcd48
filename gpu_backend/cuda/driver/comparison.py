"""Comparison of arrays on the device: activations may have hundreds of megabytes, too many to download."""

from __future__ import annotations

import math

import numpy as np

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.ops.kernels.e4m3 import E4M3
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.quick_dataclass import dataclass

COMPARISON = KernelRecipe("comparison")

_KINDS = {"float32": 0, "float16": 1, E4M3: 2}
"""Of numbers, in ``comparison.cu``."""

_THREADS = 256
_BLOCKS = 1024
_SUMS = 4
_MOST_AT_ONCE = 1 << 31
"""Largest number of elements of a launch, which counts in 32 bits; a multiple of the alignment."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers on the device: `parts` times `count` of them, whose sum over the parts counts.

    Attributes
    ----------
    dtype
        ``"float32"``, ``"float16"``, or ``"int8"`` for e4m3.
    """

    address: int
    dtype: str
    count: int
    parts: int = 1

    @property
    def nbytes(self) -> int:
        """Of all parts."""
        return self.parts * self.count * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class TensorDiff:
    """Difference between two arrays.

    Attributes
    ----------
    difference, size
        L2 norms of the difference and of the expected numbers, over the places where the latter are finite.
    nonfinite
        Numbers that are not finite where they should be.
    mismatched
        Numbers that differ in any bit.
    """

    difference: float
    size: float
    nonfinite: int
    mismatched: int

    @property
    def relative_error(self) -> float:
        """Difference over size; infinite if any number is nonfinite."""
        if self.nonfinite:
            return math.inf
        return self.difference / self.size if self.size else self.difference


class Comparer:
    """Compares and copies on the device.

    Parameters
    ----------
    kernel
        `COMPARISON`, loaded.
    """

    def __init__(self, driver: Driver, pool: MemoryPool, kernel: LoadedKernel) -> None:
        self._driver = driver
        self._pool = pool
        self._kernel = kernel

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy, after all work enqueued so far."""
        self._driver.copy(target, source, nbytes)

    def keep(self, source: int, nbytes: int) -> int:
        """Return memory with a copy, to `release`.

        Raises
        ------
        DeviceMemoryError
            If there is no room.
        """
        address = self._pool.reserve(nbytes)
        self._driver.copy(address, source, nbytes)
        return address

    def release(self, address: int) -> None:
        """Give back what `keep` returned. Never raises."""
        self._pool.release(address)

    def diff(self, got: Numbers, expected: Numbers) -> TensorDiff:
        """Compare, after all work enqueued so far, and wait for the result.

        Raises
        ------
        ValueError
            If counts or types differ, or if there are too many numbers in parts.
        DeviceMemoryError, DeviceLostError
            If there is no memory for the result, or the device failed.
        """
        if (got.count, got.dtype) != (expected.count, expected.dtype):
            raise ValueError(f"{got.count} numbers of {got.dtype}, but {expected.count} of {expected.dtype}")
        if got.count > _MOST_AT_ONCE and max(got.parts, expected.parts) > 1:
            raise ValueError(f"{got.count} numbers in parts are too many")
        sums = np.zeros((_BLOCKS, _SUMS))
        total = np.zeros(_SUMS)
        place = self._pool.reserve(sums.nbytes)
        try:
            for first in range(0, got.count, _MOST_AT_ONCE):
                self._launch(got, expected, first, place)
                self._driver.download(sums, place)
                total += sums.sum(axis=0)
        finally:
            self._pool.release(place)
        return TensorDiff(math.sqrt(total[0]), math.sqrt(total[1]), int(total[2]), int(total[3]))

    def _launch(self, got: Numbers, expected: Numbers, first: int, place: int) -> None:
        offset = first * np.dtype(got.dtype).itemsize
        packed = PackedArguments(
            COMPARISON.parameters,
            {
                "got": np.uint64(got.address + offset),
                "expected": np.uint64(expected.address + offset),
                "sums": np.uint64(place),
                "got_parts": got.parts,
                "expected_parts": expected.parts,
                "kind": _KINDS[got.dtype],
                "count": min(got.count - first, _MOST_AT_ONCE),
            },
        )
        self._driver.launch(self._kernel, (_BLOCKS, 1, 1), (_THREADS, 1, 1), 0, packed)
