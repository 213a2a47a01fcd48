"""torch as the peers use it: device, arithmetic, and reasons why a combination is unavailable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_OLDEST_TF32 = (8, 0)


def cuda_problem() -> str:
    """Return why torch cannot use a GPU here; empty if it can."""
    if torch.version.cuda is None:
        return f"this torch ({torch.__version__}) is a build without CUDA"
    if not torch.cuda.is_available():
        return f"this torch ({torch.__version__}, for CUDA {torch.version.cuda}) finds no GPU"
    return ""


def precision_problem(precision: str, device: torch.device) -> str:
    """Return why torch lacks a precision on a device; empty if it has it."""
    if device.type != "cuda":
        return "tf32 is arithmetic of GPUs" if precision == "tf32" else ""
    if precision == "tf32" and torch.cuda.get_device_capability(device) < _OLDEST_TF32:
        return "this GPU has no tf32"
    if precision == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return "this GPU has no bf16"
    return ""


@contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """Let cuDNN search for the fastest convolutions, and use tf32 only if requested."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.allow_tf32, torch.get_float32_matmul_precision()
    tf32 = precision == "tf32"
    try:
        _set(True, tf32, "high" if tf32 else "highest")
        yield
    finally:
        _set(*before)


def events_ms(runs: int, run: Callable[[], object], device: torch.device) -> list[float]:
    """Enqueue a number of runs, each between two events, wait for all, and return the time of each."""
    make: Any = torch.cuda.Event
    events = [(make(enable_timing=True), make(enable_timing=True)) for _ in range(runs)]
    with torch.cuda.device(device):
        for first, last in events:
            first.record()
            run()
            last.record()
        torch.cuda.synchronize(device)
    return [float(first.elapsed_time(last)) for first, last in events]


def _set(benchmark: bool, conv_tf32: bool, matmul: str) -> None:
    torch.backends.cudnn.benchmark = benchmark
    torch.backends.cudnn.allow_tf32 = conv_tf32
    torch.set_float32_matmul_precision(matmul)
