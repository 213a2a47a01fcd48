"""Kernels on somebody else's stream: loaded once, launched where they are told to be."""

from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.compiling.kernel_cache import KernelCache
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.errors import KernelError
from gpu_backend.errors import DeviceError
from gpu_backend.ops.kernels.recipe import KernelRecipe

GPU = Gpu(0, "a GPU", "sm_90", "sm_90a", 1 << 30, 132, 232448, 1 << 20, "GPU-0")


class FakeDriver:
    """Notes what it is asked to load."""

    def __init__(self, index: int) -> None:
        self.loaded: list[str] = []

    def enter(self) -> None:
        """Nothing to enter."""

    def load(self, cubin: bytes, recipe: KernelRecipe) -> Any:
        """Take machine code."""
        assert cubin.startswith(b"\x7fELF")
        self.loaded.append(recipe.stem)
        return type("Loaded", (), {"function": 7, "entry": recipe.stem})()


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
    from gpu_backend.cuda.running import external_stream_kernels

    monkeypatch.setattr(external_stream_kernels, "GpuDriver", FakeDriver)
    return external_stream_kernels


def test_a_kernel_is_compiled_and_loaded_once(guest: Any) -> None:
    kernels = guest.ExternalStreamKernels(GPU)
    kernels.load_all([KernelRecipe("empty"), KernelRecipe("normalize_2nd_moment")])
    assert kernels.load(KernelRecipe("empty")) is kernels.load(KernelRecipe("empty"))
    assert sorted(kernels._driver.loaded) == ["empty", "normalize_2nd_moment"]
    assert len(list(KernelCache().folder.glob("*.kernel"))) >= 2


def test_a_kernel_that_does_not_compile_is_named(guest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelRecipe, "source", property(lambda recipe: "not C++"))
    with pytest.raises(KernelError, match="empty"):
        guest.ExternalStreamKernels(GPU).load(KernelRecipe("empty"))


def test_a_launch_goes_to_the_stream_and_an_error_is_a_sentence(guest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[Any, ...]] = []
    outcomes = [guest.cuda.CUresult.CUDA_SUCCESS, guest.cuda.CUresult.CUDA_ERROR_INVALID_VALUE]

    def launch(*words: Any) -> tuple[Any]:
        called.append(words)
        return (outcomes[len(called) - 1],)

    monkeypatch.setattr(guest.cuda, "cuLaunchKernel", launch)
    kernels = guest.ExternalStreamKernels(GPU)
    kernel = KernelRecipe("normalize_2nd_moment")
    kernels.launch(kernel, (3, 2, 1), 256, {"x": None, "y": np.uint64(64), "features": 5}, 99)
    assert called[0][:7] == (7, 3, 2, 1, 256, 1, 1)
    assert called[0][8] == 99
    with pytest.raises(DeviceError, match="starting the kernel empty"):
        kernels.launch(KernelRecipe("empty"), (1, 1, 1), 256, {}, 0)
    with pytest.raises(ValueError, match="lack"):
        kernels.launch(kernel, (1, 1, 1), 256, {"x": None}, 0)
