"""From a plan to a bound one on a GPU made of Python: compiling, checking, falling back, sharing, freeing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda import executor as executor_module
from gpu_backend.cuda.compiling.compilation import Compilation
from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.driver.interface import LoadedKernel
from gpu_backend.cuda.driver.probe import Probe
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.executor import CudaExecutor, Lower
from gpu_backend.cuda.running.self_check import SelfCheckRecord
from gpu_backend.errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.fake_gpu import FAKE_GPU, FakeDriver, FakeKernel
from tests.helpers.hand_schedule import (
    AREA,
    BATCH,
    PAINT,
    PLAIN_SCALE,
    SCALE,
    expected_pixels,
    hand_driver,
    hand_lower,
    hand_schedule,
    scale_wrongly,
)
from tests.helpers.networks import make_stylegan2
from tests.helpers.zero_copy_schedule import WHOLE, ZeroCopyDriver, whole, zero_copy_lower

PLAN = hand_schedule().plan


class Bench:
    """Executors over one folder of records, each with a driver of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = make_stylegan2()
        self.compiled: list[KernelRecipe] = []
        self.broken: set[KernelRecipe] = set()

    def open(self, driver: FakeDriver, lowered: Lower = hand_lower) -> CudaExecutor:
        return CudaExecutor(
            self.model,
            precision="fp32",
            driver=driver,
            gpu=FAKE_GPU,
            record=SelfCheckRecord(self.folder, "driver"),
            compiled=self._compile,
            lowered=lowered,
        )

    def _compile(self, recipes: Iterable[KernelRecipe], architecture: str) -> Compilation:
        assert architecture == "sm_80"
        listed = list(recipes)
        self.compiled += listed
        return Compilation(
            {recipe: CompiledKernel(b"", 32, 0, 16) for recipe in listed if recipe not in self.broken},
            {recipe: KernelError("No.", phrase="it is broken") for recipe in listed if recipe in self.broken},
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def labels(bound: Any) -> list[str]:
    return [launch.label for launch in bound.schedule.launches]


def make_x() -> np.ndarray:
    return np.random.default_rng(0).uniform(0, 4, (BATCH, AREA)).astype(np.float32)


@pytest.mark.parametrize(("problem", "says"), [("No NVIDIA driver was found.", "No NVIDIA driver"), ("", "no GPU 3")])
def test_a_gpu_that_is_not_there_is_said(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, problem: str, says: str
) -> None:
    found = Probe(() if problem else (FAKE_GPU,), problem, "", "13.0")
    monkeypatch.setattr(executor_module, "probe", lambda: found)
    with pytest.raises(DeviceError, match=says):
        CudaExecutor(bench.model, 3)


def test_where_something_is_missing_the_device_is_not_even_opened(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_compiler(*_: object) -> SelfCheckRecord:
        raise KernelError("NVRTC was not found.")

    opened: list[object] = []
    monkeypatch.setattr(executor_module, "record_of", no_compiler)
    monkeypatch.setattr(executor_module, "_open_driver", opened.append)
    with pytest.raises(KernelError, match="NVRTC"):
        CudaExecutor(bench.model, gpu=FAKE_GPU)
    assert opened == []


def test_a_plan_is_bound_and_runs(bench: Bench) -> None:
    executor = bench.open(hand_driver())
    assert (executor.device_name, executor.precision) == ("Fake GPU", "fp32")
    bound = executor.bind(PLAN)
    assert labels(bound) == ["scale", "paint"]
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))
    assert executor.nbytes > 0
    assert executor.pinned_nbytes == bound.pinned_nbytes > 0


def test_the_plain_way_can_be_requested(bench: Bench) -> None:
    executor = bench.open(hand_driver())
    fused, plain = executor.bind(PLAN), executor.bind(PLAN, use_fused=False)
    assert labels(plain) == ["plain_scale", "paint"]
    x = make_x()
    assert np.array_equal(plain.run({"x": x})["pixels"], fused.run({"x": x})["pixels"])


def test_kernels_are_compiled_and_loaded_once(bench: Bench) -> None:
    driver = hand_driver()
    executor = bench.open(driver)
    executor.bind(PLAN)
    loaded = len(driver.loaded)
    executor.bind(PLAN)
    assert len(driver.loaded) == loaded
    assert len(bench.compiled) == len(set(bench.compiled))


def test_a_plan_of_another_precision_is_refused(bench: Bench) -> None:
    executor = CudaExecutor(
        bench.model, driver=hand_driver(), gpu=FAKE_GPU, record=SelfCheckRecord(bench.folder), lowered=hand_lower
    )
    with pytest.raises(ValueError, match="fp16"):
        executor.bind(PLAN)


def test_a_kernel_that_does_not_compile_is_replaced_by_its_plain_counterpart(bench: Bench) -> None:
    bench.broken = {SCALE}
    executor = bench.open(hand_driver())
    bound = executor.bind(PLAN)
    assert labels(bound) == ["plain_scale", "paint"]
    assert bound.schedule.launches[0].reason == "it is broken"
    assert executor.fallbacks == {SCALE.digest: "it is broken"}
    pending = bound.submit({"x": make_x()}, measure=True)
    assert np.array_equal(pending.wait()["pixels"], expected_pixels(make_x()))
    facts = [step.facts for step in pending.steps]
    assert [(fact.state, fact.reason) for fact in facts if fact] == [("fallback", "it is broken"), ("fused", "")]


def test_a_kernel_that_does_not_load_gives_way_too(bench: Bench) -> None:
    executor = bench.open(hand_driver(refused=("scale",)))
    assert labels(executor.bind(PLAN)) == ["plain_scale", "paint"]
    assert SelfCheckRecord(bench.folder, "driver").failures == {SCALE.digest: "the driver refuses it (INVALID)"}
    assert labels(bench.open(hand_driver()).bind(PLAN)) == ["plain_scale", "paint"]


def test_a_kernel_that_did_not_compile_is_tried_again_at_the_next_start(bench: Bench) -> None:
    bench.broken = {SCALE}
    bench.open(hand_driver()).bind(PLAN)
    bench.broken = set()
    assert labels(bench.open(hand_driver()).bind(PLAN)) == ["scale", "paint"]


def test_where_the_cost_of_events_cannot_be_found_kernels_are_measured_nevertheless(bench: Bench) -> None:
    bench.broken = {executor_module.EMPTY}
    pending = bench.open(hand_driver()).bind(PLAN).submit({"x": make_x()}, measure=True)
    pending.wait()
    assert sum(step.time_us for step in pending.steps) == pytest.approx(25)


def test_a_kernel_for_which_there_is_no_other_is_an_error(bench: Bench) -> None:
    bench.broken = {PAINT}
    with pytest.raises(KernelError):
        bench.open(hand_driver()).bind(PLAN)


def test_a_plain_kernel_that_fails_is_an_error_and_no_endless_search(bench: Bench) -> None:
    bench.broken = {SCALE, PLAIN_SCALE}
    with pytest.raises(KernelError):
        bench.open(hand_driver()).bind(PLAN)


def test_a_kernel_that_computes_something_wrong_is_named_and_gives_way(bench: Bench) -> None:
    driver = hand_driver()
    driver.kernels = {**driver.kernels, "scale": FakeKernel(scale_wrongly)}
    executor = bench.open(driver)
    bound = executor.bind(PLAN)
    assert labels(bound) == ["plain_scale", "paint"]
    assert bound.schedule.launches[0].reason == "its self-check was off by 10.0% in first"
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))


def test_the_kernel_that_writes_to_the_host_is_checked_like_others(bench: Bench) -> None:
    driver = ZeroCopyDriver()
    bound = bench.open(driver, zero_copy_lower).bind(PLAN)
    assert WHOLE in bench.compiled
    assert SelfCheckRecord(bench.folder, "driver").knows(WHOLE)
    driver.copies_out.clear()
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))
    assert driver.copies_out == []
    second = ZeroCopyDriver()
    bench.open(second, zero_copy_lower).bind(PLAN)
    assert second.launches == 0


def test_where_it_is_wrong_or_does_not_compile_the_bytes_are_copied(bench: Bench) -> None:
    def wrong(driver: FakeDriver, image: int, **arguments: Any) -> None:
        whole(driver, image, **arguments)
        if image:
            driver.view(image, (BATCH * AREA,), "float32")[:] *= np.float32(1.1)

    driver = ZeroCopyDriver(run=wrong)
    executor = bench.open(driver, zero_copy_lower)
    bound = executor.bind(PLAN)
    assert executor.fallbacks == {WHOLE.digest: "its self-check was off by 10.0% in first"}
    driver.copies_out.clear()
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))
    assert len(driver.copies_out) == 1
    bench.folder = bench.folder / "other"
    bench.broken = {WHOLE}
    executor = bench.open(ZeroCopyDriver(), zero_copy_lower)
    assert labels(executor.bind(PLAN)) == ["scale", "paint"]
    assert executor.fallbacks == {WHOLE.digest: "it is broken"}


class Unwilling(FakeDriver):
    """Starts no kernel of the name "scale"."""

    def launch(self, kernel: LoadedKernel, *arguments: Any, follows_kernel: bool = False) -> None:
        if kernel.entry == "scale":
            raise KernelError("The driver refuses it.", phrase="the driver refuses it (CUDA_ERROR_INVALID_VALUE)")
        super().launch(kernel, *arguments, follows_kernel=follows_kernel)


def test_a_kernel_that_does_not_start_is_named_and_gives_way(bench: Bench) -> None:
    bound = bench.open(Unwilling(hand_driver().kernels)).bind(PLAN)
    assert labels(bound) == ["plain_scale", "paint"]
    assert bound.schedule.launches[0].reason == "the driver refuses it (CUDA_ERROR_INVALID_VALUE)"
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))


def test_a_kernel_that_stops_the_gpu_does_so_once_and_gives_way_from_the_next_start_on(bench: Bench) -> None:
    def stop(driver: FakeDriver, **_: object) -> None:
        driver.lose_after = 0
        raise DeviceLostError("The device was lost.")

    kernels = {**hand_driver().kernels, "scale": FakeKernel(stop)}
    executor = bench.open(FakeDriver(kernels))
    with pytest.raises(DeviceLostError):
        executor.bind(PLAN)
    executor.close()
    bound = bench.open(FakeDriver(kernels)).bind(PLAN)
    assert labels(bound) == ["plain_scale", "paint"]
    assert bound.schedule.launches[0].reason == "it stopped the GPU in its self-check in first"
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))


def test_a_kernel_is_checked_once_for_all_times(bench: Bench) -> None:
    first = hand_driver()
    bench.open(first).bind(PLAN)
    assert first.launches > 0
    second = hand_driver()
    bench.open(second).bind(PLAN)
    assert second.launches == 0


def test_a_plan_that_brings_no_new_kernel_is_not_lowered_the_plain_way_again(bench: Bench) -> None:
    lowered: list[bool] = []

    def lower(*arguments: Any, everything_plain: bool = False, **options: Any) -> Any:
        lowered.append(everything_plain)
        return hand_lower(*arguments, everything_plain=everything_plain, **options)

    executor = bench.open(hand_driver(), lower)
    executor.bind(PLAN)
    assert True in lowered
    lowered.clear()
    executor.bind(PLAN)
    assert lowered == [False]


def test_a_wrong_kernel_is_remembered_as_wrong(bench: Bench) -> None:
    driver = hand_driver()
    driver.kernels = {**driver.kernels, "scale": FakeKernel(scale_wrongly)}
    bench.open(driver).bind(PLAN)
    second = hand_driver()
    bound = bench.open(second).bind(PLAN)
    assert second.launches == 0
    assert labels(bound) == ["plain_scale", "paint"]


def test_checking_leaves_no_memory_behind(bench: Bench) -> None:
    driver = hand_driver()
    bound = bench.open(driver).bind(PLAN)
    bound.run({})
    assert sum(block.nbytes for block in driver.device.values()) == bound.nbytes + 16


def test_where_there_is_no_room_to_check_the_plan_is_bound_unchecked(bench: Bench) -> None:
    size = hand_schedule().nbytes
    driver = hand_driver(memory_nbytes=size + size // 2)
    bound = bench.open(driver).bind(PLAN)
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))
    roomy = hand_driver()
    bench.open(roomy).bind(PLAN)
    assert roomy.launches > 0


def test_a_plan_that_does_not_fit_leaves_the_others_as_they_were(bench: Bench) -> None:
    size = hand_schedule().nbytes
    driver = hand_driver(memory_nbytes=size + size // 2)
    executor = bench.open(driver)
    bound = executor.bind(PLAN)
    with pytest.raises(DeviceMemoryError):
        executor.bind(PLAN)
    assert np.array_equal(bound.run({"x": make_x()})["pixels"], expected_pixels(make_x()))
    bound.close()
    executor.bind(PLAN)


def test_closing_frees_everything_and_may_be_done_twice(bench: Bench) -> None:
    driver = hand_driver()
    executor = bench.open(driver)
    executor.bind(PLAN).run({"x": make_x()}, measure=True)
    executor.bind(PLAN, use_fused=False).submit({"x": make_x()})
    executor.close()
    executor.close()
    gc.collect()
    assert driver.is_empty
    assert driver.is_closed
    with pytest.raises(RuntimeError, match="closed"):
        executor.bind(PLAN)


def test_closing_after_the_device_was_lost_raises_nothing(bench: Bench) -> None:
    driver = hand_driver()
    executor = bench.open(driver)
    bound = executor.bind(PLAN)
    bound.run({"x": make_x()})
    driver.lose_after = 2
    pending = bound.submit({"x": make_x()})
    with pytest.raises(DeviceLostError):
        pending.wait()
    with pytest.raises(DeviceLostError):
        bound.submit({})
    with pytest.raises(DeviceLostError):
        executor.bind(PLAN)
    executor.close()
    assert driver.is_closed


def test_a_closed_executor_is_freed_without_the_collector(bench: Bench) -> None:
    """A model's weights are large, and the collector may be long in coming; within a test it does not come."""
    executor = bench.open(hand_driver())
    bound = executor.bind(PLAN)
    bound.run({"x": make_x()}, measure=True)
    gone: list[weakref.ref[Any]] = [weakref.ref(executor), weakref.ref(bound)]
    executor.close()
    del executor, bound
    assert [reference() for reference in gone] == [None, None]
