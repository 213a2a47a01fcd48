"""A tiny schedule written by hand, its kernels twice: in CUDA C++ for a GPU, in Python for `FakeDriver`.

h = x * w + noise_gain[0]            scale: w is a constant of four numbers that repeat
image = h + noise_source[1]          paint: also pixels = 10 * image as bytes, flags = 1 where h is not finite
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.schedule import Address, Constant, Launch, Region, Schedule
from gpu_backend.plan.plan import Buffer, Plan, PlanKey
from tests.helpers.fake_gpu import COMPARISON, FakeDriver, FakeKernel
from tests.helpers.hand_kernels import hand_kernel

BATCH, SIDE = 2, 16
AREA = SIDE * SIDE
W = np.array([1, 2, 3, 4], np.float32)

SCALE_SOURCE = """
extern "C" __global__ void scale(float* h, const float* x, const float* w, const float* noise_gain, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) h[i] = x[i] * w[i % 4] + noise_gain[0];
}
"""

PAINT_SOURCE = """
extern "C" __global__ void paint(
    unsigned char* pixels, float* image, unsigned* flags, unsigned* counter, const float* h,
    const unsigned* noise_source, int area, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float v = h[i] + (float)noise_source[1];
        image[i] = v;
        const float byte = fminf(fmaxf(v * 10.0f, 0.0f), 255.0f);
        for (int c = 0; c < 4; c++) pixels[4 * i + c] = (unsigned char)byte;
        if (i % area == 0) flags[i / area] = isfinite(v) ? 0u : 1u;
    }
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(counter, 1u) == gridDim.x - 1) *counter = 0;
}
"""

SCALE = hand_kernel("scale", SCALE_SOURCE)
PAINT = hand_kernel("paint", PAINT_SOURCE)


def hand_schedule() -> Schedule:
    """The schedule: two launches, inputs beside each other, a region that every run leaves zero."""
    count = BATCH * AREA
    shapes: list[tuple[str, tuple[int, ...], str, Any]] = [
        ("x", (BATCH, AREA), "float32", "input"),
        ("noise_gain", (3,), "float32", "input"),
        ("noise_source", (4,), "uint32", "input"),
        ("counter", (1,), "uint32", "zeroed"),
        ("image", (BATCH, SIDE, SIDE, 1), "float32", "output"),
        ("pixels", (BATCH, SIDE, SIDE, 4), "uint8", "output"),
        ("flags", (BATCH,), "uint32", "output"),
        ("h", (BATCH, AREA), "float32", "scratch"),
    ]
    regions, end = [], 0
    for name, shape, dtype, role in shapes:
        regions.append(Region(name, shape, dtype, role, end))
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        end += -(-nbytes // 256) * 256
    grid = (-(-count // 128), 1, 1)

    def at(name: str) -> Address:
        return Address(name, "region")

    launches = (
        Launch(
            layer="first",
            label="scale",
            stands_for="plain_scale",
            recipe=SCALE,
            grid=grid,
            block=(128, 1, 1),
            shared_nbytes=0,
            arguments={
                "h": at("h"),
                "x": at("x"),
                "w": Address("w", "constant"),
                "noise_gain": at("noise_gain"),
                "n": np.int32(count),
            },
            flops=2 * count,
            nbytes=8 * count,
        ),
        Launch(
            layer="second",
            label="paint",
            recipe=PAINT,
            grid=grid,
            block=(128, 1, 1),
            shared_nbytes=0,
            arguments={
                "pixels": at("pixels"),
                "image": at("image"),
                "flags": at("flags"),
                "counter": at("counter"),
                "h": at("h"),
                "noise_source": at("noise_source"),
                "area": np.int32(AREA),
                "n": np.int32(count),
            },
            flops=count,
            nbytes=12 * count,
            is_fused=False,
            reason="it was wrong",
        ),
    )
    plan = Plan(PlanKey("model", "synthesis", BATCH, SIDE), (Buffer("x", (BATCH, AREA), "float32", "input"),), ())
    return Schedule(plan, tuple(regions), (Constant("w", lambda: W),), launches, end)


def expected_image(x: NDArray[np.float32], gain: float = 1.0, seed: int = 0) -> NDArray[np.float32]:
    """What the schedule gives, (BATCH, SIDE, SIDE, 1)."""
    h = x * np.tile(W, AREA // 4) + np.float32(gain)
    return (h + np.float32(seed)).reshape(BATCH, SIDE, SIDE, 1)


def expected_pixels(x: NDArray[np.float32], gain: float = 1.0, seed: int = 0) -> NDArray[np.uint8]:
    """What the schedule gives, (BATCH, SIDE, SIDE, 4)."""
    values = np.clip(expected_image(x, gain, seed) * np.float32(10), 0, 255).astype(np.uint8)
    return np.repeat(values, 4, axis=-1)


def hand_driver(**settings: Any) -> FakeDriver:
    """A fake GPU that knows these kernels, and the empty one."""
    kernels = {
        "scale": FakeKernel(_scale, 20.0),
        "plain_scale": FakeKernel(_scale, 200.0),
        "paint": FakeKernel(_paint, 5.0),
        "empty": FakeKernel(_empty, 1.0),
        "comparison": COMPARISON,
    }
    return FakeDriver(kernels, **settings)


def scale_wrongly(driver: FakeDriver, h: int, x: int, w: int, noise_gain: int, n: np.int32) -> None:
    """Stand for ``scale``, and be off by a tenth."""
    _scale(driver, h, x, w, noise_gain, n)
    driver.view(h, (int(n),), "float32")[:] *= np.float32(1.1)


def _scale(driver: FakeDriver, h: int, x: int, w: int, noise_gain: int, n: np.int32) -> None:
    values = driver.view(x, (int(n),), "float32") * np.tile(driver.view(w, (4,), "float32"), int(n) // 4)
    driver.view(h, (int(n),), "float32")[:] = values + driver.view(noise_gain, (1,), "float32")


def _paint(
    driver: FakeDriver,
    pixels: int,
    image: int,
    flags: int,
    counter: int,
    h: int,
    noise_source: int,
    area: np.int32,
    n: np.int32,
) -> None:
    count = int(n)
    assert driver.view(counter, (1,), "uint32")[0] == 0
    values = driver.view(h, (count,), "float32") + np.float32(driver.view(noise_source, (4,), "uint32")[1])
    driver.view(image, (count,), "float32")[:] = values
    painted = np.clip(values * np.float32(10), 0, 255).astype(np.uint8)
    driver.view(pixels, (count, 4), "uint8")[:] = painted[:, None]
    driver.view(flags, (count // int(area),), "uint32")[:] = ~np.isfinite(values[:: int(area)])


def _empty(driver: FakeDriver) -> None:
    del driver


PLAIN_SCALE = hand_kernel("plain_scale", SCALE_SOURCE.replace(" scale(", " plain_scale("))


def hand_lower(
    plan: Plan,
    weights: Mapping[str, Any],
    target: Any,
    *,
    plain: Mapping[str, str] | None = None,
    everything_plain: bool = False,
) -> Schedule:
    """Lower any plan to the schedule, in which ``plain_scale`` can stand for ``scale``, and nothing for ``paint``."""
    del weights, target
    schedule = hand_schedule()
    scale, paint = schedule.launches
    paint = replace(paint, is_fused=True, reason="")
    why = (plain or {}).get(SCALE.digest, "")
    if why or everything_plain:
        scale = replace(scale, label="plain_scale", stands_for="", recipe=PLAIN_SCALE, is_fused=False, reason=why)
    return replace(schedule, plan=plan, launches=(scale, paint))
