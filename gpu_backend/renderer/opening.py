"""Opening of a model on a device: executor, bound plans and directions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gpu_backend.device import CPU_ID, DeviceFacts, cpu_instead, facts_of, make_executor
from gpu_backend.errors import DeviceError, DeviceMemoryError
from gpu_backend.latent.directions import Directions
from gpu_backend.model import Model
from gpu_backend.model.draft_file import readout_widths
from gpu_backend.model_directions import model_directions
from gpu_backend.model_runner import ModelRunner
from gpu_backend.plain_text import type_with_article
from gpu_backend.plan.executor import Executor
from gpu_backend.plan.plan import Precision
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.renderer.fp16_range import exceeds_fp16, may_exceed_fp16, stored_verdict, wider_precision


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """An opened model. `runner` owns `executor`."""

    executor: Executor
    runner: ModelRunner
    device: DeviceFacts
    directions: Directions


def open_model(
    model: Model, device: str, precision: Precision, executor: Executor | None, plan_budget_nbytes: int
) -> Opened:
    """Bind a model's networks while another thread computes its directions.

    Parameters and errors: see `gpu_backend.renderer.Renderer`. On an error everything is closed.
    """
    given: object = model
    if not isinstance(given, Model):
        raise TypeError(
            f"A Renderer takes a Model from read_model, not {type_with_article(given)}; open_renderer takes a path."
        )
    with ThreadPoolExecutor(1, thread_name_prefix="directions") as beside:
        found = beside.submit(model_directions, model)
        bound, runner, facts = _bound(model, device, precision, executor, plan_budget_nbytes)
    try:
        return Opened(bound, runner, facts, found.result())
    except BaseException:
        runner.close()
        raise


def _bound(
    model: Model, device: str, precision: Precision, executor: Executor | None, plan_budget_nbytes: int
) -> tuple[Executor, ModelRunner, DeviceFacts]:
    if executor is not None:
        return executor, ModelRunner(model, executor, plan_budget_nbytes), facts_of(executor)
    executor, facts = make_executor(model, device, precision)

    def opened(precision: Precision) -> ModelRunner:
        return ModelRunner(model, make_executor(model, device, precision)[0], plan_budget_nbytes)

    try:
        readouts = readout_widths(model.readouts) if facts.id == CPU_ID else {}
        runner = ModelRunner(model, executor, plan_budget_nbytes, readouts)
        if _fits(runner, model, facts.precision, opened):
            return executor, runner, facts
        wider = wider_precision(facts.architecture)
        executor, facts = make_executor(model, device, wider)
        reason = f"{facts.reason.rstrip('.')}, in {wider}: this network needs more than fp16."
        return executor, ModelRunner(model, executor, plan_budget_nbytes), replace(facts, reason=reason)
    except DeviceError as error:
        if device != "auto" or facts.id == CPU_ID:
            raise
        executor, facts = cpu_instead(model, error)
        return executor, ModelRunner(model, executor, plan_budget_nbytes, readout_widths(model.readouts)), facts


def _fits(runner: ModelRunner, model: Model, precision: Precision, opened: Callable[[Precision], ModelRunner]) -> bool:
    """Return whether its precision is enough for a network, which a device without memory for the trial takes it to be.

    Closes the runner if not, and if a picture fails.
    """
    if precision == "fp16":
        return not exceeds_fp16(runner, model, lambda: opened("fp32"))
    if precision != "fp8" or not may_exceed_fp16(model.spec):
        return True
    # Of a network in fp16 itself: e4m3 differs more from fp32, and saturates.
    try:
        is_beyond = stored_verdict(model)
        if is_beyond is None:
            half = opened("fp16")
            is_beyond = exceeds_fp16(half, model, lambda: opened("fp32"))
            if not is_beyond:
                half.close()
    except DeviceMemoryError:  # of the runner in fp16
        return True
    except BaseException:
        runner.close()
        raise
    if is_beyond:
        runner.close()
    return not is_beyond
