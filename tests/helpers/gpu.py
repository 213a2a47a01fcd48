"""Runs single kernels on the first GPU.

``run_launches`` is harsher than a frame: memory that nothing wrote is full of NaN, a guard stands around each region,
and regions that every run must leave zero are looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.driver.arguments import pack_arguments
from gpu_backend.cuda.driver.probe import Gpu, probe
from gpu_backend.cuda.schedule import Constant, Launch, Region
from gpu_backend.cuda.tiles import target
from gpu_backend.ops.kernels.recipe import KernelRecipe

_GUARD_NBYTES = 256
_GUARD_BYTE = 0xA5
_POISON_BYTE = 0xFF
"""Four of these bytes are a NaN in float32, two in float16."""


def first_gpu() -> Gpu:
    """The GPU that tests use, found by the fixture `gpu`."""
    return probe().gpus[0]


def target_of(gpu: Gpu) -> target.Target:
    """The target of lowering, with the shipped tiles."""
    return target.target_of(gpu, None)


def run_launches(
    launches: Sequence[Launch],
    regions: Sequence[Region],
    constants: Sequence[Constant],
    inputs: Mapping[str, NDArray[Any]],
    *,
    runs: int = 1,
) -> dict[str, NDArray[Any]]:
    """Run launches in order and return every region.

    Parameters
    ----------
    regions
        Offsets are not looked at: each lies for itself. Regions of the role ``zeroed`` start as zero, all others hold
        NaN or what `inputs` says.
    inputs
        Region -> array of its shape and type; any region may be given, whatever its role.
    runs
        How often, on the same memory, with nothing written between: the second run must give the same.

    Raises
    ------
    AssertionError
        If a kernel wrote outside a region, left a ``zeroed`` region not zero, or a second run gave something else.
    """
    # Imported here: without a GPU nothing may load the driver's bindings.
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    gpu = first_gpu()
    compiled = _compiled((launch.recipe for launch in launches), gpu.compile_architecture)
    driver = GpuDriver(gpu.index)
    kernels = {recipe: driver.load(kernel.cubin, recipe) for recipe, kernel in compiled.items()}
    held: list[int] = []

    def place(content: NDArray[np.uint8]) -> int:
        guard = np.full(_GUARD_NBYTES, _GUARD_BYTE, np.uint8)
        whole = np.concatenate([guard, content, guard])
        held.append(driver.reserve(whole.nbytes))
        driver.upload(held[-1], whole)
        return held[-1] + _GUARD_NBYTES

    try:
        places = {region.name: place(_start(region, inputs.get(region.name))) for region in regions}
        unknown = set(inputs) - set(places)
        assert not unknown, f"no region is called {sorted(unknown)}"
        fixed = {item.key: place(_bytes(np.ascontiguousarray(item.make()))) for item in constants}
        arguments = [
            pack_arguments(launch.recipe, launch.arguments, places, fixed, driver.tensor_map) for launch in launches
        ]
        results: dict[str, NDArray[Any]] = {}
        for run in range(runs):
            for launch, packed in zip(launches, arguments, strict=True):
                driver.launch(kernels[launch.recipe], launch.grid, launch.block, launch.shared_nbytes, packed)
            now = {region.name: _fetch(driver, region, places[region.name]) for region in regions}
            for name in results:
                assert results[name].tobytes() == now[name].tobytes(), f"run {run + 1} gave another {name}"
            results = now
        return results
    finally:
        for address in held:
            driver.release(address)
        for kernel in kernels.values():
            driver.unload(kernel)
        driver.close()


def used_on_device() -> int:
    """Used bytes of the current GPU's memory; 0 beside other test processes, whose use varies."""
    import cuda.bindings.driver as driver

    if "PYTEST_XDIST_WORKER" in os.environ:
        return 0
    outcome, free, total = driver.cuMemGetInfo()
    assert not int(outcome)
    return int(total - free)


def _compiled(recipes: Iterable[KernelRecipe], architecture: str) -> Mapping[KernelRecipe, CompiledKernel]:
    """Return kernels through the cache that GPU tests share."""
    done = compile_kernels(recipes, architecture)
    for error in done.failures.values():
        raise error
    return done.kernels


def _start(region: Region, given: NDArray[Any] | None) -> NDArray[np.uint8]:
    dtype = np.dtype(region.dtype)
    nbytes = int(np.prod(region.shape)) * dtype.itemsize
    if given is None:
        return np.full(nbytes, 0 if region.role == "zeroed" else _POISON_BYTE, np.uint8)
    assert given.shape == region.shape, f"{region.name} has the shape {region.shape}, but {given.shape} was given"
    assert given.dtype == dtype, f"{region.name} is {dtype}, but {given.dtype} was given"
    return _bytes(np.ascontiguousarray(given))


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(array.tobytes(), np.uint8)


def _fetch(driver: Any, region: Region, place: int) -> NDArray[Any]:
    dtype = np.dtype(region.dtype)
    nbytes = int(np.prod(region.shape)) * dtype.itemsize
    whole = np.empty(nbytes + 2 * _GUARD_NBYTES, np.uint8)
    driver.download(whole, place - _GUARD_NBYTES)
    assert (whole[:_GUARD_NBYTES] == _GUARD_BYTE).all(), f"a kernel wrote before {region.name}"
    assert (whole[-_GUARD_NBYTES:] == _GUARD_BYTE).all(), f"a kernel wrote past {region.name}"
    array = whole[_GUARD_NBYTES:-_GUARD_NBYTES].copy().view(dtype).reshape(region.shape)
    if region.role == "zeroed":
        assert not array.any(), f"{region.name} was not left zero"
    return array
