"""How kernels sit on a GPU: theoretical occupancy, what limits it, and waves, beside what the compiler said."""

from __future__ import annotations

import math

from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.schedule import Launch
from gpu_backend.frame import KernelFacts, KernelState

_WARP = 32
_REGISTER_UNIT = 256
"""Registers are given to warps in such runs, and belong to one of the parts of a multiprocessor."""

_PARTS = 4
_SHARED_UNIT = {"sm_75": 256}
_USUAL_SHARED_UNIT = 128
"""Bytes in which shared memory is given to blocks."""


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
        limits=occupancy_limits(gpu, threads, kernel.registers, kernel.shared_nbytes + launch.shared_nbytes),
    )


def occupancy_limits(gpu: Gpu, threads: int, registers: int, shared_nbytes: int) -> tuple[str, ...]:
    """Return the resources that allow the fewest blocks on a multiprocessor; empty if the GPU's are unknown."""
    blocks = resident_blocks(gpu, threads, registers, shared_nbytes)
    fewest = min(blocks.values(), default=0)
    return tuple(name for name, count in blocks.items() if count == fewest)


def resident_blocks(gpu: Gpu, threads: int, registers: int, shared_nbytes: int) -> dict[str, int]:
    """Return how many blocks each resource of a multiprocessor has room for; empty if they are unknown.

    warps             warps that a multiprocessor can hold / warps of a block
    registers         warps of all parts / warps of a block, of a part: its registers / (those of a warp, rounded up)
    shared memory     shared memory / (a block's and what the system reserves for it, rounded up)
    """
    limits = gpu.limits
    if limits is None:
        return {}
    warps = -(-threads // _WARP)
    of_warp = _rounded_up(max(registers, 1) * _WARP, _REGISTER_UNIT)
    warps_by_registers = limits.registers // _PARTS // of_warp * _PARTS
    unit = _SHARED_UNIT.get(gpu.architecture, _USUAL_SHARED_UNIT)
    of_block = _rounded_up(shared_nbytes + limits.reserved_nbytes, unit)
    return {
        "registers": warps_by_registers // warps,
        "shared memory": limits.shared_nbytes // of_block if of_block else limits.blocks,
        "warps": gpu.threads_per_multiprocessor // _WARP // warps,
        "blocks": limits.blocks,
    }


def _rounded_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _state(launch: Launch) -> KernelState:
    if launch.is_fused:
        return "fused"
    return "fallback" if launch.reason else "plain"
