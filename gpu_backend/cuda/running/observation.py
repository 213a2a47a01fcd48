"""Outputs of all layers, to inspect the network: one run, launch by launch.

Layers do not leave their outputs behind in a run. Each operation says how its output is read
(`gpu_backend.cuda.launches.gpu_op.Observation`): most launches run again with other arguments, so that a
convolution gives its output before the next layer's style and without a resnet's skip, a toRGB its own picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments, pack_arguments
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.cuda.launches.gpu_op import OBSERVED, Observation, region_of
from gpu_backend.cuda.launches.op_table import GPU_OPS
from gpu_backend.cuda.schedule import Address, Argument, Launch, Region, Schedule
from gpu_backend.plan.plan import Step

_ZEROS = Address("observed/zeros", "region")


def observe_layers(
    driver: Driver,
    pool: MemoryPool,
    schedule: Schedule,
    kernels: Sequence[LoadedKernel],
    regions: Mapping[str, int],
    constants: Mapping[str, int],
) -> dict[str, NDArray[np.float32]]:
    """Run a schedule and return layer name -> output, (batch, channels, height, width), in execution order.

    Inputs are on the device. `kernels` holds one kernel for each launch.
    """
    observer = _Observer(driver, pool, schedule, regions, constants)
    observed: dict[str, NDArray[np.float32]] = {}
    for launch, kernel in zip(schedule.launches, kernels, strict=True):
        observed.update(observer.run(launch, kernel))
    order = [step.layer for step in schedule.plan.steps]
    return {layer: observed[layer] for layer in dict.fromkeys(order) if layer in observed}


class _Observer:
    def __init__(
        self,
        driver: Driver,
        pool: MemoryPool,
        schedule: Schedule,
        places: Mapping[str, int],
        constants: Mapping[str, int],
    ) -> None:
        self._driver = driver
        self._pool = pool
        self._places = places
        self._constants = constants
        self._regions: dict[str, Region] = {region.name: region for region in schedule.regions}
        self._steps: dict[tuple[str, str], Step] = {(step.layer, step.op): step for step in schedule.plan.steps}

    def run(self, launch: Launch, kernel: LoadedKernel) -> dict[str, NDArray[np.float32]]:
        """Run a launch; return the outputs of the layers that it writes."""
        found: dict[str, NDArray[np.float32]] = {}
        held: dict[str, Observation] = {}
        # The runs beside come first: the usual one then writes what the launches after it read.
        for layer, op in self._written(launch):
            step = self._steps.get((layer, op))  # None: toRGB's products, beside the layer before it
            wanted = None if step is None else GPU_OPS[op].observe(step, launch, self._regions)
            if wanted is not None and wanted.changes:
                found[layer] = self._run_beside(launch, kernel, wanted)
            elif wanted is not None:
                held[layer] = wanted
        self._start(launch, kernel, launch.arguments, {})
        found.update((layer, self._fetch(wanted, self._places[wanted.region])) for layer, wanted in held.items())
        return found

    def _written(self, launch: Launch) -> Iterator[tuple[str, str]]:
        """Yield layers that a launch writes, and their operations."""
        if not launch.convolutions:
            yield launch.layer, launch.op
        for layer in launch.convolutions:
            yield from (key for key in self._steps if key[0] == layer)
        yield from ((layer, "to_rgb") for layer in launch.pictures)

    def _run_beside(self, launch: Launch, kernel: LoadedKernel, wanted: Observation) -> NDArray[np.float32]:
        """Start a launch with other arguments, one of which is memory for the output."""
        arguments = dict(launch.arguments)
        arguments.update(wanted.changes)
        borrowed: dict[str, int] = {}
        try:
            borrowed[OBSERVED.name] = self._pool.reserve(int(np.prod(wanted.shape)) * np.dtype(wanted.dtype).itemsize)
            if wanted.zeros is not None:
                region = region_of(launch.arguments[wanted.zeros], self._regions)
                zeros = np.zeros(region.shape, region.dtype)
                arguments[wanted.zeros] = _ZEROS
                borrowed[_ZEROS.name] = self._pool.reserve(zeros.nbytes)
                self._driver.upload(borrowed[_ZEROS.name], zeros)
            self._start(launch, kernel, arguments, borrowed)
            return self._fetch(wanted, borrowed[OBSERVED.name])
        finally:
            for address in borrowed.values():
                self._pool.release(address)

    def _start(
        self, launch: Launch, kernel: LoadedKernel, arguments: Mapping[str, Argument], borrowed: Mapping[str, int]
    ) -> None:
        packed: PackedArguments = pack_arguments(
            launch.recipe, arguments, {**self._places, **borrowed}, self._constants, self._driver.tensor_map
        )
        self._driver.launch(kernel, launch.grid, launch.block, launch.shared_nbytes, packed)

    def _fetch(self, wanted: Observation, address: int) -> NDArray[np.float32]:
        array: NDArray[Any] = np.empty(wanted.shape, wanted.dtype)
        self._driver.download(array, address)
        return wanted.finish(array)
