"""How far numbers on the device are apart, by a GPU and by one made of Python, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.comparison import COMPARISON, Comparer, Numbers, TensorDiff
from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.ops.kernels.e4m3 import to_e4m3
from tests.helpers.gpu import first_gpu
from tests.helpers.hand_schedule import hand_driver
from tests.helpers.near import near


class Desk:
    """A comparer, and arrays put on its device."""

    def __init__(self, driver: Driver, cubin: bytes) -> None:
        self.driver = driver
        self.pool = MemoryPool(driver)
        self.kernel = driver.load(cubin, COMPARISON)
        self.comparer = Comparer(driver, self.pool, self.kernel)
        self.held: list[int] = []

    def put(self, array: NDArray[Any], parts: int = 1) -> Numbers:
        self.held.append(self.pool.reserve(array.nbytes))
        self.driver.upload(self.held[-1], array)
        return Numbers(self.held[-1], str(array.dtype), array.size // parts, parts)

    def diff(
        self, got: NDArray[Any], expected: NDArray[Any], got_parts: int = 1, expected_parts: int = 1
    ) -> TensorDiff:
        return self.comparer.diff(self.put(got, got_parts), self.put(expected, expected_parts))

    def close(self) -> None:
        for address in self.held:
            self.pool.release(address)
        self.pool.close()
        self.driver.unload(self.kernel)
        self.driver.close()


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.gpu)])
def harness(request: pytest.FixtureRequest) -> Iterator[Desk]:
    if request.param == "fake":
        found = Desk(hand_driver(), b"")
    else:
        request.getfixturevalue("gpu")
        from gpu_backend.cuda.driver.gpu_driver import GpuDriver

        gpu = first_gpu()
        kernel = compile_kernels([COMPARISON], gpu.compile_architecture).kernels[COMPARISON]
        found = Desk(GpuDriver(gpu.index), kernel.cubin)
    yield found
    found.close()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("count", [1, 255, 256 * 1024 + 17])
def test_norms_are_those_of_all_numbers(harness: Desk, count: int, dtype: str) -> None:
    generator = np.random.default_rng(count)
    expected = generator.standard_normal(count).astype(dtype)
    assert harness.diff(expected, expected) == TensorDiff(0.0, near(norm(expected)), 0, 0)
    got = expected.copy()
    got[-1] += np.dtype(dtype).type(0.5)
    found = harness.diff(got, expected)
    assert found == TensorDiff(near(0.5, rel=1e-2), near(norm(expected)), 0, 1)
    assert found.relative_error == pytest.approx(norm(got - expected) / norm(expected), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_infinity_is_never_right_and_nothing_is_expected_of_it(harness: Desk, dtype: str) -> None:
    def diff(got: list[float], expected: list[float]) -> TensorDiff:
        return harness.diff(np.array(got, dtype), np.array(expected, dtype))

    assert diff([3, math.nan], [3, 4]).relative_error == math.inf
    assert diff([3, -math.inf], [3, 4]).relative_error == math.inf
    assert diff([3, 7], [3, math.inf]) == TensorDiff(0.0, 3.0, 0, 1)
    assert diff([3, math.inf], [3, math.inf]) == TensorDiff(0.0, 3.0, 0, 0)
    assert diff([0.25], [0]).relative_error == 0.25
    assert diff([-0.0, 0.0], [0.0, 0.0]) == TensorDiff(0.0, 0.0, 0, 1), "of another bit"


def test_numbers_of_e4m3_are_compared_as_what_they_stand_for(harness: Desk) -> None:
    expected = to_e4m3(np.array([1.0, -448.0, 2.0**-9, 0.0, np.nan], np.float32))
    got = to_e4m3(np.array([1.125, -448.0, 2.0**-8, -0.0, 7.0], np.float32))
    norm_of_all = math.sqrt(1.0 + 448.0**2 + 2.0**-18)
    assert harness.diff(got, expected) == TensorDiff(near(math.hypot(0.125, 2.0**-9)), near(norm_of_all), 0, 4)
    assert harness.diff(expected[::-1].copy(), expected).relative_error == math.inf


def test_parts_count_by_their_sum(harness: Desk) -> None:
    generator = np.random.default_rng(0)
    got, expected = (generator.standard_normal((parts, 700)).astype(np.float32) for parts in (3, 2))
    found = harness.diff(got, expected, 3, 2)
    assert found.size == pytest.approx(norm(expected.sum(axis=0)))
    assert found.difference == pytest.approx(norm(got.sum(axis=0) - expected.sum(axis=0)), rel=1e-6)
    assert found.mismatched == 700


def test_more_than_a_launch_counts_are_compared_a_stretch_after_the_other(
    harness: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_backend.cuda.driver.comparison._MOST_AT_ONCE", 256)
    expected = np.arange(1, 1001, dtype=np.float16)
    got = expected.copy()
    got[[0, 255, 256, 999]] += np.float16(8)
    assert harness.diff(got, expected) == TensorDiff(16.0, near(norm(expected)), 0, 4)
    with pytest.raises(ValueError, match="in parts are too many"):
        harness.diff(np.zeros((2, 300), np.float32), np.zeros(300, np.float32), 2)


def test_only_as_many_of_one_type_are_compared(harness: Desk) -> None:
    with pytest.raises(ValueError, match="3 numbers of float32, but 4"):
        harness.diff(np.zeros(3, np.float32), np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="float16"):
        harness.diff(np.zeros(3, np.float32), np.zeros(3, np.float16))


def test_a_copy_lasts_when_what_it_is_of_changes(harness: Desk) -> None:
    first = harness.put(np.full(100, 2.0, np.float32))
    kept = Numbers(harness.comparer.keep(first.address, first.nbytes), "float32", 100)
    other = harness.put(np.full(100, 5.0, np.float32))
    harness.comparer.copy(first.address, other.address, first.nbytes)
    assert harness.comparer.diff(first, other).mismatched == 0
    assert harness.comparer.diff(kept, first) == TensorDiff(near(30.0), near(50.0), 0, 100)
    harness.comparer.release(kept.address)


def norm(array: NDArray[Any]) -> float:
    return float(np.linalg.norm(array.astype(np.float64)))
