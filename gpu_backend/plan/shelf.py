"""The plans that a renderer has ready, one for each PlanKey."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from gpu_backend.plan.executor import BoundPlan, Executor
from gpu_backend.plan.plan import Plan, PlanKey


class PlanShelf:
    """Bound plans, built when first asked for.

    While they take more memory than `budget_nbytes`, the least recently used go, except those that `keep` and the one
    just asked for.

    Parameters
    ----------
    executor
        Binds plans; the shelf closes what it bound, not the executor.
    build
        PlanKey -> Plan.
    budget_nbytes
        Memory that all bound plans may take together.
    """

    def __init__(self, executor: Executor, build: Callable[[PlanKey], Plan], budget_nbytes: int) -> None:
        self._executor = executor
        self._build = build
        self._budget_nbytes = budget_nbytes
        self._bound: OrderedDict[PlanKey, BoundPlan] = OrderedDict()
        self._kept: set[PlanKey] = set()

    @property
    def keys(self) -> tuple[PlanKey, ...]:
        """Keys of the plans that stand ready, least recently used first."""
        return tuple(self._bound)

    @property
    def nbytes(self) -> int:
        """Memory that all bound plans hold."""
        return sum(bound.nbytes for bound in self._bound.values())

    def fetch(self, key: PlanKey, *, keep: bool = False) -> BoundPlan:
        """Return the bound plan of a key; with `keep` it never makes room for others."""
        if keep:
            self._kept.add(key)
        bound = self._bound.get(key)
        if bound is None:
            bound = self._executor.bind(self._build(key))
            self._bound[key] = bound
            self._make_room(key)
        else:
            self._bound.move_to_end(key)
        return bound

    def close(self) -> None:
        """Close every bound plan. May be called twice."""
        while self._bound:
            self._bound.popitem()[1].close()

    def _make_room(self, newest: PlanKey) -> None:
        for key in [key for key in self._bound if key != newest and key not in self._kept]:
            if self.nbytes <= self._budget_nbytes:
                return
            self._bound.pop(key).close()
