"""The hand-made schedule with a kernel that computes all of it and writes the bytes to the host itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_backend.cuda.launches.zero_copy import HOST_SLOT, host_slot
from gpu_backend.cuda.schedule import Address, Launch, Schedule
from gpu_backend.plan.plan import Plan
from tests.helpers.bound_plan_harness import BoundPlanHarness
from tests.helpers.fake_gpu import FakeDriver, FakeKernel
from tests.helpers.hand_kernels import hand_kernel
from tests.helpers.hand_schedule import AREA, BATCH, W, hand_driver, hand_lower, hand_schedule

FLAG_AT = BATCH * AREA * 4
"""Where the flags lie behind the pixels."""

WHOLE = hand_kernel(
    "whole",
    """
extern "C" __global__ void whole(
    float* image, unsigned char* const* host_slot, const float* x, const float* w, const float* noise_gain,
    const unsigned* noise_source, int flag_at, int area, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = x[i] * w[i % 4] + noise_gain[0] + (float)noise_source[1];
    if (image != nullptr) image[i] = v;
    unsigned char* const slot = *host_slot;
    if (slot == nullptr) return;
    const float byte = fminf(fmaxf(v * 10.0f, 0.0f), 255.0f);
    for (int c = 0; c < 4; c++) slot[4 * i + c] = (unsigned char)byte;
    if (i % area == 0 && !isfinite(v)) reinterpret_cast<unsigned*>(slot + flag_at)[i / area] = 1u;
}
""",
)


def zero_copy_schedule() -> Schedule:
    """`hand_schedule` whose image is optional, and with `WHOLE` in place of both launches."""
    schedule = hand_schedule()
    scale, paint = schedule.launches
    paint = replace(paint, optional=("image",))
    whole = Launch(
        layer="first",
        label="whole",
        stands_for="plain_scale",
        recipe=WHOLE,
        grid=scale.grid,
        block=scale.block,
        shared_nbytes=0,
        arguments={
            "image": paint.arguments["image"],
            "host_slot": Address(HOST_SLOT, "region"),
            "x": scale.arguments["x"],
            "w": scale.arguments["w"],
            "noise_gain": scale.arguments["noise_gain"],
            "noise_source": paint.arguments["noise_source"],
            "flag_at": np.int32(FLAG_AT),
            "area": np.int32(AREA),
            "n": np.int32(BATCH * AREA),
        },
        optional=("image",),
    )
    slot = replace(host_slot(), offset=0)
    moved = tuple(replace(region, offset=region.offset + 256) for region in schedule.regions)
    return replace(
        schedule, regions=(slot, *moved), launches=(scale, paint), nbytes=schedule.nbytes + 256, zero_copy=whole
    )


def whole(
    driver: FakeDriver,
    image: int,
    host_slot: int,
    x: int,
    w: int,
    noise_gain: int,
    noise_source: int,
    flag_at: np.int32,
    area: np.int32,
    n: np.int32,
) -> None:
    """Stand for `WHOLE`."""
    count = int(n)
    values = driver.view(x, (count,), "float32") * np.tile(driver.view(w, (4,), "float32"), count // len(W))
    values += driver.view(noise_gain, (1,), "float32") + np.float32(driver.view(noise_source, (4,), "uint32")[1])
    if image:
        driver.view(image, (count,), "float32")[:] = values
    slot = int(driver.view(host_slot, (1,), "uint64")[0])
    if not slot:
        return
    driver.view(slot, (count, 4), "uint8")[:] = np.clip(values * np.float32(10), 0, 255).astype(np.uint8)[:, None]
    flags = driver.view(slot + int(flag_at), (count // int(area),), "uint32")
    flags[~np.isfinite(values[:: int(area)])] = 1


def zero_copy_lower(
    plan: Plan, weights: object, target: object, *, plain: Any = None, everything_plain: bool = False
) -> Schedule:
    """As `hand_lower`, with the zero-copy kernel where kernels are fused and it did not fail."""
    hand = hand_lower(plan, {}, target, plain=plain, everything_plain=everything_plain)
    scale, paint = hand.launches
    found = zero_copy_schedule()
    has_whole = not everything_plain and scale.is_fused and WHOLE.digest not in (plain or {})
    if not has_whole:
        return replace(hand, launches=(scale, replace(paint, optional=("image",))))
    return replace(found, plan=plan, launches=(scale, replace(paint, optional=("image",))))


class ZeroCopyDriver(FakeDriver):
    """Knows the kernels of the schedule, and that a null pointer is no memory: what is written there is gone."""

    def __init__(self, *_: object, run: Callable[..., None] = whole) -> None:
        super().__init__({**hand_driver().kernels, "whole": FakeKernel(run, 30.0)})

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """An array over memory."""
        return np.zeros(shape, dtype) if address == 0 else super().view(address, shape, dtype)


class ZeroCopyHarness(BoundPlanHarness):
    """A fake GPU with that schedule bound to it."""

    def __init__(self) -> None:
        super().__init__(ZeroCopyDriver)

    @staticmethod
    def schedule() -> Schedule:
        """The bound plan."""
        return zero_copy_schedule()
