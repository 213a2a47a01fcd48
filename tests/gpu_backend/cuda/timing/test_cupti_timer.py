from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.running.bound_plan import CudaBoundPlan
from gpu_backend.cuda.running.constants import ConstantStore
from gpu_backend.cuda.running.self_check import SelfCheckRecord
from gpu_backend.cuda.timing.cupti_records import CuptiRecords
from gpu_backend.cuda.timing.cupti_timer import CuptiTimer, KernelRecord, kernel_times_us
from gpu_backend.cuda.timing.kernel_timer import EventTimer
from gpu_backend.cuda.timing.occupancy import kernel_facts
from gpu_backend.errors import DeviceMemoryError
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.hand_schedule import PAINT, SCALE, hand_driver, hand_lower, hand_schedule
from tests.helpers.networks import make_stylegan2

_RUN = [KernelRecord("scale", 1000, 21_500), KernelRecord("paint", 23_000, 28_000)]


class PaperRecords:
    """Gives the same records whatever ran; fails if told so."""

    def __init__(self, records: list[KernelRecord], *, starts: bool = True) -> None:
        self.records = records
        self.starts = starts
        self.log: list[str] = []

    def start(self) -> None:
        self.log.append("start")
        if not self.starts:
            raise RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")

    def stop(self) -> list[KernelRecord]:
        self.log.append("stop")
        return self.records


def bind(records: PaperRecords, **settings: Any) -> CudaBoundPlan:
    driver = hand_driver(**settings)
    kernels = {recipe: driver.load(b"", recipe) for recipe in (SCALE, PAINT)}

    def make_timer(schedule: Any, start: Any) -> CuptiTimer:
        def facts() -> Any:
            return tuple(kernel_facts(driver, FAKE_GPU, kernels[launch.recipe], launch) for launch in schedule.launches)

        by_events = EventTimer(driver, schedule.launches, start, facts, lambda: 0.002)
        return CuptiTimer(schedule.launches, records, facts, by_events)

    pool = MemoryPool(driver)
    return CudaBoundPlan(driver, pool, hand_schedule(), kernels, ConstantStore(driver, pool), make_timer)


def test_recorded_times_are_taken_as_they_are_and_cost_no_graph() -> None:
    records = PaperRecords(_RUN)
    bound = bind(records)
    bound.run({})
    for _ in range(3):
        pending = bound.submit({}, measure=True)
        pending.wait()
        assert pending.timing_source == "cupti"
        assert [step.time_us for step in pending.steps] == [20.5, 5.0]
        assert pending.device_ms == pytest.approx(0.025)
    assert records.log == ["start", "stop"] * 3
    assert bound.captures == 1


def test_a_kernel_that_started_early_is_timed_from_the_end_of_the_one_before() -> None:
    early = [_RUN[0], KernelRecord("paint", 20_000, 28_000)]
    assert kernel_times_us(early, ["scale", "paint"]) == [20.5, 6.5]


def test_where_recording_does_not_start_events_measure() -> None:
    records = PaperRecords(_RUN, starts=False)
    bound = bind(records)
    for _ in range(2):
        pending = bound.submit({}, measure=True)
        pending.wait()
        assert pending.timing_source == "events"
        assert [step.time_us for step in pending.steps] == pytest.approx([20, 5], rel=0.01)
    assert records.log == ["start"]


def test_after_a_run_without_records_events_measure() -> None:
    bound = bind(PaperRecords(_RUN[:1]))
    pending = bound.submit({}, measure=True)
    pending.wait()
    assert pending.steps == ()
    pending = bound.submit({}, measure=True)
    pending.wait()
    assert pending.timing_source == "events"
    assert [step.time_us for step in pending.steps] == pytest.approx([20, 5], rel=0.01)


def test_closing_stops_recording() -> None:
    records = PaperRecords(_RUN)
    bound = bind(records)
    bound.submit({}, measure=True)
    bound.close()
    bound.close()
    assert records.log == ["start", "stop"]


def test_a_measured_run_that_is_not_handed_over_is_recorded_no_longer() -> None:
    records = PaperRecords(_RUN)
    bound = bind(records, full_after=12)
    with pytest.raises(DeviceMemoryError):
        bound.submit({}, measure=True)
    assert records.log == ["start", "stop"]


def test_recording_ends_although_the_records_cannot_be_fetched() -> None:
    calls: list[str] = []

    def flush(flag: int) -> None:
        raise RuntimeError("CUPTI_ERROR_UNKNOWN")

    cupti = SimpleNamespace(
        ActivityKind=SimpleNamespace(CONCURRENT_KERNEL=10),
        activity_register_callbacks=lambda *functions: None,
        activity_enable=lambda kind: calls.append("enable"),
        activity_disable=lambda kind: calls.append("disable"),
        activity_flush_all=flush,
    )
    records = CuptiRecords(lambda: cupti)
    records.start()
    with pytest.raises(RuntimeError):
        records.stop()
    assert calls == ["enable", "disable"]


def test_a_whole_run_is_found_among_pieces_of_others() -> None:
    times = np.arange(5) * 10
    records = [KernelRecord(name, int(at), int(at) + 7) for name, at in zip("babab", times, strict=True)]
    assert kernel_times_us(records[::-1], ["a", "b"]) == [0.007, 0.007]
    assert kernel_times_us(records, ["a", "a"]) is None
    assert kernel_times_us([], ["a"]) is None


def test_only_kernels_are_kept_of_what_cupti_gives() -> None:
    registered: list[Any] = []
    calls: list[Any] = []

    def flush(flag: int) -> None:
        kernel = SimpleNamespace(kind=10, name="scale", start=5, end=9)
        registered[1]([kernel, SimpleNamespace(kind=1)])
        calls.append("flush")

    cupti = SimpleNamespace(
        ActivityKind=SimpleNamespace(CONCURRENT_KERNEL=10),
        activity_register_callbacks=lambda *functions: registered.extend(functions),
        activity_enable=lambda kind: calls.append(("enable", kind)),
        activity_disable=lambda kind: calls.append(("disable", kind)),
        activity_flush_all=flush,
    )
    records = CuptiRecords(lambda: cupti)
    assert registered == []
    for _ in range(2):
        records.start()
        assert records.stop() == [KernelRecord("scale", 5, 9)]
    assert len(registered) == 2
    assert registered[0]() == (8 << 20, 0)
    assert calls == [("enable", 10), "flush", ("disable", 10)] * 2


@pytest.mark.gpu
def test_a_gpu_is_measured_by_records_where_cupti_is_installed_and_else_by_events(gpu: Gpu, tmp_path: Path) -> None:
    record = SelfCheckRecord(tmp_path, gpu.uuid)
    executor = CudaExecutor(make_stylegan2(), gpu.index, "fp32", record=record, lowered=hand_lower)
    bound = executor.bind(hand_schedule().plan)
    for _ in range(20):
        bound.run({})
    pending = bound.submit({}, measure=True)
    pending.wait()
    is_installed = importlib.util.find_spec("cupti") is not None
    assert pending.timing_source == ("cupti" if is_installed else "events")
    assert len(pending.steps) == 2
    assert pending.device_ms is not None
    assert sum(step.time_us for step in pending.steps) <= pending.device_ms * 1e3 * 1.01
    executor.close()
