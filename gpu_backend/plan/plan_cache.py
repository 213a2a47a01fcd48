"""LRU cache of bound plans, one for each PlanKey."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import DeviceMemoryError
from gpu_backend.plan.executor import BoundPlan, Executor
from gpu_backend.plan.kept_second import kept_nbytes
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.recipe import LocalEdits, Noise

_KEPT_BUDGETS = 2
"""Budgets that kept buffers have for themselves."""


@dataclass(slots=True, eq=False)
class CachedPlan:
    """A bound plan, and the noise and local edits in its input buffers; None if their content is undefined.

    `kept` has the values of the inputs that the kept buffers were computed from (`Plan.kept_inputs`); None if the
    content of these buffers is undefined.
    """

    bound: BoundPlan
    noise: Noise | None = None
    edits: LocalEdits | None = None
    kept: dict[str, NDArray[Any]] | None = None
    kept_inputs: frozenset[str] = field(init=False)
    kept_nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.kept_inputs, self.kept_nbytes = self.bound.plan.kept_inputs, kept_nbytes(self.bound.plan)

    def has_kept(self, inputs: Mapping[str, NDArray[Any]]) -> bool:
        """Whether there are kept buffers that a run with these inputs, others unchanged, may use."""
        kept = self.kept
        if not kept:
            return False
        given = self.kept_inputs & inputs.keys()
        return all(name in kept and np.array_equal(kept[name], inputs[name]) for name in given)

    def note_kept(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Note that a run with these inputs computed the kept buffers."""
        self.kept = {name: np.array(inputs[name]) for name in self.kept_inputs & inputs.keys()}


class PlanCache:
    """Bound plans, built on first use.

    Plans of single pictures and plans of batches have a budget each: a batch that exceeds it by itself would otherwise
    be bound anew whenever it takes turns with a preview. While the working buffers of one kind exceed `budget_nbytes`,
    or their kept buffers twice that, its least recently used plan is evicted. A full picture that keeps as much as a
    plan may (`kept_second.MOST_KEPT_NBYTES`) leaves room for its drafts, which keep about a half of it, a quarter and
    so on. Plans fetched with `keep`, and the plan just fetched, are never evicted for the budget.

    If device memory runs out, plans of batches are evicted first. A single picture then evicts all plans without
    `keep`; a batch does not, because a smaller batch can take its place.

    Parameters
    ----------
    executor
        Binds plans. The cache closes the plans, not the executor.
    build
        PlanKey -> Plan.
    budget_nbytes
        Device memory that the bound plans of single pictures may take together, and those of batches; twice as much
        again for buffers that they keep between runs.
    """

    def __init__(self, executor: Executor, build: Callable[[PlanKey], Plan], budget_nbytes: int) -> None:
        self._executor = executor
        self._build = build
        self._budget_nbytes = budget_nbytes
        self._cached: OrderedDict[tuple[PlanKey, bool], CachedPlan] = OrderedDict()
        self._protected: set[tuple[PlanKey, bool]] = set()

    def __contains__(self, key: PlanKey) -> bool:
        """Whether the fused plan of a key is bound."""
        return (key, True) in self._cached

    @property
    def keys(self) -> tuple[PlanKey, ...]:
        """Keys of the cached plans, least recently used first."""
        return tuple(key for key, _ in self._cached)

    @property
    def nbytes(self) -> int:
        """Device memory of all bound plans, in bytes."""
        return sum(cached.bound.nbytes for cached in self._cached.values())

    def fetch(self, key: PlanKey, *, use_fused: bool = True, keep: bool = False) -> CachedPlan:
        """Return the bound plan of a key; see `Executor.bind`. `keep` protects a fused plan from eviction.

        Raises
        ------
        DeviceMemoryError
            If device memory is too small even after eviction.
        """
        name = (key, use_fused)
        cached = self._cached.get(name)
        if cached is not None:
            self._cached.move_to_end(name)
            return cached
        plan = self._build(key)
        while cached is None:
            try:
                cached = CachedPlan(self._executor.bind(plan, use_fused=use_fused))
            except DeviceMemoryError:
                if not self.make_room_for(key):
                    raise
        self._cached[name] = cached
        if keep:
            self._protected.add(name)
        self._keep_budget(name)
        return cached

    def check_steps(self, key: PlanKey) -> Generator[object, None, None]:
        """Return the steps that check the kernels of a key's plan ahead of `fetch`."""
        return self._executor.check_steps(self._build(key))

    def forget_kept(self) -> None:
        """Take the kept buffers of every plan for undefined."""
        for cached in self._cached.values():
            cached.kept = None

    def drop_plain(self) -> None:
        """Close every plan that is bound to plain kernels."""
        for name in [name for name in self._cached if not name[1]]:
            self._cached.pop(name).bound.close()

    def make_room_for(self, key: PlanKey) -> bool:
        """Close plans of batches, else those of single pictures, for a plan that finds too little device memory.

        Plans with `keep` and those of `key` stay; for a batch, all single pictures do. Returns whether a plan was
        closed: then it is worth trying again.
        """
        others = [name for name in self._cached if name[0] != key and name not in self._protected]
        batches = [name for name in others if _is_batch(name)]
        closed = batches if batches or key.batch > 1 else others
        for name in closed:
            self._cached.pop(name).bound.close()
        return bool(closed)

    def close(self) -> None:
        """Close every bound plan. May be called twice."""
        while self._cached:
            self._cached.popitem()[1].bound.close()

    def _keep_budget(self, newest: tuple[PlanKey, bool]) -> None:
        """Evict plans of the newest one's kind until they keep to their budget."""
        alike = {name: cached for name, cached in self._cached.items() if _is_batch(name) == _is_batch(newest)}
        for name in [name for name in alike if name != newest and name not in self._protected]:
            kept = sum(cached.kept_nbytes for cached in alike.values())
            working = sum(cached.bound.nbytes for cached in alike.values()) - kept
            if max(kept / _KEPT_BUDGETS, working) <= self._budget_nbytes:
                return
            del alike[name]
            self._cached.pop(name).bound.close()


def _is_batch(name: tuple[PlanKey, bool]) -> bool:
    return name[0].batch > 1
