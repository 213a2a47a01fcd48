"""Which plans stand ready, and which make room."""

from dataclasses import replace

import pytest

from gpu_backend import MAX_BLENDS, DeviceMemoryError, RowRange
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.kept_second import MOST_KEPT_NBYTES, kept_nbytes
from gpu_backend.plan.plan import Plan, PlanEdits, PlanKey, Precision
from gpu_backend.plan.plan_cache import PlanCache
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.renderer.renderer import PLAN_BUDGET_NBYTES
from tests.helpers.fake_executor import FakeExecutor, FakePlan
from tests.helpers.networks import NetworkOptions, make_spec

SPEC = make_spec(NetworkOptions(resolution=64))


def build(key: PlanKey) -> Plan:
    return build_synthesis_plan(SPEC, key.model_id, batch=key.batch, resolution=key.resolution, precision=key.precision)


def key(resolution: int, batch: int = 1) -> PlanKey:
    return PlanKey("id", "synthesis", batch, resolution, "fp16")


def cache_of(executor: FakeExecutor, budget_nbytes: int = 1 << 40) -> PlanCache:
    cache = PlanCache(executor, build, budget_nbytes)
    cache.fetch(key(64), keep=True)
    return cache


def test_a_plan_is_bound_once_and_fused_and_plain_apart() -> None:
    executor = FakeExecutor()
    cache = cache_of(executor)
    assert cache.fetch(key(16)) is cache.fetch(key(16))
    assert cache.fetch(key(16), use_fused=False) is not cache.fetch(key(16))
    assert executor.standing() == [key(64), key(16)]
    assert executor.standing(use_fused=False) == [key(16)]
    assert cache.nbytes == sum(plan.nbytes for plan in executor.bound)


def test_over_the_budget_the_least_recently_used_go_but_not_what_is_kept() -> None:
    executor = FakeExecutor()
    full_nbytes = cache_of(FakeExecutor()).nbytes
    cache = cache_of(executor, full_nbytes + 40_000)
    for side in (32, 16, 8, 16, 4):
        cache.fetch(key(side))
    assert key(64) in executor.standing()
    assert executor.standing()[-1] == key(4)
    assert cache.nbytes <= full_nbytes + 40_000


def test_pictures_with_as_many_blends_as_there_may_be_and_their_drafts_by_turns_bind_each_plan_once() -> None:
    spec = make_spec(NetworkOptions(resolution=1024, channel_base=32768, channel_max=512, w_dim=512))
    edits = PlanEdits(blends=(RowRange(),) * MAX_BLENDS, keeps_second=True)
    executor = FakeExecutor()
    cache = PlanCache(executor, lambda key: build_plan(spec, key), PLAN_BUDGET_NBYTES)
    keys = [replace(key(side), edits=edits) for side in (1024, 512, 256, 128)]
    kept = [kept_nbytes(cache.fetch(one).bound.plan) for one in keys]
    assert kept[0] <= MOST_KEPT_NBYTES
    bound = list(executor.bound)
    for one in keys:
        cache.fetch(one)
    assert executor.bound == bound
    assert sum(kept) > PLAN_BUDGET_NBYTES


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_a_preview_and_a_batch_of_large_pictures_by_turns_bind_each_plan_once(precision: Precision) -> None:
    spec = make_spec(NetworkOptions(resolution=1024, channel_base=32768, channel_max=512, w_dim=512))
    blend = PlanEdits(blends=(RowRange(),), keeps_second=True)
    executor = FakeExecutor(precision=precision)
    cache = PlanCache(executor, lambda key: build_plan(spec, key), PLAN_BUDGET_NBYTES)
    full, batch = replace(key(1024), precision=precision), replace(key(1024, 8), precision=precision)
    preview, draft = replace(full, edits=blend), replace(full, resolution=256, edits=blend)
    cache.fetch(full, keep=True)
    assert cache.fetch(batch).bound.nbytes > PLAN_BUDGET_NBYTES
    turns = [draft, preview, batch, draft, batch, full, batch]
    for one in turns:
        cache.fetch(one)
    bound = list(executor.bound)
    for one in turns:
        cache.fetch(one)
    assert executor.bound == bound
    cache.fetch(replace(batch, batch=4))
    assert set(executor.standing()) == {full, preview, draft, replace(batch, batch=4)}


def test_a_full_device_lets_batches_go_before_single_pictures_which_no_batch_takes_the_place_of() -> None:
    executor = FakeExecutor()
    cache = cache_of(executor)
    for one in (key(32), key(16), key(16, 8)):
        cache.fetch(one)
    executor.memory_nbytes = cache.nbytes
    cache.fetch(key(8))
    assert executor.standing() == [key(64), key(32), key(16), key(8)]
    executor.memory_nbytes = cache.nbytes
    with pytest.raises(DeviceMemoryError):
        cache.fetch(key(32, 8))
    assert executor.standing() == [key(64), key(32), key(16), key(8)]


def test_when_the_device_is_full_all_that_may_go_goes_and_it_is_tried_once_more() -> None:
    executor = FakeExecutor()
    cache = cache_of(executor)
    for side in (32, 16):
        cache.fetch(key(side))
    executor.memory_nbytes = cache.nbytes
    cache.fetch(key(8))
    assert executor.standing() == [key(64), key(8)]


def test_a_plan_without_room_is_an_error_and_the_cache_stays_usable() -> None:
    executor = FakeExecutor()
    cache = cache_of(executor)
    executor.memory_nbytes = cache.nbytes
    with pytest.raises(DeviceMemoryError):
        cache.fetch(key(64, batch=8))
    assert cache.keys == (key(64),)
    assert cache.fetch(key(64)).bound.nbytes == cache.nbytes


def test_plain_plans_can_be_dropped() -> None:
    executor = FakeExecutor()
    cache = cache_of(executor)
    for side in (64, 8):
        cache.fetch(key(side), use_fused=False)
    cache.drop_plain()
    cache.drop_plain()
    assert executor.standing() == [key(64)]
    assert executor.standing(use_fused=False) == []


def test_closing_closes_every_plan_once() -> None:
    executor = FakeExecutor()
    cache = cache_of(executor)
    plans = [*executor.bound, cache.fetch(key(8)).bound]
    cache.close()
    cache.close()
    assert isinstance(plans[0], FakePlan)
    assert plans[0].closed == 1
    assert executor.bound == []
    assert cache.nbytes == 0
