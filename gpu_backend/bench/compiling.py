"""Time until a model's kernels are ready: compiled into an empty cache, and read from it at the next start."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gpu_backend.bench.report import Compiling
from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.compiling.kernel_cache import KernelCache
from gpu_backend.device import choose_gpu
from gpu_backend.model.model import Model
from gpu_backend.plan.plan import Precision
from gpu_backend.renderer.kernels import recipes_of


def measure_compiling(
    model: Model, device: str, precision: Precision, clock: Callable[[], float] = time.perf_counter
) -> Compiling | None:
    """Make a model's kernels ready twice, by way of a cache of their own; None on the processor.

    Raises
    ------
    DeviceError
        If there is no such device, or no compiler.
    """
    gpu = choose_gpu(device)
    if gpu is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        times_s = []
        for _ in range(2):
            start_s = clock()
            recipes = recipes_of(model, gpu, precision)
            compile_kernels(recipes, gpu.compile_architecture, cache=KernelCache(Path(folder)))
            times_s.append(clock() - start_s)
    return Compiling(precision, len(recipes), os.cpu_count() or 1, times_s[0], times_s[1])
