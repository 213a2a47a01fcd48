"""Properties that NVML reports of this machine's NVIDIA GPUs, including GPUs on which CUDA does not start."""

from __future__ import annotations

import functools
import os
from typing import Any


def gpu_names() -> tuple[str, ...]:
    """Return the names in the driver's order; empty if there is no driver or no answer."""
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
            return tuple(_text(pynvml.nvmlDeviceGetName(handle)) for handle in handles)
        finally:
            pynvml.nvmlShutdown()
    # Any error of the library or its driver means that there are no names.
    except Exception:
        return ()


def process_nbytes_on(uuid: str) -> int:
    """Return the memory that this process holds on a GPU, in bytes; 0 if NVML does not report it.

    The driver's context, kernels and libraries are included; page-locked host memory is not. A call takes about 0.1 ms,
    the first one longer.

    Parameters
    ----------
    uuid
        As in `gpu_backend.cuda.driver.probe.Gpu`: ``"GPU-..."``.
    """
    try:
        import pynvml

        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(_handle(uuid))
    # As above: no error here is worth reporting. The driver of Windows, and containers that hide the
    # numbers of their processes, are such cases.
    except Exception:
        return 0
    return next((int(item.usedGpuMemory or 0) for item in processes if item.pid == os.getpid()), 0)


def joules_of(uuid: str) -> float | None:
    """Return the energy that a GPU used since its driver was loaded, in joules; None if NVML does not report it.

    The driver updates the counter every 20 to 100 ms, so differences over less than a second mean little. GPUs before
    Volta have no counter.
    """
    try:
        import pynvml

        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(_handle(uuid))) / 1e3
    except Exception:  # as above
        return None


@functools.cache
def _handle(uuid: str) -> Any:
    """Start NVML, which then stays started until the process ends, and return its handle of a GPU."""
    import pynvml

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(uuid)


def _text(name: object) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
