"""Runs plans on the CPU."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.cpu.bound_plan import CpuBoundPlan
from gpu_backend.cpu.kernel import PackedWeights
from gpu_backend.cpu.reference_plan import ReferencePlan
from gpu_backend.cpu.team import Team, division_of
from gpu_backend.plan.plan import Plan, Precision


class CpuExecutor:
    """Implements `gpu_backend.plan.executor.Executor` for the weights of one model.

    Not thread-safe: one thread owns it. A plan's pictures depend only on its inputs, the model, the machine and the
    number of threads.

    Parameters
    ----------
    weights
        Official name -> float32 array; shared, never written.
    threads
        Threads that render a picture together. None means torch's default: the number of physical cores, or
        OMP_NUM_THREADS. They start with the first plan; `close` stops them.
    """

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], *, threads: int | None = None) -> None:
        self._team = Team(*division_of(torch.get_num_threads() if threads is None else threads))
        self._weights = {name: _shared_tensor(array) for name, array in weights.items()}
        self._packed = PackedWeights()
        self._bound: list[CpuBoundPlan | ReferencePlan] = []

    @property
    def device_name(self) -> str:
        return "CPU"

    @property
    def precision(self) -> Precision:
        return "fp32"

    @property
    def nbytes(self) -> int:
        """Memory of packed weights in bytes, without the model's own arrays."""
        return self._packed.nbytes

    @property
    def pinned_nbytes(self) -> int:
        """Always 0: the CPU needs no page-locked memory."""
        return 0

    def bind(self, plan: Plan, *, use_fused: bool = True) -> CpuBoundPlan | ReferencePlan:
        """Bind a plan; packed weights are shared between plans.

        With `use_fused` False the reference functions execute its steps.

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

    def check_steps(self, plan: Plan) -> Generator[object, None, None]:
        """Check nothing: only kernels that are compiled for a GPU need it."""
        yield from ()

    def close(self) -> None:
        """Close every bound plan, free packed weights, stop the threads. May be called twice."""
        for bound in self._bound:
            bound.close()
        self._bound.clear()
        self._packed.clear()
        self._team.close()


def _shared_tensor(array: NDArray[np.float32]) -> Tensor:
    """Return a tensor over the array's memory; a read-only array is copied, because torch tensors are writable."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())
