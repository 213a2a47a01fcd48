"""The hand-made schedule through everything, on a real GPU: cache, kernels, graph, pinned pictures, times, errors."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.compiling.compiler import compile_kernel
from gpu_backend.cuda.compiling.kernel_cache import KernelCache
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.running.self_check import SelfCheckRecord
from gpu_backend.errors import DeviceLostError, DeviceMemoryError
from gpu_backend.plan.executor import PendingRun
from tests.helpers.gpu import used_on_device
from tests.helpers.hand_kernels import hand_kernel
from tests.helpers.hand_schedule import (
    AREA,
    BATCH,
    SCALE,
    expected_image,
    expected_pixels,
    hand_lower,
    hand_schedule,
)
from tests.helpers.networks import make_stylegan2
from tests.helpers.own_process import run_alone

pytestmark = pytest.mark.gpu

PLAN = hand_schedule().plan


@pytest.fixture
def executor(gpu: Gpu, tmp_path: Path) -> Iterator[CudaExecutor]:
    cache = KernelCache(tmp_path / "kernels")
    made = CudaExecutor(
        make_stylegan2(),
        gpu.index,
        "fp32",
        record=SelfCheckRecord(tmp_path, gpu.uuid),
        compiled=lambda recipes, architecture: compile_kernels(recipes, architecture, cache=cache),
        lowered=hand_lower,
    )
    yield made
    made.close()


def make_x(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 4, (BATCH, AREA)).astype(np.float32)


CAPTURES = {"events": 2, "cupti": 1}
"""Graphs of a plan that was measured: events need one of their own."""


def test_pictures_are_what_the_kernels_compute(executor: CudaExecutor) -> None:
    bound = executor.bind(PLAN)
    x = make_x(0)
    got = bound.run({"x": x}, outputs=("pixels", "image", "flags"))
    assert np.allclose(got["image"], expected_image(x), rtol=1e-6)
    assert np.abs(got["pixels"].astype(int) - expected_pixels(x)).max() <= 1
    assert not got["flags"].any()
    x[1, 0] = np.inf
    assert bound.run({"x": x})["flags"].tolist() == [0, 1]


def test_graph_and_no_graph_agree_bit_for_bit(executor: CudaExecutor) -> None:
    bound = executor.bind(PLAN)
    for seed in range(20):
        x = make_x(seed)
        with_graph = bound.run({"x": x}, outputs=("pixels", "image"), use_graph=True)
        kept = {name: array.copy() for name, array in with_graph.items()}
        without = bound.run({}, outputs=("pixels", "image"), use_graph=False)
        for name, array in without.items():
            assert array.tobytes() == kept[name].tobytes(), name
    assert bound.captures == 1


def test_fused_and_plain_agree(executor: CudaExecutor) -> None:
    fused, plain = executor.bind(PLAN), executor.bind(PLAN, use_fused=False)
    assert [launch.label for launch in plain.schedule.launches] == ["plain_scale", "paint"]
    x = make_x(1)
    assert np.array_equal(fused.run({"x": x})["pixels"], plain.run({"x": x})["pixels"])


def test_two_runs_in_flight_keep_their_pictures_apart(executor: CudaExecutor) -> None:
    bound = executor.bind(PLAN)
    runs = []
    for seed in range(30):
        runs.append((seed, bound.submit({"x": make_x(seed)}, outputs=("pixels", "flags"))))
        if len(runs) == 2:
            early, run = runs.pop(0)
            assert np.abs(run.wait()["pixels"].astype(int) - expected_pixels(make_x(early))).max() <= 1


def test_pictures_outlive_runs_and_the_plan(executor: CudaExecutor) -> None:
    bound = executor.bind(PLAN)
    pictures = [bound.run({"x": make_x(seed)})["pixels"] for seed in range(6)]
    executor.close()
    for seed, picture in enumerate(pictures):
        assert np.abs(picture.astype(int) - expected_pixels(make_x(seed))).max() <= 1
    del picture
    pictures.clear()
    gc.collect()


def test_each_kernel_is_timed_and_described(executor: CudaExecutor) -> None:
    bound = executor.bind(PLAN)
    for seed in range(20):
        bound.run({"x": make_x(seed)})
    pending = bound.submit({"x": make_x(0)}, measure=True)
    pending.wait()
    assert [step.kernel for step in pending.steps] == ["scale", "paint"]
    assert pending.device_ms is not None
    assert pending.device_ms > 0
    total_us = sum(step.time_us for step in pending.steps)
    if pending.timing_source == "cupti":
        assert total_us < pending.device_ms * 1e3, "the gaps belong to no kernel"
    else:
        assert total_us == pytest.approx(pending.device_ms * 1e3, rel=0.05)
    for step in pending.steps:
        assert step.time_us > 0
        facts = step.facts
        assert facts is not None
        assert facts.registers > 0
        assert facts.spill_nbytes == 0
        assert 0 < facts.occupancy <= 1
        assert facts.waves > 0
    assert bound.captures == CAPTURES[pending.timing_source]


def test_ten_thousand_runs_grow_nothing(executor: CudaExecutor) -> None:
    bound = executor.bind(PLAN)
    x = make_x(0)
    for _ in range(100):
        pending = bound.submit({"x": x}, measure=True)
        pending.wait()
    before, pinned = used_on_device(), bound.pinned_nbytes
    for number in range(10_000):
        bound.run({"noise_source": np.array([1, number, 0, 0], np.uint32)}, measure=number % 500 == 0)
    assert used_on_device() <= before
    assert bound.pinned_nbytes == pinned
    assert bound.captures == CAPTURES[pending.timing_source]


def test_closing_gives_the_memory_back(gpu: Gpu, executor: CudaExecutor) -> None:
    executor.bind(PLAN).run({"x": make_x(0)})
    before, held = used_on_device(), (executor.nbytes, executor.pinned_nbytes)
    for _ in range(20):
        bound = executor.bind(PLAN)
        bound.run({"x": make_x(0)}, measure=True)
        bound.close()
        assert bound.nbytes == 0
    gc.collect()
    assert (executor.nbytes, executor.pinned_nbytes) == held
    assert used_on_device() <= before + (2 << 20)


def test_plans_that_come_and_go_while_others_run_spoil_no_picture(executor: CudaExecutor) -> None:
    bound = executor.bind(PLAN)
    runs: deque[tuple[int, PendingRun]] = deque()
    for seed in range(60):
        runs.append((seed, bound.submit({"x": make_x(seed)})))
        if seed % 3 == 0:
            former, bound = bound, executor.bind(PLAN)
            runs.append((seed, bound.submit({"x": make_x(seed)})))
            former.close()
        while len(runs) > 2:
            early, run = runs.popleft()
            assert np.abs(run.wait()["pixels"].astype(int) - expected_pixels(make_x(early))).max() <= 1
    runs.clear()
    bound.run({})
    nbytes, pinned, used = executor.nbytes, executor.pinned_nbytes, used_on_device()
    for seed in range(60):
        former, bound = bound, executor.bind(PLAN)
        former.submit({"x": make_x(seed)})
        former.close()
        bound.run({"x": make_x(seed)})
    gc.collect()
    assert used_on_device() <= used + (2 << 20)
    assert executor.nbytes == nbytes
    assert executor.pinned_nbytes <= pinned


def test_a_kernel_may_use_all_the_shared_memory_that_a_block_can_have(gpu: Gpu) -> None:
    from gpu_backend.cuda.driver.arguments import PackedArguments
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    source = """
    extern "C" __global__ void wide(unsigned* y, int count) {
        extern __shared__ unsigned staged[];
        for (int i = threadIdx.x; i < count; i += blockDim.x) staged[i] = i;
        __syncthreads();
        unsigned sum = 0;
        for (int i = threadIdx.x; i < count; i += blockDim.x) sum += staged[count - 1 - i];
        atomicAdd(y, sum);
    }
    """
    driver = GpuDriver(gpu.index)
    wide = hand_kernel("wide", source)
    kernel = driver.load(compile_kernel(wide, gpu.compile_architecture).cubin, wide)
    address = driver.reserve(4)
    driver.zero(address, 4)
    count = gpu.shared_nbytes_per_block_optin // 4
    driver.launch(
        kernel,
        (1, 1, 1),
        (256, 1, 1),
        4 * count,
        PackedArguments(wide.parameters, {"y": np.uint64(address), "count": count}),
    )
    found = np.zeros(1, np.uint32)
    driver.download(found, address)
    assert int(found[0]) == count * (count - 1) // 2
    assert driver.blocks_per_multiprocessor(kernel, 256, 4 * count) == 1
    driver.release(address)
    driver.unload(kernel)
    driver.close()


def test_a_kernel_of_another_architecture_is_refused_in_one_sentence(gpu: Gpu) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    other = "sm_75" if gpu.architecture != "sm_75" else "sm_120"
    driver = GpuDriver(gpu.index)
    with pytest.raises(KernelError, match="scale"):
        driver.load(compile_kernel(SCALE, other).cubin, SCALE)
    driver.close()


def test_more_memory_than_there_is_is_refused_and_the_gpu_still_works(gpu: Gpu, executor: CudaExecutor) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    bound = executor.bind(PLAN)
    driver = GpuDriver(gpu.index)
    with pytest.raises(DeviceMemoryError):
        driver.reserve(2 * gpu.memory_nbytes)
    driver.close()
    x = make_x(0)
    assert np.abs(bound.run({"x": x})["pixels"].astype(int) - expected_pixels(x)).max() <= 1


def _crash(index: int, folder: str) -> None:
    """Lose the device by a kernel that writes where nothing is; runs in a process of its own."""
    source = 'extern "C" __global__ void scale(float* h) { *(volatile float*)(16 + 4 * threadIdx.x) = 1.0f; }'
    crashing = hand_kernel("scale", source)

    def lowered(*args: Any, **settings: Any) -> Any:
        schedule = hand_lower(*args, **settings)
        first, second = schedule.launches
        if not settings.get("everything_plain"):
            first = replace(first, recipe=crashing, arguments={"h": first.arguments["h"]})
        return replace(schedule, launches=(first, second))

    record = SelfCheckRecord(Path(folder), "nothing")
    record.note({crashing: ""})
    executor = CudaExecutor(make_stylegan2(), index, "fp32", record=record, lowered=lowered)
    bound = executor.bind(PLAN)
    run = bound.submit({})
    for _ in range(2):
        with pytest.raises(DeviceLostError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            run.wait()
    with pytest.raises(DeviceLostError):
        bound.submit({})
    with pytest.raises(DeviceLostError):
        executor.bind(PLAN)
    bound.close()
    executor.close()
    executor.close()


def test_a_lost_device_is_said_once_more_by_everything_and_nothing_hangs(gpu: Gpu, tmp_path: Path) -> None:
    run_alone("tests.gpu_backend.cuda.test_on_a_gpu:_crash", gpu.index, str(tmp_path))
