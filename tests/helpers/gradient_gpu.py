"""The kernels of gradients on a GPU: its own ones, or those of an older one."""

from __future__ import annotations

from dataclasses import replace

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.gpu.kernels import kernels_of_step
from gpu_backend.ops.kernels.recipe import KernelRecipe


def loaded_kernels(driver: Driver, gpu: Gpu, taps: int, *, of_turing: bool = False) -> dict[KernelRecipe, LoadedKernel]:
    """Compile and load the kernels of a network whose resampling filter has so many taps.

    Parameters
    ----------
    of_turing
        The GPU runs what a Turing runs: its tiles, and the code of its level.
    """
    recipes = kernels_of_step(taps, "sm_75" if of_turing else gpu.compile_architecture, with_skips=True)
    level = (("LEVEL", "750"),) if of_turing else ()
    sources = {replace(recipe, defines=(*level, *recipe.defines)): recipe for recipe in recipes}
    compiled = compile_kernels(tuple(sources), gpu.compile_architecture)
    assert not compiled.failures
    return {sources[recipe]: driver.load(kernel.cubin, recipe) for recipe, kernel in compiled.kernels.items()}
