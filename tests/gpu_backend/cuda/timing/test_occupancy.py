"""How many blocks fit a multiprocessor, and what limits them: numbers of NVIDIA's occupancy calculator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_backend.cuda.driver.installed_system import MultiprocessorLimits
from gpu_backend.cuda.timing.occupancy import occupancy_limits, resident_blocks
from tests.helpers.fake_gpu import FAKE_GPU

H200 = replace(
    FAKE_GPU,
    architecture="sm_90",
    threads_per_multiprocessor=2048,
    limits=MultiprocessorLimits(registers=65536, shared_nbytes=233472, reserved_nbytes=1024, blocks=32),
)


@pytest.mark.parametrize(
    ("threads", "registers", "shared_nbytes", "blocks", "limits"),
    [
        (256, 32, 0, 8, ("registers", "warps")),
        (256, 33, 0, 6, ("registers",)),
        (256, 168, 0, 1, ("registers",)),
        (128, 168, 0, 3, ("registers",)),
        (128, 40, 100 << 10, 2, ("shared memory",)),
        (128, 40, 227 << 10, 1, ("shared memory",)),
        (32, 16, 0, 32, ("blocks",)),
        (1024, 32, 0, 2, ("registers", "warps")),
        (96, 24, 0, 21, ("warps",)),
    ],
)
def test_the_scarcest_resource_limits_the_blocks_of_a_multiprocessor(
    threads: int, registers: int, shared_nbytes: int, blocks: int, limits: tuple[str, ...]
) -> None:
    assert min(resident_blocks(H200, threads, registers, shared_nbytes).values()) == blocks
    assert occupancy_limits(H200, threads, registers, shared_nbytes) == limits


def test_turing_gives_shared_memory_in_larger_runs() -> None:
    limits = MultiprocessorLimits(registers=65536, shared_nbytes=65536, reserved_nbytes=0, blocks=16)
    turing = replace(FAKE_GPU, architecture="sm_75", threads_per_multiprocessor=1024, limits=limits)
    assert resident_blocks(turing, 64, 32, 257)["shared memory"] == 65536 // 512


def test_a_gpu_of_unknown_resources_has_no_limit() -> None:
    assert occupancy_limits(FAKE_GPU, 256, 32, 0) == ()
