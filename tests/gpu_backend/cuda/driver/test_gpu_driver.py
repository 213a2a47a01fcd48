"""A driver call that fails in the middle. In place of the driver stands something that lists its calls; no GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpu_backend.cuda.driver import gpu_driver
from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.driver.gpu_driver import GpuDriver
from gpu_backend.cuda.driver.interface import LoadedKernel
from gpu_backend.cuda.errors import KernelError
from gpu_backend.errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpu_backend.ops.kernels.recipe import KernelRecipe

GOOD = "CUDA_SUCCESS"


class Bindings:
    """`cuda.bindings.driver`, whose calls succeed with a number of their own unless a test says otherwise."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failing: dict[str, str] = {}
        for name in (
            "CUdevice_attribute",
            "CUstream_flags",
            "CUstreamCaptureMode",
            "CUevent_flags",
            "CUfunction_attribute",
            "CUlaunchAttribute",
            "CUlaunchAttributeID",
            "CUlaunchConfig",
            "CUstream",
        ):
            setattr(self, name, getattr(vars(gpu_driver)["cuda"], name))

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append(name)
            word = self.failing.get(name, GOOD)
            return _Outcome(word), len(self.calls)

        return call


class _Outcome(SimpleNamespace):
    def __init__(self, word: str) -> None:
        super().__init__(name=word)

    def __int__(self) -> int:
        return int(self.name != GOOD)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> Bindings:
    made = Bindings()
    monkeypatch.setattr(gpu_driver, "cuda", made)
    return made


@pytest.mark.parametrize(
    ("failing", "freed"),
    [
        ("cuStreamBeginCapture", []),
        ("cuStreamEndCapture", []),
        ("cuGraphInstantiate", ["cuGraphDestroy"]),
        ("cuGraphUpload", ["cuGraphDestroy", "cuGraphExecDestroy"]),
    ],
)
def test_a_graph_that_is_not_made_is_freed_as_far_as_it_was(bindings: Bindings, failing: str, freed: list[str]) -> None:
    driver = GpuDriver(0)
    bindings.failing[failing] = "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(DeviceMemoryError):
        driver.capture(lambda: None)
    assert [name for name in bindings.calls if "Destroy" in name] == freed
    bindings.failing.clear()
    driver.capture(lambda: None)


def test_a_capture_whose_work_fails_is_ended(bindings: Bindings) -> None:
    driver = GpuDriver(0)

    def work() -> None:
        raise RuntimeError("No.")

    with pytest.raises(RuntimeError, match="No"):
        driver.capture(work)
    assert bindings.calls[-2:] == ["cuStreamEndCapture", "cuGraphDestroy"]


def test_a_kernel_that_is_refused_is_taken_off_again(bindings: Bindings) -> None:
    driver = GpuDriver(0)
    bindings.failing["cuFuncLoad"] = "CUDA_ERROR_NO_BINARY_FOR_GPU"
    with pytest.raises(DeviceError, match="refuses the kernel styles"):
        driver.load(b"code", KernelRecipe("styles"))
    assert bindings.calls[-2:] == ["cuModuleUnload", "cuCtxPopCurrent"]


@pytest.mark.parametrize("is_cooperative", [False, True])
def test_blocks_that_wait_for_each_other_are_launched_together(bindings: Bindings, is_cooperative: bool) -> None:
    driver = GpuDriver(0)
    kernel = LoadedKernel(None, None, "first_layers", 0, 0, 0, is_cooperative=is_cooperative)
    arguments = cast("PackedArguments", SimpleNamespace(address=0))
    driver.launch(kernel, (1, 1, 1), (32, 1, 1), 0, arguments)
    launched = "cuLaunchCooperativeKernel" if is_cooperative else "cuLaunchKernel"
    assert bindings.calls[-1] == launched
    bindings.failing[launched] = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
    with pytest.raises(KernelError, match="refuses the kernel first_layers"):
        driver.launch(kernel, (1, 1, 1), (32, 1, 1), 0, arguments)


EARLY = LoadedKernel(None, None, "to_rgb", 0, 0, 0, starts_early=True)


def hopper(bindings: Bindings) -> GpuDriver:
    """A GPU whose kernels may start early, with a stream that a launch can name."""
    vars(bindings)["cuDeviceGetAttribute"] = lambda *_: (_Outcome(GOOD), 9)
    driver = GpuDriver(0)
    driver._stream = bindings.CUstream(0)
    return driver


def launches(driver: GpuDriver, count: int = 2) -> None:
    arguments = cast("PackedArguments", SimpleNamespace(address=0))
    for index in range(count):
        driver.launch(EARLY, (1, 1, 1), (32, 1, 1), 0, arguments, follows_kernel=index > 0)


def test_a_kernel_that_follows_another_starts_early_if_it_may(bindings: Bindings) -> None:
    launches(hopper(bindings))
    assert [name for name in bindings.calls if "Launch" in name] == ["cuLaunchKernel", "cuLaunchKernelEx"]


def test_a_driver_that_refuses_early_starts_is_asked_once(bindings: Bindings) -> None:
    driver = hopper(bindings)
    bindings.failing["cuLaunchKernelEx"] = "CUDA_ERROR_NOT_SUPPORTED"
    launches(driver, 4)
    assert bindings.calls.count("cuLaunchKernelEx") == 1
    assert bindings.calls.count("cuLaunchKernel") == 4


@pytest.mark.parametrize("failing", ["cuLaunchKernelEx", "cuStreamEndCapture", "cuGraphInstantiate"])
def test_a_graph_that_is_refused_is_captured_without_early_starts(bindings: Bindings, failing: str) -> None:
    driver = hopper(bindings)
    bindings.failing[failing] = "CUDA_ERROR_INVALID_HANDLE"
    tries: list[int] = []

    def work() -> None:
        if tries:
            bindings.failing.clear()
        tries.append(1)
        launches(driver)

    driver.capture(work)
    assert len(tries) == 2
    assert [name for name in bindings.calls if "Launch" in name][-2:] == ["cuLaunchKernel", "cuLaunchKernel"]
    bindings.failing["cuGraphInstantiate"] = "CUDA_ERROR_INVALID_HANDLE"
    with pytest.raises(DeviceError):
        driver.capture(lambda: launches(driver))


KERNEL = KernelRecipe("normalize_2nd_moment")  # two pointers and a number


def report(bindings: Bindings, sizes: tuple[int, ...], end: str = "CUDA_ERROR_INVALID_VALUE") -> None:
    """Let the driver report parameters of these sizes, and then an outcome."""

    def parameter(function: Any, index: int) -> tuple[Any, ...]:
        del function
        return (_Outcome(GOOD), 0, sizes[index]) if index < len(sizes) else (_Outcome(end), 0, 0)

    vars(bindings)["cuFuncGetParamInfo"] = parameter


@pytest.mark.parametrize("sizes", [(8, 8), (8, 4, 8), (8, 8, 4, 4)])
def test_a_kernel_with_other_parameters_than_launches_give_is_not_loaded(
    bindings: Bindings, sizes: tuple[int, ...]
) -> None:
    report(bindings, sizes)
    with pytest.raises(KernelError, match="has other parameters than its launches give"):
        GpuDriver(0).load(b"code", KERNEL)
    assert bindings.calls[-2:] == ["cuModuleUnload", "cuCtxPopCurrent"]


def test_a_kernel_is_loaded_by_a_driver_that_reports_its_parameters_and_by_one_that_cannot(bindings: Bindings) -> None:
    report(bindings, (8, 8, 4))
    assert GpuDriver(0).load(b"code", KERNEL).entry == KERNEL.stem
    report(bindings, (), "CUDA_ERROR_NOT_SUPPORTED")
    assert GpuDriver(0).load(b"code", KERNEL).entry == KERNEL.stem

    def missing(*arguments: object) -> None:
        raise RuntimeError('Function "cuFuncGetParamInfo" not found')

    vars(bindings)["cuFuncGetParamInfo"] = missing
    assert GpuDriver(0).load(b"code", KERNEL).entry == KERNEL.stem


def test_freeing_leaves_the_thread_the_gpu_that_it_works_with(bindings: Bindings) -> None:
    driver = GpuDriver(0)
    bindings.calls.clear()
    driver.release_pinned(1)
    assert bindings.calls == ["cuCtxPushCurrent", "cuMemFreeHost", "cuCtxPopCurrent"]
    bindings.failing["cuCtxPushCurrent"] = "CUDA_ERROR_CONTEXT_IS_DESTROYED"
    bindings.calls.clear()
    driver.release_pinned(1)
    assert bindings.calls == ["cuCtxPushCurrent", "cuMemFreeHost"], "nothing of others is taken off"


def test_an_empty_closed_or_lost_stream_is_idle(bindings: Bindings) -> None:
    driver = GpuDriver(0)
    assert driver.is_idle()
    bindings.failing["cuStreamQuery"] = "CUDA_ERROR_NOT_READY"
    assert not driver.is_idle()
    bindings.failing["cuStreamQuery"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert driver.is_idle()
    driver.close()
    bindings.calls.clear()
    assert driver.is_idle()
    assert bindings.calls == []


def test_after_a_loss_entering_reports_it_and_freeing_says_nothing(bindings: Bindings) -> None:
    driver = GpuDriver(0)
    bindings.failing["cuEventSynchronize"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(DeviceLostError):
        driver.wait(driver.make_event())
    with pytest.raises(DeviceLostError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        driver.enter()
    bindings.failing |= dict.fromkeys(
        ("cuCtxPushCurrent", "cuMemFree", "cuStreamDestroy"), "CUDA_ERROR_ILLEGAL_ADDRESS"
    )
    driver.release(1)
    driver.close()
    driver.close()
    assert bindings.calls.count("cuStreamDestroy") == 2
