"""Kernel states (fused, plain, fallback) as text, icons and plot symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.performance.figure import short_milliseconds
from gpu_backend import KernelFacts

STATES = ("fused", "plain", "fallback")
ICONS = {"plain": "plain-kernel", "fallback": "warning"}
"""State -> icon before the kernel's name; fused kernels have none."""

SYMBOLS = {"fused": "o", "plain": "s", "fallback": "t1"}
"""State -> pyqtgraph symbol in the scatter plot."""


def state_of(step: StepCost) -> str:
    """Return the state of a step's kernel; empty on the CPU."""
    return "" if step.facts is None else step.facts.state


def state_text(facts: KernelFacts) -> str:
    """Return the state with its reason: "fallback: its self-check failed"."""
    return f"{facts.state}: {facts.reason}" if facts.reason else facts.state


def summaries(steps: Sequence[StepCost]) -> tuple[str, ...]:
    """Return wordings of a summary of all kernels, the longest first."""
    if not steps:
        return ("",)
    counts = Counter(state_of(step) for step in steps)
    if counts[""] == len(steps):
        count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
        took = f"{short_milliseconds(sum(step.time_us for step in steps) / 1000)} ms"
        return (f"{count} on the processor, {took}", f"{count}, {took}", count)
    there = [state for state in STATES if counts[state]]
    if there == ["fused"]:
        return (f"{len(steps)} kernels, all fused", f"{len(steps)} fused")
    short = " · ".join(f"{counts[state]} {state}" for state in there)
    fallen = next((step for step in steps if state_of(step) == "fallback"), None)
    if fallen is None or fallen.facts is None or not fallen.facts.reason:
        return (f"{len(steps)} kernels: {short}", short)
    return (f"{short} ({fallen.kernel}: {fallen.facts.reason})", f"{short} ({fallen.kernel})", short)


def reasons(steps: Sequence[StepCost]) -> str:
    """Return the reasons of fallback kernels, one line per kernel."""
    lines = [
        f"{step.kernel}: {state_text(step.facts)}"
        for step in steps
        if step.facts is not None and step.facts.state == "fallback"
    ]
    return "\n".join(dict.fromkeys(lines))
