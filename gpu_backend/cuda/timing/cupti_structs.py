"""Parameter structures of CUPTI's range profiler and profiler host API, as ctypes.

After NVIDIA's headers cupti_profiler_target.h, cupti_profiler_host.h, cupti_range_profiler.h and cupti_target.h of CUDA
13.0. Each structure begins with its own size, without padding at its end, by which a newer CUPTI knows which fields the
caller has.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_void_p
from typing import Any, ClassVar

RANGE_PROFILER = 0
"""CUPTI_PROFILER_TYPE_RANGE_PROFILER, and CUPTI_PROFILER_RANGE_PROFILING."""

AUTO_RANGE = 1
"""CUPTI_AutoRange: each kernel is a range."""

USER_REPLAY = 3
"""CUPTI_UserReplay: the caller repeats the work until all passes are done."""


class Params(ctypes.Structure):
    """The fields that all structures begin with; alone they are the parameters of cuptiProfilerInitialize."""

    _fields_: ClassVar[Any] = [("structSize", c_size_t), ("pPriv", c_void_p)]

    @classmethod
    def nbytes(cls) -> int:
        """Return what CUPTI calls STRUCT_SIZE: up to the end of the last field."""
        last = getattr(cls, cls._fields_[-1][0])
        return int(last.offset + last.size)

    @classmethod
    def sized(cls, **values: object) -> Any:
        """Return the structure with its size and these fields; the others are zero."""
        return cls(structSize=cls.nbytes(), **values)


class GetChipNameParams(Params):
    """cuptiDeviceGetChipName."""

    _fields_: ClassVar[Any] = [("deviceIndex", c_size_t), ("pChipName", c_char_p)]


class GetCounterAvailabilityParams(Params):
    """cuptiProfilerGetCounterAvailability."""

    _fields_: ClassVar[Any] = [
        ("ctx", c_void_p),
        ("counterAvailabilityImageSize", c_size_t),
        ("pCounterAvailabilityImage", POINTER(c_uint8)),
    ]


class HostInitializeParams(Params):
    """cuptiProfilerHostInitialize."""

    _fields_: ClassVar[Any] = [
        ("profilerType", c_int),
        ("pChipName", c_char_p),
        ("pCounterAvailabilityImage", POINTER(c_uint8)),
        ("pHostObject", c_void_p),
    ]


class HostParams(Params):
    """cuptiProfilerHostDeinitialize."""

    _fields_: ClassVar[Any] = [("pHostObject", c_void_p)]


class AddMetricsParams(Params):
    """cuptiProfilerHostConfigAddMetrics."""

    _fields_: ClassVar[Any] = [
        ("pHostObject", c_void_p),
        ("ppMetricNames", POINTER(c_char_p)),
        ("numMetrics", c_size_t),
    ]


class GetConfigImageSizeParams(Params):
    """cuptiProfilerHostGetConfigImageSize."""

    _fields_: ClassVar[Any] = [("pHostObject", c_void_p), ("configImageSize", c_size_t)]


class GetConfigImageParams(Params):
    """cuptiProfilerHostGetConfigImage."""

    _fields_: ClassVar[Any] = [
        ("pHostObject", c_void_p),
        ("configImageSize", c_size_t),
        ("pConfigImage", POINTER(c_uint8)),
    ]


class EvaluateParams(Params):
    """cuptiProfilerHostEvaluateToGpuValues."""

    _fields_: ClassVar[Any] = [
        ("pHostObject", c_void_p),
        ("pCounterDataImage", POINTER(c_uint8)),
        ("counterDataImageSize", c_size_t),
        ("rangeIndex", c_size_t),
        ("ppMetricNames", POINTER(c_char_p)),
        ("numMetrics", c_size_t),
        ("pMetricValues", POINTER(c_double)),
    ]


class EnableParams(Params):
    """cuptiRangeProfilerEnable."""

    _fields_: ClassVar[Any] = [("ctx", c_void_p), ("pRangeProfilerObject", c_void_p)]


class RangeParams(Params):
    """cuptiRangeProfilerStart and cuptiRangeProfilerDisable."""

    _fields_: ClassVar[Any] = [("pRangeProfilerObject", c_void_p)]


class StopParams(Params):
    """cuptiRangeProfilerStop."""

    _fields_: ClassVar[Any] = [
        ("pRangeProfilerObject", c_void_p),
        ("passIndex", c_size_t),
        ("targetNestingLevel", c_size_t),
        ("isAllPassSubmitted", c_uint8),
    ]


class DecodeDataParams(Params):
    """cuptiRangeProfilerDecodeData."""

    _fields_: ClassVar[Any] = [("pRangeProfilerObject", c_void_p), ("numOfRangeDropped", c_size_t)]


class SetConfigParams(Params):
    """cuptiRangeProfilerSetConfig."""

    _fields_: ClassVar[Any] = [
        ("pRangeProfilerObject", c_void_p),
        ("configSize", c_size_t),
        ("pConfig", POINTER(c_uint8)),
        ("counterDataImageSize", c_size_t),
        ("pCounterDataImage", POINTER(c_uint8)),
        ("range", c_int),
        ("replayMode", c_int),
        ("maxRangesPerPass", c_size_t),
        ("numNestingLevels", c_uint16),
        ("minNestingLevel", c_uint16),
        ("passIndex", c_size_t),
        ("targetNestingLevel", c_uint16),
    ]


class GetCounterDataSizeParams(Params):
    """cuptiRangeProfilerGetCounterDataSize."""

    _fields_: ClassVar[Any] = [
        ("pRangeProfilerObject", c_void_p),
        ("pMetricNames", POINTER(c_char_p)),
        ("numMetrics", c_size_t),
        ("maxNumOfRanges", c_size_t),
        ("maxNumRangeTreeNodes", c_uint32),
        ("counterDataSize", c_size_t),
    ]


class InitializeCounterDataParams(Params):
    """cuptiRangeProfilerCounterDataImageInitialize."""

    _fields_: ClassVar[Any] = [
        ("pRangeProfilerObject", c_void_p),
        ("counterDataSize", c_size_t),
        ("pCounterData", POINTER(c_uint8)),
    ]


class GetCounterDataInfoParams(Params):
    """cuptiRangeProfilerGetCounterDataInfo."""

    _fields_: ClassVar[Any] = [
        ("pCounterDataImage", POINTER(c_uint8)),
        ("counterDataImageSize", c_size_t),
        ("numTotalRanges", c_size_t),
    ]
