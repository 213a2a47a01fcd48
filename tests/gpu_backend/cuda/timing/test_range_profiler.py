"""Hardware counters of a run's kernels, read from a CUPTI made of Python whose structures are those of the headers."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from gpu_backend.cuda.timing import cupti_structs as structs
from gpu_backend.cuda.timing.range_profiler import METRICS, counter_steps, counters_of
from gpu_backend.errors import DeviceError
from gpu_backend.frame import KernelCounters

KERNELS, PASSES, CHIP = 3, 4, b"GH100"

HEADER_SIZES = {
    structs.Params: (16, {}),
    structs.GetChipNameParams: (32, {"pChipName": 24}),
    structs.GetCounterAvailabilityParams: (40, {"pCounterAvailabilityImage": 32}),
    structs.HostInitializeParams: (48, {"pChipName": 24, "pHostObject": 40}),
    structs.HostParams: (24, {}),
    structs.AddMetricsParams: (40, {"numMetrics": 32}),
    structs.GetConfigImageSizeParams: (32, {"configImageSize": 24}),
    structs.GetConfigImageParams: (40, {"pConfigImage": 32}),
    structs.EvaluateParams: (72, {"rangeIndex": 40, "pMetricValues": 64}),
    structs.EnableParams: (32, {"pRangeProfilerObject": 24}),
    structs.RangeParams: (24, {}),
    structs.StopParams: (41, {"isAllPassSubmitted": 40}),
    structs.DecodeDataParams: (32, {"numOfRangeDropped": 24}),
    structs.SetConfigParams: (
        90,
        {"range": 56, "replayMode": 60, "maxRangesPerPass": 64, "passIndex": 80, "targetNestingLevel": 88},
    ),
    structs.GetCounterDataSizeParams: (64, {"maxNumRangeTreeNodes": 48, "counterDataSize": 56}),
    structs.InitializeCounterDataParams: (40, {"pCounterData": 32}),
    structs.GetCounterDataInfoParams: (40, {"numTotalRanges": 32}),
}
"""STRUCT_SIZE and offsets that a C++ compiler gives for the headers of CUDA 13.0 on 64-bit Linux."""


@pytest.mark.parametrize("kind", HEADER_SIZES, ids=lambda kind: str(kind.__name__))
def test_structures_are_those_of_the_headers(kind: type[structs.Params]) -> None:
    nbytes, offsets = HEADER_SIZES[kind]
    assert kind.sized().structSize == nbytes
    assert {name: getattr(kind, name).offset for name in offsets} == offsets


class FakeCupti:
    """Counts kernels that are launched between start and stop; everything that it opens has to be closed."""

    def __init__(self, *, answers: dict[str, int] | None = None, dropped: int = 0) -> None:
        self.answers = answers or {}
        self.dropped = dropped
        self.log: list[str] = []
        self.passes: list[int] = []
        self.open: list[str] = []
        self.metrics: list[bytes] = []
        self.modes: tuple[int, int, int] = (0, 0, 0)
        self._counted: int | None = None

    def __call__(self, name: str, params: Any) -> int:
        assert params.structSize == type(params).nbytes()
        assert params.pPriv is None
        short = name.removeprefix("cupti")
        self.log.append(short)
        if short in self.answers:
            return self.answers[short]
        method = re.sub(r"(?<!^)([A-Z])", r"_\1", short).lower()
        act: Callable[[Any], None] = getattr(self, method, lambda params: None)
        act(params)
        return 0

    def launch(self) -> None:
        if self._counted is not None:
            self._counted += 1

    def device_get_chip_name(self, params: Any) -> None:
        assert params.deviceIndex == 1
        params.pChipName = CHIP

    def profiler_get_counter_availability(self, params: Any) -> None:
        assert params.ctx == 0xC0
        if params.pCounterAvailabilityImage:
            assert params.counterAvailabilityImageSize == 5
            params.pCounterAvailabilityImage[4] = 9
        else:
            params.counterAvailabilityImageSize = 5

    def profiler_host_initialize(self, params: Any) -> None:
        assert (params.pChipName, params.pCounterAvailabilityImage[4]) == (CHIP, 9)
        self.open.append("host")
        params.pHostObject = 0xA0

    def profiler_host_config_add_metrics(self, params: Any) -> None:
        self.metrics = [params.ppMetricNames[place] for place in range(params.numMetrics)]

    def profiler_host_get_config_image_size(self, params: Any) -> None:
        params.configImageSize = 7

    def profiler_host_get_config_image(self, params: Any) -> None:
        params.pConfigImage[params.configImageSize - 1] = 3

    def range_profiler_enable(self, params: Any) -> None:
        self.open.append("profiler")
        params.pRangeProfilerObject = 0xB0

    def range_profiler_get_counter_data_size(self, params: Any) -> None:
        assert (params.numMetrics, params.maxNumRangeTreeNodes) == (len(METRICS), params.maxNumOfRanges)
        params.counterDataSize = 8 * params.maxNumOfRanges

    def range_profiler_set_config(self, params: Any) -> None:
        assert (params.pConfig[params.configSize - 1], params.pRangeProfilerObject) == (3, 0xB0)
        assert params.counterDataImageSize == 8 * params.maxRangesPerPass
        self.modes = params.range, params.replayMode, params.minNestingLevel

    def range_profiler_start(self, params: Any) -> None:
        self._counted = 0

    def range_profiler_stop(self, params: Any) -> None:
        assert self._counted is not None
        self.passes.append(self._counted)
        self._counted = None
        params.isAllPassSubmitted = len(self.passes) >= PASSES

    def range_profiler_decode_data(self, params: Any) -> None:
        params.numOfRangeDropped = self.dropped

    def range_profiler_get_counter_data_info(self, params: Any) -> None:
        params.numTotalRanges = self.passes[-1]

    def profiler_host_evaluate_to_gpu_values(self, params: Any) -> None:
        assert ctypes.cast(params.ppMetricNames, ctypes.POINTER(ctypes.c_char_p))[0] == METRICS[0].encode()
        for place, value in enumerate((25.0, 50.0, 75.0, 4.0, math.nan)):
            params.pMetricValues[place] = value + params.rangeIndex

    def range_profiler_disable(self, params: Any) -> None:
        assert params.pRangeProfilerObject == 0xB0
        assert self.open.pop() == "profiler"

    def profiler_host_deinitialize(self, params: Any) -> None:
        assert params.pHostObject == 0xA0
        assert self.open.pop() == "host"


def counted(cupti: FakeCupti, run: Callable[[], None] | None = None) -> tuple[KernelCounters, ...]:
    def run_all() -> None:
        for _ in range(KERNELS):
            cupti.launch()

    steps = counter_steps(cupti, 0xC0, 1, KERNELS, run or run_all)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: tuple[KernelCounters, ...] = end.value
            return found


def test_the_whole_run_is_repeated_until_everything_is_counted() -> None:
    cupti = FakeCupti()
    found = counted(cupti)
    assert cupti.passes == [KERNELS] * PASSES
    assert cupti.metrics == [name.encode() for name in METRICS]
    assert cupti.modes == (structs.AUTO_RANGE, structs.USER_REPLAY, 1)
    assert found[0] == KernelCounters(0.25, 0.5, 0.75, 4.0, None)
    assert found[2].sm_share == pytest.approx(0.52)
    assert len(found) == KERNELS
    assert cupti.open == []


def test_other_work_between_two_steps_is_not_counted() -> None:
    cupti = FakeCupti()

    def run_all() -> None:
        for _ in range(KERNELS):
            cupti.launch()

    for _ in counter_steps(cupti, 0xC0, 1, KERNELS, run_all):
        cupti.launch()
    assert cupti.passes == [KERNELS] * PASSES


def test_a_run_that_fails_or_is_given_up_ends_everything_that_was_begun() -> None:
    cupti = FakeCupti()

    def fail() -> None:
        raise DeviceError("The GPU stopped working.")

    with pytest.raises(DeviceError, match="stopped working"):
        counted(cupti, fail)
    assert cupti.open == []
    assert "RangeProfilerStop" in cupti.log
    steps = counter_steps(cupti, 0xC0, 1, KERNELS, lambda: None)
    for _ in steps:
        if cupti.open == ["host", "profiler"]:
            break
    assert cupti.open == ["host", "profiler"]
    steps.close()
    assert cupti.open == []


@pytest.mark.parametrize(
    ("function", "answer", "sentence"),
    [
        ("RangeProfilerEnable", 35, "administrators only.*ERR_NVGPUCTRPERM"),
        ("ProfilerGetCounterAvailability", 40, "administrators only"),
        ("ProfilerInitialize", 43, "does not give hardware counters"),
        ("RangeProfilerStart", 26, "Another program"),
        ("ProfilerHostConfigAddMetrics", 17, "CUPTI error 17"),
    ],
)
def test_what_cupti_refuses_is_one_sentence_with_what_to_do(function: str, answer: int, sentence: str) -> None:
    cupti = FakeCupti(answers={function: answer})
    with pytest.raises(DeviceError, match=sentence):
        counted(cupti)
    assert cupti.open == []


def test_counters_of_other_kernels_are_refused() -> None:
    with pytest.raises(DeviceError, match="do not fit the kernels"):
        counted(FakeCupti(dropped=1))
    cupti = FakeCupti()
    with pytest.raises(DeviceError, match="do not fit the kernels"):
        counted(cupti, cupti.launch)


def test_a_cupti_that_never_ends_its_passes_is_left() -> None:
    cupti = FakeCupti()

    def run_all() -> None:
        cupti.passes.clear()
        for _ in range(KERNELS):
            cupti.launch()

    with pytest.raises(DeviceError, match="do not fit the kernels"):
        counted(cupti, run_all)
    assert cupti.open == []


def test_kernels_without_requests_have_no_sectors_and_shares_end_at_one() -> None:
    assert counters_of((12.5, 101.0, math.nan, 0.0, math.nan)) == KernelCounters(0.125, 1.0, None, None, None)
