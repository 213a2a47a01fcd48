"""The probe's queries, answered by the driver and NVRTC of this machine."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

from gpu_backend.driver_library import driver_is_installed
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MultiprocessorLimits:
    """What a multiprocessor has for the blocks that are resident on it.

    Attributes
    ----------
    registers
        32-bit registers.
    shared_nbytes, reserved_nbytes
        Shared memory, and what the system takes of it for each block.
    blocks
        Most blocks.
    """

    registers: int
    shared_nbytes: int
    reserved_nbytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class FoundGpu:
    """A GPU as the driver describes it."""

    index: int
    name: str
    capability: tuple[int, int]
    memory_nbytes: int
    multiprocessors: int
    shared_nbytes_per_block_optin: int
    l2_nbytes: int
    uuid: str
    threads_per_multiprocessor: int = 2048
    clock_khz: int = 0
    memory_clock_khz: int = 0
    memory_bus_bits: int = 0
    limits: MultiprocessorLimits | None = None


class InstalledSystem:
    """Implements `gpu_backend.cuda.driver.probe.System`."""

    def initialise(self) -> str:
        """Load the driver's library and start it.

        Raises
        ------
        RuntimeError
            If there is no driver; nothing of cuda-bindings is imported then.
        ImportError
            If cuda-bindings is missing.
        """
        if not driver_is_installed():
            raise RuntimeError("the driver's library is not installed")
        import cuda.bindings.driver as driver

        (outcome,) = driver.cuInit(0)
        return str(outcome.name)

    def driver_version(self) -> str:
        """Query NVML, which may be missing although CUDA works."""
        import pynvml

        pynvml.nvmlInit()
        try:
            version = pynvml.nvmlSystemGetDriverVersion()
        finally:
            pynvml.nvmlShutdown()
        return version.decode() if isinstance(version, bytes) else str(version)

    def cuda_version(self) -> tuple[int, int]:
        """Newest CUDA that the driver runs."""
        import cuda.bindings.driver as driver

        number = _checked(driver.cuDriverGetVersion())
        return number // 1000, number % 1000 // 10

    def nvrtc(self) -> tuple[tuple[int, int], tuple[int, ...]]:
        """Version of NVRTC and the architectures that it compiles for, as 75, 80, ..."""
        import cuda.bindings.nvrtc as nvrtc

        outcome, major, minor = nvrtc.nvrtcVersion()
        listed, architectures = nvrtc.nvrtcGetSupportedArchs()
        if int(outcome) or int(listed):
            raise RuntimeError(f"NVRTC answered {outcome.name}, {listed.name}")
        return (int(major), int(minor)), tuple(int(number) for number in architectures)

    def gpus(self) -> tuple[FoundGpu, ...]:
        """All GPUs that the driver shows to this process."""
        import cuda.bindings.driver as driver

        return tuple(_describe(index) for index in range(_checked(driver.cuDeviceGetCount())))


def _describe(index: int) -> FoundGpu:
    import cuda.bindings.driver as driver

    device = _checked(driver.cuDeviceGet(index))
    names = driver.CUdevice_attribute

    def attribute(name: str) -> int:
        return int(_checked(driver.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), device)))

    def attribute_or_zero(name: str) -> int:
        with contextlib.suppress(RuntimeError, AttributeError):
            return attribute(name)
        return 0

    name = bytes(_checked(driver.cuDeviceGetName(256, device)))
    return FoundGpu(
        index=index,
        name=name.split(b"\0", 1)[0].decode("utf-8", "replace"),
        capability=(attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
        memory_nbytes=int(_checked(driver.cuDeviceTotalMem(device))),
        multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
        shared_nbytes_per_block_optin=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        l2_nbytes=attribute("L2_CACHE_SIZE"),
        uuid=f"GPU-{uuid.UUID(bytes=bytes(_checked(driver.cuDeviceGetUuid(device)).bytes))}",
        threads_per_multiprocessor=attribute("MAX_THREADS_PER_MULTIPROCESSOR"),
        clock_khz=attribute_or_zero("CLOCK_RATE"),
        memory_clock_khz=attribute_or_zero("MEMORY_CLOCK_RATE"),
        memory_bus_bits=attribute_or_zero("GLOBAL_MEMORY_BUS_WIDTH"),
        limits=MultiprocessorLimits(
            registers=attribute("MAX_REGISTERS_PER_MULTIPROCESSOR"),
            shared_nbytes=attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            reserved_nbytes=attribute("RESERVED_SHARED_MEMORY_PER_BLOCK"),
            blocks=attribute("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        ),
    )


def _checked(answer: tuple[Any, ...]) -> Any:
    if int(answer[0]):
        raise RuntimeError(f"the driver answered {answer[0].name}")
    return answer[1]
