"""One frame on the CPU: the plain eager network beside this package's plan, in the same process.

    python -m gpu_backend.bench.cpu_frame --resolution 256 --base 16384 --max 512 --threads 2

The two take turns, so that whatever else the machine does meets both. Printed are the median time of each step, medians
and minima of both over the turns, and the verdict.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gpu_backend.bench.plain_stylegan2 import PlainSynthesis
from gpu_backend.bench.random_model import random_network
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.plan import Step
from gpu_backend.plan.stylegan2 import build_synthesis_plan

_WARM_UP = 2
_REST_S = 0.02
"""Pause before each turn: torch's own threads stay awake for some milliseconds after their last work."""


@dataclass(frozen=True)
class Measurement:
    """Milliseconds of each turn, and the median microseconds of each step."""

    peer_ms: tuple[float, ...]
    ours_ms: tuple[float, ...]
    steps: tuple[tuple[Step, float], ...]

    @property
    def ratio(self) -> float:
        """How many times as fast this package is, by medians."""
        return statistics.median(self.peer_ms) / statistics.median(self.ours_ms)


def measure(resolution: int, base: int, maximum: int, *, threads: int, runs: int) -> Measurement:
    """Run both `runs` times in turn, then this package's steps one by one."""
    torch.set_num_threads(threads)
    spec, weights = random_network(resolution, base, maximum)
    executor = CpuExecutor(weights, threads=threads)
    bound = executor.bind(build_synthesis_plan(spec, "random"))
    peer = PlainSynthesis(resolution, base, maximum)
    ws = np.random.default_rng(1).standard_normal((1, spec.num_ws, spec.w_dim), dtype=np.float32)
    rows = torch.from_numpy(ws)
    peer_ms, ours_ms, steps = [], [], []
    with torch.inference_mode():
        for turn in range(_WARM_UP + runs):
            times = _timed_ms(lambda: peer(rows)), _timed_ms(lambda: bound.run({"ws": ws}))
            if turn >= _WARM_UP:
                peer_ms.append(times[0])
                ours_ms.append(times[1])
        for _ in range(max(3, runs // 2)):
            steps.append([step.time_us for step in bound.submit({}, measure=True).steps])
    executor.close()
    medians = [statistics.median(times) for times in zip(*steps, strict=True)]
    return Measurement(tuple(peer_ms), tuple(ours_ms), tuple(zip(bound.plan.steps, medians, strict=True)))


def report(measurement: Measurement) -> str:
    """Tables for a terminal."""
    total = sum(time_us for _, time_us in measurement.steps)
    lines = [f"{'step':<26}{'operation':<20}{'ms':>8}{'share':>8}{'GFLOP/s':>10}"]
    for step, time_us in measurement.steps:
        speed = step.flops / time_us / 1e3 if time_us else 0.0
        share = time_us / total
        lines.append(f"{step.layer:<26}{step.op:<20}{time_us / 1e3:>8.2f}{share:>8.1%}{speed:>10.0f}")
    lines += ["", f"{'who':<26}{'median ms':>12}{'least ms':>12}"]
    for who, times in (("plain PyTorch, eager", measurement.peer_ms), ("latentloom, CPU", measurement.ours_ms)):
        lines.append(f"{who:<26}{statistics.median(times):>12.1f}{min(times):>12.1f}")
    lines += ["", f"latentloom is {measurement.ratio:.2f} times as fast as plain PyTorch (medians, turn by turn)"]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time one CPU frame beside the plain eager network.")
    parser.add_argument("--resolution", type=int, default=256, help="side of the picture (default 256)")
    parser.add_argument("--base", type=int, default=16384, help="channels times resolution (default 16384)")
    parser.add_argument("--max", type=int, default=512, help="most channels (default 512)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch for both (default 2)")
    parser.add_argument("--runs", type=int, default=15, help="turns (default 15)")
    options = parser.parse_args(arguments)
    size = f"{options.resolution} x {options.resolution}, channels min({options.base} / R, {options.max})"
    sys.stdout.write(f"{size}, float32, {options.threads} threads, torch {torch.__version__}\n\n")
    measurement = measure(options.resolution, options.base, options.max, threads=options.threads, runs=options.runs)
    sys.stdout.write(report(measurement) + "\n")
    return 0


def _timed_ms(run: Callable[[], object]) -> float:
    time.sleep(_REST_S)
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    raise SystemExit(main())
