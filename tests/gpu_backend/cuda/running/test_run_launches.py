"""The helper that kernel tests stand on, and the driver underneath it."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.schedule import Address, Constant, Launch, Region
from tests.helpers.gpu import run_launches
from tests.helpers.hand_kernels import hand_kernel

pytestmark = pytest.mark.gpu

_SHIFT = """
extern "C" __global__ void shift(float* y, const float* x, const float* table, float a, int n, unsigned past) {
    extern __shared__ float staged[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    staged[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n + (int)past) y[i] = staged[threadIdx.x] + a * table[i % 4];
}
"""


def _launch(n: int, past: int = 0) -> Launch:
    return Launch(
        layer="layer",
        label="shift",
        recipe=hand_kernel("shift", _SHIFT),
        grid=(-(-n // 128), 1, 1),
        block=(128, 1, 1),
        shared_nbytes=64 << 10,
        arguments={
            "y": Address("y", "region"),
            "x": Address("x", "region"),
            "table": Address("table", "constant"),
            "a": np.float32(2),
            "n": np.int32(n),
            "past": np.uint32(past),
        },
    )


def _regions(n: int) -> tuple[Region, ...]:
    return (
        Region("x", (n,), "float32", "input"),
        Region("y", (n,), "float32", "output"),
        Region("untouched", (3,), "float32", "scratch"),
    )


_TABLE = Constant("table", lambda: np.arange(4, dtype=np.float32))


def test_a_kernel_gets_its_arguments_and_every_region_comes_back(gpu: Gpu) -> None:
    n = 301
    x = np.linspace(0, 1, n, dtype=np.float32)
    got = run_launches([_launch(n)], _regions(n), [_TABLE], {"x": x}, runs=2)
    assert np.array_equal(got["y"], x + 2 * (np.arange(n) % 4).astype(np.float32))
    assert np.array_equal(got["x"], x)
    assert np.isnan(got["untouched"]).all()


def test_a_kernel_that_writes_past_its_region_is_found_out(gpu: Gpu) -> None:
    with pytest.raises(AssertionError, match="past y"):
        run_launches([_launch(100, past=1)], _regions(100), [_TABLE], {"x": np.zeros(100, np.float32)})
