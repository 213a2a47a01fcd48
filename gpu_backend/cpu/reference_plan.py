"""Executes a plan with the reference functions: slow, simple, and the baseline of the fused kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.cpu.finished_run import FinishedRun, step_times
from gpu_backend.cpu.first_inputs import fill_inputs
from gpu_backend.cpu.noise_pictures import NoisePictures
from gpu_backend.cpu.reference_steps import STEPS, StepContext
from gpu_backend.errors import CancelledError
from gpu_backend.plan.executor import FRAME_OUTPUTS
from gpu_backend.plan.plan import Plan, has_samples


class ReferencePlan:
    """Implements `gpu_backend.plan.executor.BoundPlan`. Every step allocates new tensors; only the inputs are fixed."""

    def __init__(self, plan: Plan, weights: Mapping[str, Tensor]) -> None:
        self._plan = plan
        self._weights = weights
        self._noise = NoisePictures(plan, weights)
        self._inputs = {b.name: np.zeros(b.shape, b.dtype) for b in plan.buffers if b.role == "input"}
        fill_inputs(plan, self._inputs, weights)
        self._kept: dict[str, Tensor] = {}
        """Buffers that later runs read, of the last run that computed them."""
        self._is_closed = False

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def nbytes(self) -> int:
        """Memory of inputs, noise and what is kept in bytes; a run frees its other tensors."""
        kept = sum(tensor.nbytes for tensor in self._kept.values())
        return self._noise.nbytes + kept + sum(array.nbytes for array in self._inputs.values())

    @property
    def is_closed(self) -> bool:
        """Whether the memory was freed."""
        return self._is_closed

    def submit(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        uses_kept: bool = False,
        should_cancel: Callable[[], bool] | None = None,
    ) -> FinishedRun:
        """Run at once. Raises CancelledError once `should_cancel`, called before each step, returns true."""
        values, _, times_us = self._compute(inputs, should_cancel, uses_kept=uses_kept)
        found = {name: _as_array(values[name]) for name in outputs}
        return FinishedRun(found, step_times(self._plan, times_us) if measure else ())

    def run(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        should_cancel: Callable[[], bool] | None = None,
    ) -> Mapping[str, NDArray[Any]]:
        return self.submit(
            inputs, outputs=outputs, measure=measure, use_graph=use_graph, should_cancel=should_cancel
        ).wait()

    def observe(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[np.float32]]:
        """Run once; return layer name -> output, (batch, channels, height, width), in execution order."""
        _, observed, _ = self._compute(inputs, None)
        return {layer: value.contiguous().numpy() for layer, value in observed.items()}

    def close(self) -> None:
        self._is_closed = True
        self._inputs, self._kept = {}, {}
        self._noise.clear()

    def _compute(
        self,
        inputs: Mapping[str, NDArray[Any]],
        should_cancel: Callable[[], bool] | None,
        *,
        uses_kept: bool = False,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], list[float]]:
        """Return every buffer, each layer's output, and the time of each step. Pictures are channels-first."""
        self._take(inputs)
        values = {name: torch.from_numpy(array.copy()) for name, array in self._inputs.items()}
        plan, observed = self._plan, dict[str, Tensor]()
        samples, first = 0, plan.kept_steps if uses_kept else 0
        around = StepContext(plan.key.batch, values, self._weights, self._noise, observed)
        with_samples = {buffer.name for buffer in plan.buffers if has_samples(buffer)}
        kept = {buffer.name for buffer in plan.buffers if buffer.role == "kept"}
        if uses_kept:
            values.update(self._kept)
        times_us: list[float] = []
        with torch.inference_mode():
            for step in plan.steps[first:]:
                if should_cancel is not None and should_cancel():
                    raise CancelledError("The picture was cancelled, because it is no longer needed.")
                if step.samples and step.samples != samples:
                    samples = step.samples
                    around = replace(around, batch=samples)
                    values.update((name, values[name][:samples]) for name in with_samples & values.keys())
                start = time.perf_counter_ns()
                results = STEPS[step.op](step, around)
                times_us.append((time.perf_counter_ns() - start) / 1e3)
                values.update(zip(step.outputs, results, strict=True))
        self._kept = {name: values[name] for name in kept}
        return values, observed, times_us

    def _take(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        if self._is_closed:
            raise RuntimeError("this plan was closed")
        for name, array in inputs.items():
            np.copyto(self._inputs[name], array)
        if "noise_source" in self._inputs:
            self._noise.follow(self._inputs["noise_source"])


def _as_array(value: Tensor) -> NDArray[Any]:
    """Return an output as an array; float pictures become channels-last, bytes already are."""
    if value.ndim == 4 and value.dtype == torch.float32:
        value = value.permute(0, 2, 3, 1)
    array: NDArray[Any] = value.contiguous().numpy()
    return array
