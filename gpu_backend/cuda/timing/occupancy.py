"""How kernels sit on a GPU: theoretical occupancy and waves, beside what the compiler said."""

from __future__ import annotations

import math

from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.schedule import Launch
from gpu_backend.frame import KernelFacts, KernelState

_WARP = 32


def kernel_facts(driver: Driver, gpu: Gpu, kernel: LoadedKernel, launch: Launch) -> KernelFacts:
    """Return the facts of a launch on a GPU.

    occupancy = blocks that fit a multiprocessor * warps of a block / warps that a multiprocessor can hold
    waves = blocks of the grid / (blocks that fit a multiprocessor * multiprocessors)
    """
    threads = math.prod(launch.block)
    resident = driver.blocks_per_multiprocessor(kernel, threads, launch.shared_nbytes)
    warps = -(-threads // _WARP)
    held_at_once = resident * gpu.multiprocessors
    return KernelFacts(
        grid=launch.grid,
        block=launch.block,
        registers=kernel.registers,
        shared_nbytes=kernel.shared_nbytes + launch.shared_nbytes,
        spill_nbytes=kernel.local_nbytes,
        occupancy=min(1.0, resident * warps * _WARP / gpu.threads_per_multiprocessor),
        waves=math.prod(launch.grid) / held_at_once if held_at_once else 0.0,
        state=_state(launch),
        reason=launch.reason,
        digest=launch.recipe.digest,
    )


def _state(launch: Launch) -> KernelState:
    if launch.is_fused:
        return "fused"
    return "fallback" if launch.reason else "plain"
