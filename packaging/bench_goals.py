"""Hold a benchmark against the goals of the next version: ``python packaging/bench_goals.py bench.json``.

The goals are set for one H200 and the shapes of public networks; a benchmark of another GPU or network has none.
``latentloom bench --shape ffhq1024 --out DIR`` writes the JSON. The exit status is 1 if a goal is not met.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gpu_backend.bench.report import OURS, Report, read_report  # noqa: E402
from gpu_backend.errors import LoomError  # noqa: E402

GPU = "H200"

Outcome = Literal["met, aim too", "met", "not met", "not measured"]


@dataclass(frozen=True, slots=True)
class Goal:
    """Milliseconds an image at a batch: at most `must`, at best `aim`."""

    batch: int
    must: float
    aim: float
    precision: str = "fp16"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A goal and what came of it; `unit` says whether less (ms) or more (x) is better."""

    name: str
    unit: Literal["ms", "x"]
    value: float | None
    must: float
    aim: float | None

    @property
    def outcome(self) -> Outcome:
        """Whether it is met."""
        if self.value is None:
            return "not measured"
        sign = 1.0 if self.unit == "ms" else -1.0
        if sign * self.value > sign * self.must:
            return "not met"
        return "met, aim too" if self.aim is not None and sign * self.value <= sign * self.aim else "met"

    @property
    def line(self) -> str:
        """As a line of the table."""
        unit = " ms" if self.unit == "ms" else " x"
        value = "" if self.value is None else f"{self.value:.3f}{unit}"
        must = f"{'<=' if self.unit == 'ms' else '>='} {self.must:g}{unit}"
        aim = "" if self.aim is None else f"{self.aim:g}{unit}"
        return f"{self.name:<46}{value:>12}{must:>14}{aim:>12}  {self.outcome}"


SPEED = {
    "ffhq1024": (
        Goal(1, 0.42, 0.33),
        Goal(8, 0.34, 0.27),
        Goal(8, 0.28, 0.22, precision="fp8"),
        Goal(1, 1.6, 1.0, precision="tf32"),
    ),
    "t1024": (Goal(1, 1.65, 1.35),),
    "r1024": (Goal(1, 2.1, 1.6),),
    "xl1024": (Goal(1, 8.5, 7.5), Goal(8, 8.5, 7.5)),
    "adain1024": (Goal(1, 0.34, 0.27),),
}
"""By the name of the shape."""

COMPILED = {("fp16", 1): 1.5, ("fp16", 8): 1.35, ("tf32", 1): 1.0}
"""By precision and batch: how many times as fast as `torch.compile` an ffhq1024 must be in the same run."""

HOST_MUST_MS, HOST_AIM_MS = 0.3, 0.1
GESTURE_MUST_MS, GESTURE_AIM_MS = 0.60, 0.50


def judge(report: Report) -> tuple[Judgement, ...]:
    """Return a judgement a goal; empty for networks or GPUs without goals."""
    network = report.run.network
    if report.run.device_kind != "cuda" or GPU not in report.run.device or network not in SPEED:
        return ()
    lines = []
    for goal in SPEED[network]:
        ours = report.find(OURS, goal.precision, goal.batch)
        value = None if ours is None else ours.image_ms
        lines.append(Judgement(f"{goal.precision}, batch {goal.batch}, an image", "ms", value, goal.must, goal.aim))
    if network != "ffhq1024":
        return tuple(lines)
    for (precision, batch), must in COMPILED.items():
        ours, peer = report.find(OURS, precision, batch), report.find("compiled", precision, batch)
        ratio = None if ours is None or peer is None else peer.latency_ms / ours.latency_ms
        name = f"{precision}, batch {batch}, times as fast as torch.compile"
        lines.append(Judgement(name, "x", ratio, must, None))
    gesture = next((gesture for gesture in report.gestures if gesture.precision == "fp16"), None)
    p50_ms, host_ms = (None, None) if gesture is None else (gesture.p50_ms, gesture.host_ms)
    lines.append(Judgement("gesture to frame on the host, batch 1, p50", "ms", p50_ms, GESTURE_MUST_MS, GESTURE_AIM_MS))
    lines.append(Judgement("host time a frame", "ms", host_ms, HOST_MUST_MS, HOST_AIM_MS))
    return tuple(lines)


def main(words: list[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description="Hold a benchmark against the goals of the next version.")
    parser.add_argument("file", type=Path, help="bench.json, written by `latentloom bench --out DIR`")
    try:
        report = read_report(parser.parse_args(words).file)
    except LoomError as error:
        sys.stderr.write(f"{error.sentence}\n")
        return 2
    lines = judge(report)
    if not lines:
        sys.stderr.write(f"There are no goals for {report.run.network} on {report.run.device}.\n")
        return 2
    sys.stdout.write(f"{'goal':<46}{'measured':>12}{'must':>14}{'aim':>12}  outcome\n")
    sys.stdout.write("".join(f"{line.line}\n" for line in lines))
    return 1 if any(line.outcome == "not met" for line in lines) else 0


if __name__ == "__main__":
    raise SystemExit(main())
