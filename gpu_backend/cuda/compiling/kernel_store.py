"""The kernels of an executor on the device, each loaded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpu_backend.cuda.compiling.compilation import Compilation
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.errors import KernelError
from gpu_backend.ops.kernels.recipe import KernelRecipe


class KernelStore:
    """Loaded kernels by recipe."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._loaded: dict[KernelRecipe, LoadedKernel] = {}

    @property
    def kernels(self) -> Mapping[KernelRecipe, LoadedKernel]:
        """All that are loaded."""
        return self._loaded

    def missing(self, recipes: Iterable[KernelRecipe]) -> tuple[KernelRecipe, ...]:
        """Recipes of these that are not loaded, each once."""
        return tuple(dict.fromkeys(recipe for recipe in recipes if recipe not in self._loaded))

    def load(self, compilation: Compilation) -> dict[KernelRecipe, KernelError]:
        """Load what was compiled; return what did not compile or load, and why.

        Raises
        ------
        DeviceMemoryError, DeviceLostError
            If the device failed.
        """
        failures = dict(compilation.failures)
        for recipe, kernel in compilation.kernels.items():
            if recipe in self._loaded:
                continue
            try:
                self._loaded[recipe] = self._driver.load(kernel.cubin, recipe)
            except KernelError as error:
                failures[recipe] = error
        return failures

    def close(self) -> None:
        """Unload everything. May be called twice."""
        for kernel in self._loaded.values():
            self._driver.unload(kernel)
        self._loaded.clear()
