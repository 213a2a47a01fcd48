"""Goals of the measurements, and whether they are met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_backend.bench.report import OURS, Judgement, Outcome, Report

NETWORK = "ffhq1024"
GPU = "H200"


@dataclass(frozen=True, slots=True)
class _Goal:
    name: str
    unit: Literal["ms", "x"]
    must: float
    aim: float | None


_SPEED = {1: _Goal("batch 1", "ms", 0.80, 0.45), 8: _Goal("batch 8, an image", "ms", 0.55, 0.35)}
_RATIO = {
    1: _Goal("batch 1, times as fast as torch.compile", "x", 1.5, None),
    8: _Goal("batch 8, times as fast as torch.compile", "x", 1.35, None),
}
_GESTURE = _Goal("gesture to frame on the host, batch 1, p99", "ms", 3.0, 1.5)
_HOST = _Goal("host time a frame", "ms", 0.3, 0.1)


def judge(report: Report) -> tuple[Judgement, ...]:
    """Return the verdict; empty for networks or GPUs without goals."""
    if not is_judged(report):
        return ()
    lines = []
    for batch in (1, 8):
        ours = report.find(OURS, "fp16", batch)
        peer = report.find("compiled", "fp16", batch)
        lines.append(_judged(_SPEED[batch], None if ours is None else ours.image_ms))
        ratio = None if ours is None or peer is None else peer.latency_ms / ours.latency_ms
        lines.append(_judged(_RATIO[batch], ratio))
    gesture = next((g for g in report.gestures if g.precision == "fp16"), None)
    lines.append(_judged(_GESTURE, None if gesture is None else gesture.p99_ms))
    lines.append(_judged(_HOST, None if gesture is None else gesture.host_ms))
    return tuple(lines)


def is_judged(report: Report) -> bool:
    """Whether the goals were set for this network on this GPU."""
    return report.run.device_kind == "cuda" and report.run.network == NETWORK and GPU in report.run.device


def _judged(goal: _Goal, value: float | None) -> Judgement:
    return Judgement(goal.name, goal.unit, value, goal.must, goal.aim, _outcome(goal, value))


def _outcome(goal: _Goal, value: float | None) -> Outcome:
    if value is None:
        return "not measured"
    sign = 1.0 if goal.unit == "ms" else -1.0
    if sign * value > sign * goal.must:
        return "not met"
    return "met, aim too" if goal.aim is not None and sign * value <= sign * goal.aim else "met"
