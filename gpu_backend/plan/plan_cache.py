"""The plans that a renderer has ready, one for each PlanKey."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gpu_backend.errors import DeviceMemoryError
from gpu_backend.plan.executor import BoundPlan, Executor
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.recipe import Noise


@dataclass(slots=True, eq=False)
class CachedPlan:
    """A bound plan, and the noise that its inputs were last given; None while nobody knows what lies there."""

    bound: BoundPlan
    noise: Noise | None = None


class PlanCache:
    """Bound plans, built when first asked for.

    While they take more memory than `budget_nbytes`, the least recently used go, except those that `keep` and the one
    just asked for. When the device has no room for a new one, all but those that `keep` go.

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
        self._cached: OrderedDict[tuple[PlanKey, bool], CachedPlan] = OrderedDict()
        self._kept: set[tuple[PlanKey, bool]] = set()

    @property
    def keys(self) -> tuple[PlanKey, ...]:
        """Keys of the plans that stand ready, least recently used first."""
        return tuple(key for key, _ in self._cached)

    @property
    def nbytes(self) -> int:
        """Memory that all bound plans hold."""
        return sum(cached.bound.nbytes for cached in self._cached.values())

    def fetch(self, key: PlanKey, *, use_fused: bool = True, keep: bool = False) -> CachedPlan:
        """Return the plan of a key, bound as `Executor.bind` tells; with `keep` a fast one never makes room for others.

        Raises
        ------
        DeviceMemoryError
            If the device has no room even after everything made room that may.
        """
        name = (key, use_fused)
        cached = self._cached.get(name)
        if cached is not None:
            self._cached.move_to_end(name)
            return cached
        plan = self._build(key)
        try:
            cached = CachedPlan(self._executor.bind(plan, use_fused=use_fused))
        except DeviceMemoryError:
            self.clear_for(key)
            cached = CachedPlan(self._executor.bind(plan, use_fused=use_fused))
        self._cached[name] = cached
        if keep:
            self._kept.add(name)
        self._make_room(name)
        return cached

    def drop_plain(self) -> None:
        """Close every plan that is not bound the fast way."""
        for name in [name for name in self._cached if not name[1]]:
            self._cached.pop(name).bound.close()

    def clear_for(self, key: PlanKey) -> None:
        """Close every plan that need not be kept, except those of a key."""
        for name in [name for name in self._cached if name[0] != key and name not in self._kept]:
            self._cached.pop(name).bound.close()

    def close(self) -> None:
        """Close every bound plan. May be called twice."""
        while self._cached:
            self._cached.popitem()[1].bound.close()

    def _make_room(self, newest: tuple[PlanKey, bool]) -> None:
        for name in [name for name in self._cached if name != newest and name not in self._kept]:
            if self.nbytes <= self._budget_nbytes:
                return
            self._cached.pop(name).bound.close()
