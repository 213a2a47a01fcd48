"""Kernels launched on an external stream: torch's, in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cuda.bindings.driver as cuda

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.arguments import PackedArguments, Value
from gpu_backend.cuda.driver.gpu_driver import GpuDriver
from gpu_backend.cuda.driver.interface import LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.errors import driver_error
from gpu_backend.ops.kernels.recipe import KernelRecipe


class ExternalStreamKernels:
    """Kernels of one GPU, compiled or read from the cache on first use; they stay loaded.

    The context is the process's own for that GPU, which torch uses, too.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._architecture = gpu.compile_architecture
        self._driver = GpuDriver(gpu.index)
        self._loaded: dict[KernelRecipe, LoadedKernel] = {}

    def load(self, recipe: KernelRecipe) -> LoadedKernel:
        """Return a kernel.

        Raises
        ------
        KernelError
            If it does not compile, or the driver refuses it.
        DeviceError
            If the GPU does not take it.
        """
        if recipe not in self._loaded:
            self.load_all((recipe,))
        return self._loaded[recipe]

    def load_all(self, recipes: Sequence[KernelRecipe]) -> None:
        """Make kernels ready, compiling several at once. Raises as `load` does."""
        done = compile_kernels(recipes, self._architecture)
        for error in done.failures.values():
            raise error
        self._driver.enter()
        for recipe, kernel in done.kernels.items():
            if recipe not in self._loaded:
                self._loaded[recipe] = self._driver.load(kernel.cubin, recipe)

    def launch(
        self,
        recipe: KernelRecipe,
        grid: tuple[int, int, int],
        threads: int,
        arguments: Mapping[str, Value],
        stream: int,
    ) -> None:
        """Start a kernel on a stream, given by its handle; captured if the stream is being captured.

        Raises
        ------
        ValueError
            If the arguments, by name, do not fit the kernel's parameters.
        KernelError, DeviceError
            As `load`, or if the driver does not take it.
        """
        kernel = self.load(recipe)
        packed = PackedArguments(recipe.parameters, arguments)  # the driver copies the values before it returns
        (outcome,) = cuda.cuLaunchKernel(kernel.function, *grid, threads, 1, 1, 0, stream, packed.address, 0)
        if int(outcome):
            raise driver_error(str(outcome.name), f"starting the kernel {kernel.entry}")
