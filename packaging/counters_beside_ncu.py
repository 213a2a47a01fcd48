"""Hardware counters that the program reads itself, beside those of Nsight Compute, for the kernels of one picture.

    python packaging/counters_beside_ncu.py [--shape ffhq1024] [--batch 8] [--kernels 5] [--out FILE]

Needs a GPU, permission to read its counters, CUPTI (the extra ``profile``) and ``ncu``. The kernels that take longest
are compared. Nsight Compute repeats each kernel, the program repeats the whole picture, so that caches differ a little
before a kernel begins.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gpu_backend.bench.ours import Ours  # noqa: E402
from gpu_backend.bench.random_model import random_model  # noqa: E402
from gpu_backend.bench.shapes import shape_of  # noqa: E402
from gpu_backend.bench.table import grid  # noqa: E402
from gpu_backend.cuda.timing.range_profiler import METRICS, counters_of  # noqa: E402
from gpu_backend.device import make_executor  # noqa: E402
from gpu_backend.frame import KernelCounters, KernelFacts, StepTime  # noqa: E402

_TITLES = ("occupancy", "SM", "DRAM", "sectors/load", "sectors/store")
_LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure both and print them side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="ffhq1024")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--kernels", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--launch-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.launch_only:
        _launch(options.shape, options.batch)
        return 0
    steps = _counted(options.shape, options.batch)
    theirs = _by_ncu(options.shape, options.batch)
    if len(steps) != len(theirs):
        raise SystemExit(f"{len(steps)} kernels here, {len(theirs)} by ncu")
    slowest = sorted(range(len(steps)), key=lambda place: -steps[place].time_us)[: options.kernels]
    text = _compared([steps[place] for place in slowest], [theirs[place] for place in slowest])
    sys.stdout.write(text)
    if options.out is not None:
        options.out.write_text(text, "utf-8")
    return 0


def _counted(shape: str, batch: int) -> tuple[StepTime, ...]:
    ours = _prepared(shape, batch)
    with closing(ours):
        ours.measure_counters()
        return ours.measured_steps(3)[-1]


def _prepared(shape: str, batch: int, *, use_graph: bool = True) -> Ours:
    model = random_model(shape_of(shape))
    ours = Ours(model, lambda precision: make_executor(model, "auto", precision)[0], "fp16", batch, use_graph=use_graph)
    ours.prepare()
    return ours


def _launch(shape: str, batch: int) -> None:
    """Launch the kernels of one picture between the marks that ncu is told to look for."""
    import cuda.bindings.driver as driver

    with closing(_prepared(shape, batch, use_graph=False)) as ours:
        ours.times_ms(1)
        driver.cuProfilerStart()
        ours.times_ms(1)
        driver.cuProfilerStop()


def _by_ncu(shape: str, batch: int) -> list[dict[str, str]]:
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--profile-from-start", "off",
        "--cache-control", "none", "--clock-control", "none",
        "--metrics", ",".join((*METRICS, *_LIMITS.values())),
        sys.executable, __file__, "--shape", shape, "--batch", str(batch), "--launch-only",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode or len(lines) < 3:
        raise SystemExit(f"ncu: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return list(csv.DictReader(io.StringIO("\n".join([lines[0], *lines[2:]]))))


def _compared(steps: Sequence[StepTime], theirs: Sequence[dict[str, str]]) -> str:
    head = ["kernel", "us", *(word for title in _TITLES for word in (title, "ncu", "off")), "limited by", "ncu "]
    rows, worst = [], 0.0
    for place, (step, row) in enumerate(zip(steps, theirs, strict=True)):
        facts = step.facts
        assert facts is not None
        assert facts.counters is not None
        cells = []
        for own, other in zip(
            _values(facts.counters), _values(counters_of([_number(row, m) for m in METRICS])), strict=True
        ):
            off = None if own is None or other is None else abs(own / other - 1.0) if other else 0.0
            cells += [_text(own), _text(other), "" if off is None else f"{off:.1%}"]
            worst = max(worst, off or 0.0) if place < 3 else worst
        rows.append(
            (
                f"{step.layer.removeprefix('synthesis.')} {step.kernel}",
                f"{step.time_us:.1f}",
                *cells,
                *_limits(facts, row),
            )
        )
    return f"{grid(head, rows, left=1)}\nlargest difference of the slowest three: {worst:.1%}\n"


def _limits(facts: KernelFacts, row: dict[str, str]) -> tuple[str, str]:
    counts = {name: _number(row, metric) for name, metric in _LIMITS.items()}
    fewest = min(counts.values())
    return ", ".join(facts.limits), ", ".join(name for name, count in counts.items() if count == fewest)


def _values(counters: KernelCounters) -> tuple[float | None, ...]:
    shares = (counters.occupancy, counters.sm_share, counters.dram_share)
    return (
        *(None if share is None else 100.0 * share for share in shares),
        counters.load_sectors,
        counters.store_sectors,
    )


def _number(row: dict[str, str], metric: str) -> float:
    try:
        return float(row[metric].replace(",", ""))
    except ValueError:
        return float("nan")


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
