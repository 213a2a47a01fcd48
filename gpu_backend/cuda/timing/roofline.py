"""What a GPU can do at best: measured on this very one if that was ever done, else worked out from its clocks.

    copies     memory clock * 2 transfers * bus width                               bytes per second
    products   clock * multiprocessors * operations per clock and multiprocessor    operations per second

Both are peaks at the clocks that the driver names: nothing quite reaches them.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from gpu_backend.cuda.compiling.kernel_cache import cache_folder
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.limits import LimitError, read_regular_file
from gpu_backend.plan.plan import Precision
from gpu_backend.whole_file import write_whole

Rates = tuple[float, float]
"""Bytes per second of copies, reading and writing both counted; operations per second."""

_MATRIX_FLOPS = {
    "sm_75": 1024,
    "sm_80": 2048,
    "sm_86": 1024,
    "sm_89": 1024,
    "sm_90": 4096,
    "sm_100": 8192,
    "sm_120": 1024,
}
"""Operations per clock and multiprocessor of the tensor cores, fp16 with fp32 sums, without sparsity.

tf32 has half as many, e4m3 twice as many; bf16x3 a third, since three products of bf16 make one.
"""

_PLAIN_FLOPS = {"sm_75": 128, "sm_80": 128, "sm_86": 256, "sm_89": 256, "sm_90": 256, "sm_100": 256, "sm_120": 256}
"""The same of plain fp32 arithmetic, a multiply-add counted twice."""

_MOST_NBYTES = 1 << 16
_FORMAT = 1


def theoretical_rates(gpu: Gpu, precision: Precision) -> Rates | None:
    """Return what a GPU's clocks promise; None where the driver does not name them, or the architecture is unknown."""
    flops = (_PLAIN_FLOPS if precision == "fp32" else _MATRIX_FLOPS).get(gpu.architecture)
    if (
        flops is None
        or (precision in ("tf32", "bf16x3") and gpu.architecture == "sm_75")
        or not (gpu.clock_khz and gpu.memory_clock_khz and gpu.memory_bus_bits)
    ):
        return None
    if precision != "fp32" and "GeForce" in gpu.name:
        flops //= 2  # GeForce cards add up fp32 sums at half the rate of the same chip elsewhere
    if precision == "tf32":
        flops //= 2
    if precision == "bf16x3":
        flops //= 3
    if precision == "fp8":
        flops *= 2
    copies = gpu.memory_clock_khz * 1e3 * 2 * gpu.memory_bus_bits / 8
    return copies, gpu.clock_khz * 1e3 * gpu.multiprocessors * flops


def measured_rates(gpu: Gpu, precision: Precision, folder: Path | None = None) -> Rates | None:
    """Return what was measured on a GPU; None if nothing was, or the file is not whole."""
    path = _path(gpu, folder)
    try:
        found = json.loads(read_regular_file(path, _MOST_NBYTES, "measured rates"))
        if found["format"] != _FORMAT:
            return None
        rates = float(found["copy_bytes_per_s"]), float(found["flop_per_s"][precision])
    except (OSError, LimitError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return rates if all(math.isfinite(rate) and rate > 0 for rate in rates) else None


def keep_measured_rates(
    gpu: Gpu, copy_bytes_per_s: float, flop_per_s: Mapping[str, float], folder: Path | None = None
) -> None:
    """Keep what was measured on a GPU, by precision; a disk that refuses costs nothing but the measurement."""
    data = {"format": _FORMAT, "name": gpu.name, "copy_bytes_per_s": copy_bytes_per_s, "flop_per_s": dict(flop_per_s)}
    path = _path(gpu, folder)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(data, indent=1) + "\n").encode())


def _path(gpu: Gpu, folder: Path | None) -> Path:
    name = re.sub(r"[^A-Za-z0-9-]+", "-", gpu.uuid) or "gpu"
    return (folder or cache_folder() / "roofline") / f"{name}.json"
