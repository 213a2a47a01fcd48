"""Passes forward on a processor by the renderer's plans, where nothing is differentiated.

The reference functions of a StyleGAN3 take 4 to 10 times the processor time of its plan's kernels. A pass ends between
two steps of the plan if it is cancelled.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.cpu.bound_plan import CpuBoundPlan
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.model.model import Model
from gpu_backend.plan.executor import IMAGE_OUTPUT
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.noise_inputs import noise_gains, noise_source
from gpu_backend.plan.plan import PlanKey
from gpu_backend.recipe import Noise


class ForwardPlans:
    """Runs the plans of a model, one sample at a time. Callable from any thread; calls wait for each other.

    The weights are packed at the first pass. One plan at a time has memory: that of the last pass.
    """

    def __init__(self, model: Model, noise: Noise) -> None:
        self._model, self._noise = model, noise
        self._lock = threading.Lock()
        self._executor: CpuExecutor | None = None
        self._key: PlanKey | None = None
        self._bound: CpuBoundPlan | None = None
        self._noise_inputs: dict[str, NDArray[Any]] = {}
        """Of the bound plan; empty without noise."""

    def features(self, ws: Tensor, layer: str, should_cancel: Callable[[], bool] | None) -> Tensor:
        """Return the output of a layer, (batch, channels, side, side), of rows (batch, num_ws, w_dim).

        Raises
        ------
        CancelledError
            If `should_cancel`, called between steps, returned true.
        """
        name = f"synthesis.{layer}"

        def run(bound: CpuBoundPlan, inputs: dict[str, NDArray[Any]]) -> Tensor:
            return torch.from_numpy(bound.observe(inputs, layers=(name,), should_cancel=should_cancel)[name])

        return self._run(self._key_of(tap=layer), ws, run)

    def picture(self, ws: Tensor, side: int, should_cancel: Callable[[], bool] | None) -> Tensor:
        """Return the picture, (batch, img_channels, side, side); parameters and errors as above."""

        def run(bound: CpuBoundPlan, inputs: dict[str, NDArray[Any]]) -> Tensor:
            image = bound.run(inputs, outputs=(IMAGE_OUTPUT,), should_cancel=should_cancel)[IMAGE_OUTPUT]
            # A copy, since the next run overwrites the output.
            return torch.from_numpy(image).permute(0, 3, 1, 2).clone(memory_format=torch.contiguous_format)

        return self._run(self._key_of(resolution=side), ws, run)

    def _key_of(self, *, resolution: int = 0, tap: str = "") -> PlanKey:
        return PlanKey(self._model.facts.model_id, "synthesis", 1, resolution, tap=tap)

    def _run(self, key: PlanKey, ws: Tensor, run: Callable[[CpuBoundPlan, dict[str, NDArray[Any]]], Tensor]) -> Tensor:
        with self._lock:
            bound = self._bound_to(key)
            return torch.cat([run(bound, {"ws": rows[None]} | self._noise_inputs) for rows in ws.detach().numpy()])

    def _bound_to(self, key: PlanKey) -> CpuBoundPlan:
        if self._bound is not None and key == self._key:
            return self._bound
        if self._executor is None:
            self._executor = CpuExecutor(self._model.weights)
            # At the end of the program nothing waits for a pass under way.
            weakref.finalize(self, self._executor.close).atexit = False
        if self._bound is not None:
            self._bound.close()
            self._bound = None
        plan = build_plan(self._model.spec, key)
        bound = self._executor.bind(plan)
        assert isinstance(bound, CpuBoundPlan)
        layers = next((buffer.shape[0] for buffer in plan.buffers if buffer.name == "noise_gain"), 0)
        noise = self._noise
        self._noise_inputs = (
            {"noise_gain": noise_gains(noise, layers), "noise_source": noise_source(noise)} if layers else {}
        )
        self._key, self._bound = key, bound
        return bound
