"""A plan bound on the CPU: one arena, fixed inputs and outputs, one kernel for each step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.cpu.finished_run import FinishedRun, step_times
from gpu_backend.cpu.first_inputs import fill_inputs
from gpu_backend.cpu.kernel import Kernel, PackedWeights, Site
from gpu_backend.cpu.kernel_table import KERNELS
from gpu_backend.cpu.noise_pictures import NoisePictures
from gpu_backend.cpu.replay import Replay, Replays
from gpu_backend.cpu.team import Team
from gpu_backend.errors import CancelledError
from gpu_backend.plan.executor import FRAME_OUTPUTS
from gpu_backend.plan.plan import Buffer, Plan, has_samples

_DTYPES = {"float32": torch.float32, "uint8": torch.uint8, "uint32": torch.uint32}


class CpuBoundPlan:
    """Implements `gpu_backend.plan.executor.BoundPlan`.

    Intermediates are in one arena. All kernels share one working memory. The executor owns packed weights. torch
    allocates only the outputs of packed convolutions at each run; they are freed within the step, and the allocator
    reuses their memory.
    """

    def __init__(self, plan: Plan, weights: Mapping[str, Tensor], packed: PackedWeights, team: Team) -> None:
        self._plan = plan
        self._team = team
        self._arena = torch.empty(plan.arena_nbytes, dtype=torch.uint8)
        buffers = {buffer.name: self._tensor(buffer) for buffer in plan.buffers}
        self._inputs = {b.name: buffers[b.name].numpy() for b in plan.buffers if b.role == "input"}
        self._outputs = {b.name: buffers[b.name].numpy() for b in plan.buffers if b.role == "output"}
        self._kept = [buffers[b.name].numpy() for b in plan.buffers if b.role == "kept"]
        self._noise = NoisePictures(plan, weights)
        site = Site(plan.key.batch, buffers, weights, packed, team, self._noise)
        self._kernels: tuple[Kernel, ...] = ()
        self._replays = Replays(())
        self._scratch = torch.empty(0)
        # Weights are packed in many small operations. With several torch threads, synchronisation would cost more
        # than the work, and take seconds on a busy machine.
        team.run_narrow(lambda: self._make_kernels(site))
        fill_inputs(plan, self._inputs, weights)

    def _make_kernels(self, site: Site) -> None:
        with torch.inference_mode():
            whole, kernels, replays = site, [], []
            sites: dict[int, Site] = {}
            for step in self._plan.steps:
                samples = step.samples or whole.batch
                site = sites[samples] = sites.get(samples) or self._narrowed(whole, samples)
                kernels.append(KERNELS[step.op](step, site))
                outputs = [site.buffers[name] for name in step.outputs]
                replays.append(Replay(kernels[-1], self._team, f"{step.layer} {step.op}", outputs))
            self._kernels, self._replays = tuple(kernels), Replays(replays)
            self._scratch = torch.empty(max((kernel.scratch_floats for kernel in self._kernels), default=0))
            for kernel in self._kernels:
                kernel.attach(self._scratch)

    def _narrowed(self, site: Site, samples: int) -> Site:
        """Return a site whose steps see the first samples of what the network computes."""
        buffers = {
            buffer.name: site.buffers[buffer.name][:samples] if has_samples(buffer) else site.buffers[buffer.name]
            for buffer in self._plan.buffers
        }
        return replace(site, batch=samples, buffers=buffers)

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def nbytes(self) -> int:
        """Memory of arena, working memory, noise, inputs, outputs and what is kept in bytes, without recordings.

        The executor owns packed weights.
        """
        arrays = (*self._inputs.values(), *self._outputs.values(), *self._kept)
        return self._arena.nbytes + self._scratch.nbytes + self._noise.nbytes + sum(array.nbytes for array in arrays)

    @property
    def is_closed(self) -> bool:
        """Whether the memory was freed."""
        return not self._kernels

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
        """Run synchronously: copy the inputs, run every step, and return copies of the outputs.

        ``image`` is a view if it is requested without ``pixels``. Kernels are replayed if `use_graph` is set.

        Raises
        ------
        CancelledError
            If `should_cancel`, called before each step, returned true.
        ValueError
            If an input is unknown to the plan or does not fit its buffer (a missing batch axis is repeated).
        RuntimeError
            If the plan was closed.
        """
        self._take(inputs)
        times_us: list[float] = []
        steps = slice(self._plan.kept_steps if uses_kept else 0, None)

        def run_steps() -> None:
            with torch.inference_mode():
                runs = self._replays.runs() if use_graph else [kernel.run for kernel in self._kernels]
                for run in runs[steps]:
                    _check_wanted(should_cancel)
                    if measure:
                        times_us.append(_timed_us(run))
                    else:
                        run()

        self._team.run_alone(run_steps)
        return FinishedRun(
            {
                name: self._outputs[name]
                if name == "image" and "pixels" not in outputs
                else np.array(self._outputs[name])
                for name in outputs
            },
            step_times(self._plan, times_us) if measure else (),
        )

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

    def observe(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        layers: Container[str] | None = None,
        should_cancel: Callable[[], bool] | None = None,
    ) -> Mapping[str, NDArray[np.float32]]:
        """Run once; return layer name -> copy of its output, (batch, channels, height, width), in execution order.

        Parameters
        ----------
        layers
            Only these are copied; None for all.

        Raises
        ------
        CancelledError
            As `submit` does.
        """
        self._take(inputs)
        observed: dict[str, NDArray[np.float32]] = {}
        last = {
            step.layer: kernel
            for step, kernel in zip(self._plan.steps, self._kernels, strict=True)
            if layers is None or step.layer in layers
        }

        def run_steps() -> None:
            with torch.inference_mode():
                for step, kernel in zip(self._plan.steps, self._kernels, strict=True):
                    _check_wanted(should_cancel)
                    kernel.run()
                    output = kernel.layer_output() if last.get(step.layer) is kernel else None
                    if output is not None:
                        observed[step.layer] = output.contiguous().clone().numpy()

        self._team.run_alone(run_steps)
        return observed

    def record_next_run(self) -> None:
        """Let the next run record every kernel, which the runs after some do one by one."""
        self._replays.record_next_run()

    def close(self) -> None:
        self._kernels, self._replays = (), Replays(())
        self._inputs, self._outputs, self._kept = {}, {}, []
        self._noise.clear()
        self._arena = self._scratch = torch.empty(0)

    def _take(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        if self.is_closed:
            raise RuntimeError("this plan was closed")
        for name, array in inputs.items():
            target = self._inputs.get(name)
            if target is None:
                raise ValueError(f"the plan has the inputs {sorted(self._inputs)}, not {name!r}")
            if array.shape not in (target.shape, target.shape[1:]):
                raise ValueError(f"input {name!r} must have the shape {target.shape}, but has {array.shape}")
            np.copyto(target, array)
        source = inputs.get("noise_source")
        if source is not None:
            self._noise.follow(source)

    def _tensor(self, buffer: Buffer) -> Tensor:
        dtype = _DTYPES[buffer.dtype]
        if buffer.role != "intermediate":
            return torch.zeros(buffer.shape, dtype=dtype)
        nbytes = math.prod(buffer.shape) * dtype.itemsize
        return self._arena[buffer.offset : buffer.offset + nbytes].view(dtype).view(buffer.shape)


def _check_wanted(should_cancel: Callable[[], bool] | None) -> None:
    if should_cancel is not None and should_cancel():
        raise CancelledError("The picture was cancelled, because it is no longer needed.")


def _timed_us(run: Callable[[], None]) -> float:
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e3
