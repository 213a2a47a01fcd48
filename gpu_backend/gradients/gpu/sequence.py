"""Kernels that are enqueued one after another, each of which may start while the one before it ends."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_backend.cuda.driver.arguments import PackedArguments, Value
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.ops.kernels.recipe import KernelRecipe


class KernelSequence:
    """Enqueues kernels on the driver's stream.

    Parameters
    ----------
    kernels
        Loaded; they belong to the caller.
    """

    def __init__(self, driver: Driver, kernels: Mapping[KernelRecipe, LoadedKernel]) -> None:
        self._driver, self._kernels = driver, kernels
        self._follows_kernel = False
        """Whether nothing was enqueued since the last launch, so that the next kernel may start early."""

    def launch(
        self,
        recipe: KernelRecipe,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Mapping[str, Value],
        shared_nbytes: int = 0,
    ) -> None:
        """Enqueue a kernel. Arguments go by the names of its parameters, pointers as np.uint64 or None."""
        packed = PackedArguments(recipe.parameters, arguments)
        kernel, follows = self._kernels[recipe], self._follows_kernel
        self._driver.launch(kernel, grid, block, shared_nbytes, packed, follows_kernel=follows)
        self._follows_kernel = True

    def break_sequence(self) -> None:
        """Let the next launch wait for what is enqueued before it, which is no launch of this object."""
        self._follows_kernel = False
