"""The roofline of the device: how fast it copies, how fast it multiplies matrices of random numbers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from gpu_backend.bench.report import Ceiling
from gpu_backend.bench.torch_side import DTYPES, arithmetic, events_ms

_GPU_COPY_NBYTES = 1 << 30
_CPU_COPY_NBYTES = 1 << 27
_GPU_SIDE = 8192
_CPU_SIDE = 1536
_CPU_PRECISIONS = ("fp32", "bf16")
_WARM_UP = 3
_RUNS = 15


def measured_ceiling(device: torch.device) -> Ceiling:
    """Measure torch's device: a copy far larger than its caches, square products of normal numbers.

    Random numbers matter: with zeros a GPU draws less power and clocks higher than with any real network.
    """
    is_cuda = device.type == "cuda"
    copied, copy = _copy(_GPU_COPY_NBYTES if is_cuda else _CPU_COPY_NBYTES, device)
    copy_s = _median_s(copy, device)
    del copy
    side = _GPU_SIDE if is_cuda else _CPU_SIDE
    rates = {}
    for precision in DTYPES if is_cuda else _CPU_PRECISIONS:
        with arithmetic(precision):
            rates[precision] = 2 * side**3 / _median_s(_product(side, precision, device), device)
    if is_cuda:
        rates["bf16x3"] = rates["bf16"] / 3  # three products of bf16 make one
        torch.cuda.empty_cache()
    return Ceiling(copied / copy_s, rates, is_measured=True)


def _copy(nbytes: int, device: torch.device) -> tuple[int, Callable[[], object]]:
    source = torch.zeros(nbytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * nbytes, lambda: target.copy_(source)


def _product(side: int, precision: str, device: torch.device) -> Callable[[], object]:
    a, b = (torch.randn(side, side, device=device).to(DTYPES[precision]) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _median_s(run: Callable[[], object], device: torch.device) -> float:
    """Median seconds of a run, by events on a GPU."""
    with torch.inference_mode():
        if device.type == "cuda":
            times_ms = events_ms(_WARM_UP + _RUNS, run, device)
        else:
            times_ms = [_clocked_ms(run) for _ in range(_WARM_UP + _RUNS)]
    return statistics.median(times_ms[_WARM_UP:]) / 1e3


def _clocked_ms(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3
