"""Kernels of a GPU compiled and loaded by a driver of their own, and the end of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.ops.kernels.recipe import KernelRecipe


class HoldsMemory(Protocol):
    """What was placed on a device."""

    def close(self) -> None:
        """Free the memory."""
        ...


def load_kernels(recipes: Sequence[KernelRecipe], gpu: Gpu) -> tuple[Driver, Mapping[KernelRecipe, LoadedKernel]]:
    """Compile and load kernels; takes seconds where they are not in the cache.

    Raises
    ------
    DeviceError
        If one does not compile, or the device refuses; nothing is left then.
    """
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    compiled = compile_kernels(recipes, gpu.compile_architecture)
    for error in compiled.failures.values():
        raise error
    driver = GpuDriver(gpu.index)
    try:
        driver.enter()
        return driver, {recipe: driver.load(kernel.cubin, recipe) for recipe, kernel in compiled.kernels.items()}
    except BaseException:
        driver.close()
        raise


def close_all(driver: Driver, placed: HoldsMemory, kernels: Sequence[LoadedKernel]) -> None:
    """Free memory and kernels, and close their driver."""
    placed.close()
    for kernel in kernels:
        driver.unload(kernel)
    driver.close()
