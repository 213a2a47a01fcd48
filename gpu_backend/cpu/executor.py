"""Runs plans on the CPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.cpu.bound_plan import CpuBoundPlan
from gpu_backend.cpu.kernel import PackedWeights
from gpu_backend.cpu.reference_plan import ReferencePlan
from gpu_backend.cpu.team import Team
from gpu_backend.plan.plan import Plan, Precision


class CpuExecutor:
    """Implements `gpu_backend.plan.executor.Executor` for the weights of one model.

    Not thread-safe: one thread owns it. The pictures of a plan depend on nothing but its inputs, the model, the machine
    and the number of threads.

    Parameters
    ----------
    weights
        Official name -> float32 array; shared, never written.
    threads
        Threads that share a picture; None takes torch's own number, which is that of the physical cores unless the
        environment says otherwise (OMP_NUM_THREADS). They start with the first plan and end with `close`.
    """

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], *, threads: int | None = None) -> None:
        self._team = Team(torch.get_num_threads() if threads is None else threads)
        self._weights = {name: _shared_tensor(array) for name, array in weights.items()}
        self._packed = PackedWeights()
        self._bound: list[CpuBoundPlan | ReferencePlan] = []

    @property
    def device_name(self) -> str:
        """For people."""
        return "CPU"

    @property
    def precision(self) -> Precision:
        """Precision of the activations."""
        return "fp32"

    @property
    def nbytes(self) -> int:
        """Packed weights; the model's own are the model's."""
        return self._packed.nbytes

    @property
    def pinned_nbytes(self) -> int:
        """Nothing is copied to a device."""
        return 0

    def bind(self, plan: Plan, *, use_fused: bool = True) -> CpuBoundPlan | ReferencePlan:
        """Bind a plan; packed weights are shared with the plans bound before.

        With `use_fused` False the reference functions run its steps.

        Raises
        ------
        ValueError
            If the plan is for another precision.
        """
        if plan.key.precision != self.precision:
            raise ValueError(f"the CPU runs fp32 plans, but this one is for {plan.key.precision}")
        bound = (
            CpuBoundPlan(plan, self._weights, self._packed, self._team)
            if use_fused
            else ReferencePlan(plan, self._weights)
        )
        self._bound = [earlier for earlier in self._bound if not earlier.is_closed]
        self._bound.append(bound)
        return bound

    def close(self) -> None:
        """Close every bound plan, drop packed weights, end the threads. May be called twice."""
        for bound in self._bound:
            bound.close()
        self._bound.clear()
        self._packed.clear()
        self._team.close()


def _shared_tensor(array: NDArray[np.float32]) -> Tensor:
    """A tensor over the array's memory; a read-only array is copied, because torch cannot promise not to write."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())
