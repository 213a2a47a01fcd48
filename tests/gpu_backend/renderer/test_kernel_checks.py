"""Self-checks in steps, on a GPU made of Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_backend.cuda.compiling.compilation import Compilation
from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.driver import probe
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.running import self_check
from gpu_backend.cuda.running.self_check import SelfCheckRecord, doubtful_recipes
from gpu_backend.errors import DeviceLostError
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.renderer import kernel_checks as module, kernels
from gpu_backend.renderer.kernel_checks import KernelChecks, kernel_checks
from tests.helpers.fake_gpu import FAKE_GPU, FakeDriver, FakeKernel
from tests.helpers.hand_schedule import (
    AREA,
    BATCH,
    SCALE,
    expected_image,
    hand_driver,
    hand_lower,
    hand_schedule,
    scale_wrongly,
)
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2()


def compiled(recipes: Iterable[KernelRecipe], architecture: str) -> Compilation:
    return Compilation({recipe: CompiledKernel(b"", 32, 0, 16) for recipe in recipes}, {})


def executor_on(driver: FakeDriver, folder: Path) -> CudaExecutor:
    record = SelfCheckRecord(folder, "driver")
    return CudaExecutor(
        MODEL, precision="fp32", driver=driver, gpu=FAKE_GPU, record=record, compiled=compiled, lowered=hand_lower
    )


def checks_on(driver: FakeDriver, folder: Path) -> KernelChecks:
    return KernelChecks(MODEL, "fp32", lambda: executor_on(driver, folder))


def test_each_step_runs_at_most_one_fused_kernel_and_the_renderer_made_afterwards_checks_nothing(
    tmp_path: Path,
) -> None:
    driver = hand_driver()
    checks = checks_on(driver, tmp_path)
    progress = []
    while not checks.is_done:
        before = driver.launches
        checks.step()
        progress.append(checks.progress)
        assert driver.launches - before <= 8, "a kernel, its plain ones, and comparisons"
    assert progress[-1] == (1, 1)
    assert len(progress) >= 4
    assert not driver.device, "the GPU is free for the renderer"
    second = hand_driver()
    executor_on(second, tmp_path).bind(hand_schedule().plan)
    assert second.launches == 0


def test_a_kernel_that_is_wrong_is_known_to_the_renderer_that_is_made_afterwards(tmp_path: Path) -> None:
    driver = hand_driver()
    driver.kernels = {**driver.kernels, "scale": FakeKernel(scale_wrongly)}
    checks = checks_on(driver, tmp_path)
    while not checks.is_done:
        checks.step()
    assert executor_on(hand_driver(), tmp_path).fallbacks == {SCALE.digest: "its self-check was off by 10.0% in first"}


def test_checks_that_are_stopped_free_the_gpu(tmp_path: Path) -> None:
    driver = hand_driver()
    checks = checks_on(driver, tmp_path)
    for _ in range(3):
        checks.step()
    assert driver.device
    checks.close()
    checks.close()
    assert not driver.device
    checks.step()
    assert checks.is_done


def test_another_plan_of_the_executor_may_run_between_two_checks(tmp_path: Path) -> None:
    executor = executor_on(hand_driver(), tmp_path)
    plan = hand_schedule().plan
    other = executor.bind(plan, use_fused=False)
    x = np.linspace(0.0, 1.0, BATCH * AREA, dtype=np.float32).reshape(BATCH, AREA)
    inputs = {"x": x, "noise_gain": np.ones(3, np.float32), "noise_source": np.zeros(4, np.uint32)}
    steps = 0
    for _ in executor.check_steps(plan):
        steps += 1
        assert np.allclose(other.run(inputs, outputs=("image",))["image"], expected_image(x))
    assert steps >= 3
    assert executor.fallbacks == {}
    executor.close()


def test_a_gpu_that_is_lost_ends_the_checks(tmp_path: Path) -> None:
    def stop(driver: FakeDriver, **_: object) -> None:
        driver.lose_after = 0
        raise DeviceLostError("The device was lost.")

    driver = hand_driver()
    driver.kernels = {**driver.kernels, "scale": FakeKernel(stop)}
    checks = checks_on(driver, tmp_path)
    with pytest.raises(DeviceLostError):  # noqa: PT012 - which step raises it does not matter
        for _ in range(100):
            checks.step()
    assert checks.is_done


def test_on_the_cpu_there_is_nothing_to_check() -> None:
    assert kernel_checks(MODEL, "cpu") is None


def test_a_gpu_is_checked_until_every_kernel_that_only_the_fused_schedule_has_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = SelfCheckRecord(tmp_path, "driver")
    schedule = hand_schedule()
    fused, plain = schedule, replace(schedule, launches=schedule.launches[1:])
    (only_fused,) = doubtful_recipes(fused, plain)
    monkeypatch.setattr(module, "choose_gpu", lambda device: FAKE_GPU)
    monkeypatch.setattr(probe, "probe", lambda: SimpleNamespace(driver="580"))
    monkeypatch.setattr(self_check, "record_of", lambda gpu, driver: record)
    monkeypatch.setattr(kernels, "schedules_of", lambda model, gpu, precision: (fused, fused, plain))
    checks = kernel_checks(MODEL)
    assert checks is not None
    assert (checks.is_done, checks.progress) == (False, (0, 0))
    record.note(dict.fromkeys(plain.recipes, ""))
    assert kernel_checks(MODEL) is not None
    record.note({only_fused: ""})
    assert kernel_checks(MODEL) is None
