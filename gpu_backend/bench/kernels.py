"""What each step of our network costs, and how near it comes to the roofline."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace

from gpu_backend.bench.ours import Ours
from gpu_backend.bench.report import Ceiling, KernelCost
from gpu_backend.errors import DeviceError
from gpu_backend.frame import StepTime
from gpu_backend.model.model import Model
from gpu_backend.plan.executor import Executor
from gpu_backend.plan.plan import Precision

_WARM_UP = 2


def measure_kernels(
    model: Model,
    executor: Callable[[Precision], Executor],
    precision: Precision,
    batch: int,
    *,
    runs: int,
    counters: bool = False,
    problem: Callable[[str], None] = lambda sentence: None,
) -> tuple[KernelCost, ...]:
    """Run some times step by step and return the medians, in execution order.

    Parameters
    ----------
    counters
        Whether hardware counters are measured too, in runs of their own.
    problem
        Gets the sentence that says why they cannot be measured.
    """
    ours = Ours(model, executor, precision, batch)
    try:
        ours.prepare()
        turns = ours.measured_steps(_WARM_UP + runs)[_WARM_UP:]
        steps = turns[-1]
        if counters:
            try:
                ours.measure_counters()
            except DeviceError as error:
                problem(error.sentence)
            else:
                (steps,) = ours.measured_steps(1)
    finally:
        ours.close()
    medians = [statistics.median(times) for times in zip(*([s.time_us for s in turn] for turn in turns), strict=True)]
    total_us = sum(medians) or 1.0
    return tuple(_cost(batch, step, time_us, time_us / total_us) for step, time_us in zip(steps, medians, strict=True))


def beside_ceiling(costs: Iterable[KernelCost], ceiling: Ceiling, precision: str) -> tuple[KernelCost, ...]:
    """Return the costs with their share of the roofline: 1 is a step that the device could not do faster.

    A step needs at least the time of its bytes and that of its operations, whichever is longer.
    """
    rate = ceiling.flop_per_s.get(precision)
    if not rate:
        return tuple(costs)
    return tuple(
        replace(cost, roofline_share=_least_us(cost, ceiling.copy_bytes_per_s, rate) / cost.time_us)
        if cost.time_us > 0
        else cost
        for cost in costs
    )


def _least_us(cost: KernelCost, bytes_per_s: float, flop_per_s: float) -> float:
    return max(cost.nbytes / bytes_per_s, cost.flops / flop_per_s) * 1e6


def _cost(batch: int, step: StepTime, time_us: float, share: float) -> KernelCost:
    cost = KernelCost(batch, step.layer, step.kernel, time_us, share, step.flops, step.nbytes, roofline_share=None)
    if step.facts is None:
        return cost
    facts = step.facts
    return replace(
        cost,
        state=facts.state,
        reason=facts.reason,
        registers=facts.registers,
        shared_nbytes=facts.shared_nbytes,
        spill_nbytes=facts.spill_nbytes,
        occupancy=facts.occupancy,
        waves=facts.waves,
        limits=facts.limits,
        counters=facts.counters,
    )
