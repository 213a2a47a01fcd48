"""Hardware counters of every kernel of a run, by CUPTI's range profiler. Needs the ``profile`` extra and permission.

A GPU counts a few things at a time, so the run is repeated, a pass each, until all of them are counted. A whole run is
repeated, not each kernel by itself as Nsight Compute does: kernels that add to what is in memory then find what the
kernels before them wrote, nothing has to be saved and restored, and caches hold what they hold in a frame.
Kernels run one after another meanwhile, and each waits for the one before.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
from collections.abc import Callable, Generator, Sequence
from ctypes import POINTER, c_char_p, c_double, c_int, c_uint8, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.cuda.timing import cupti_structs as structs
from gpu_backend.errors import DeviceError
from gpu_backend.frame import KernelCounters

METRICS = (
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
)
"""What is counted, by the names of Nsight Compute; the fields of `KernelCounters` in their order."""

Call = Callable[[str, structs.Params], int]
"""Calls a function of CUPTI, by its name, with its structure of parameters; returns CUptiResult, 0 for success."""

CountKernels = Callable[[int, Callable[[], None]], Generator[None, None, tuple[KernelCounters, ...]]]
"""`counter_steps` for one GPU: takes the number of kernels and what runs them."""

_MOST_PASSES = 64
"""About eight are needed; more mean that CUPTI does not get on."""

_NO_PERMISSION = frozenset({35, 40})
_NOT_HERE = frozenset({27, 33, 41, 42, 43, 44, 45, 46})
_BUSY = frozenset({26, 39})

_NOT_INSTALLED = "Hardware counters need NVIDIA's CUPTI; install it with: pip install 'latentloom[profile]'"


def counter_steps(
    call: Call, context: int, device: int, kernels: int, run: Callable[[], None]
) -> Generator[None, None, tuple[KernelCounters, ...]]:
    """Count in bounded steps; return the counters of each kernel, in the order of launches.

    Between two steps the GPU may do other work, which is not counted.

    Parameters
    ----------
    context
        The driver's handle of the context, which is current for the calling thread.
    device
        The driver's number of the GPU.
    kernels
        Number of kernels that `run` launches.
    run
        Launches the kernels, the same ones each time, and waits for them.

    Raises
    ------
    DeviceError
        If they cannot be counted; the sentence says why and what to do.
    """
    # An error of a run passes through; what was begun is ended all the same.
    with contextlib.ExitStack() as open_parts:
        _check(call("cuptiProfilerInitialize", structs.Params.sized()))
        yield
        available = _available_counters(call, context)
        yield
        host = _open_host(call, device, available)
        open_parts.callback(call, "cuptiProfilerHostDeinitialize", structs.HostParams.sized(pHostObject=host))
        config = _config_image(call, host)
        yield
        enabled = structs.EnableParams.sized(ctx=context)
        _check(call("cuptiRangeProfilerEnable", enabled))
        profiler = enabled.pRangeProfilerObject
        of_profiler = structs.RangeParams.sized(pRangeProfilerObject=profiler)
        open_parts.callback(call, "cuptiRangeProfilerDisable", of_profiler)
        image = _counter_image(call, profiler, kernels)
        _check(
            call(
                "cuptiRangeProfilerSetConfig",
                structs.SetConfigParams.sized(
                    pRangeProfilerObject=profiler,
                    configSize=len(config),
                    pConfig=_bytes(config),
                    counterDataImageSize=len(image),
                    pCounterDataImage=_bytes(image),
                    range=structs.AUTO_RANGE,
                    replayMode=structs.USER_REPLAY,
                    maxRangesPerPass=kernels,
                    numNestingLevels=1,
                    minNestingLevel=1,
                ),
            )
        )
        stopped = structs.StopParams.sized(pRangeProfilerObject=profiler)
        for _ in range(_MOST_PASSES):
            yield
            _check(call("cuptiRangeProfilerStart", of_profiler))
            try:
                run()
            finally:
                outcome = call("cuptiRangeProfilerStop", stopped)
            _check(outcome)
            if stopped.isAllPassSubmitted:
                break
        decoded = structs.DecodeDataParams.sized(pRangeProfilerObject=profiler)
        _check(call("cuptiRangeProfilerDecodeData", decoded))
        found = structs.GetCounterDataInfoParams.sized(pCounterDataImage=_bytes(image), counterDataImageSize=len(image))
        _check(call("cuptiRangeProfilerGetCounterDataInfo", found))
        if not stopped.isAllPassSubmitted or decoded.numOfRangeDropped or found.numTotalRanges != kernels:
            raise DeviceError(
                "The hardware counters do not fit the kernels; measure them again without other programs on the GPU.",
                f"{found.numTotalRanges} ranges for {kernels} kernels, {decoded.numOfRangeDropped} dropped",
            )
        return tuple(_evaluate(call, host, image, place) for place in range(kernels))


def counting(driver: Driver, device: int) -> CountKernels:
    """Return what counts on a GPU; CUPTI is loaded when it begins."""

    def steps(kernels: int, run: Callable[[], None]) -> Generator[None, None, tuple[KernelCounters, ...]]:
        return (yield from counter_steps(load_cupti(), driver.context, device, kernels, run))

    return steps


def counters_of(values: Sequence[float]) -> KernelCounters:
    """Return counters for values of `METRICS`; a kernel without requests has no sectors a request."""
    occupancy, sm, dram = (min(value / 100.0, 1.0) if math.isfinite(value) else None for value in values[:3])
    loads, stores = (value if math.isfinite(value) and value > 0.0 else None for value in values[3:])
    return KernelCounters(occupancy, sm, dram, loads, stores)


@cache
def load_cupti() -> Call:
    """Return the functions of the installed CUPTI.

    Raises
    ------
    DeviceError
        If it is not installed, or is older than the range profiler.
    """
    # Imported here: it looks for libraries, which only a measurement needs.
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        path = load_nvidia_dynamic_lib("cupti").abs_path
        if path is None:
            raise OSError("the library was loaded before, from an unknown place")
        if sys.platform == "win32":
            os.add_dll_directory(str(Path(path).parent))  # CUPTI loads nvperf_host from its own folder
        library = ctypes.CDLL(path)
        library.cuptiRangeProfilerEnable  # noqa: B018 - CUPTI before CUDA 12.6 does not have it
    except (OSError, RuntimeError, ValueError, AttributeError) as error:
        raise DeviceError(_NOT_INSTALLED, str(error)) from None

    def call(name: str, params: structs.Params) -> int:
        function = getattr(library, name)
        function.argtypes, function.restype = [c_void_p], c_int
        return int(function(ctypes.byref(params)))

    return call


def _available_counters(call: Call, context: int) -> Any:
    """Return the image of what may be counted; the first call of a process takes half a second."""
    available = structs.GetCounterAvailabilityParams.sized(ctx=context)
    _check(call("cuptiProfilerGetCounterAvailability", available))
    counters = (c_uint8 * available.counterAvailabilityImageSize)()
    available.pCounterAvailabilityImage = _bytes(counters)
    _check(call("cuptiProfilerGetCounterAvailability", available))
    return counters


def _open_host(call: Call, device: int, available: Any) -> int:
    """Return the object that schedules and evaluates metrics for a chip."""
    chip = structs.GetChipNameParams.sized(deviceIndex=device)
    _check(call("cuptiDeviceGetChipName", chip))
    opened = structs.HostInitializeParams.sized(
        profilerType=structs.RANGE_PROFILER, pChipName=chip.pChipName, pCounterAvailabilityImage=_bytes(available)
    )
    _check(call("cuptiProfilerHostInitialize", opened))
    return int(opened.pHostObject)


def _config_image(call: Call, host: int) -> Any:
    """Return the schedule of `METRICS` over passes."""
    names = _names()
    added = structs.AddMetricsParams.sized(pHostObject=host, ppMetricNames=names, numMetrics=len(METRICS))
    _check(call("cuptiProfilerHostConfigAddMetrics", added))
    wanted = structs.GetConfigImageSizeParams.sized(pHostObject=host)
    _check(call("cuptiProfilerHostGetConfigImageSize", wanted))
    config = (c_uint8 * wanted.configImageSize)()
    _check(
        call(
            "cuptiProfilerHostGetConfigImage",
            structs.GetConfigImageParams.sized(
                pHostObject=host, configImageSize=len(config), pConfigImage=_bytes(config)
            ),
        )
    )
    return config


def _counter_image(call: Call, profiler: int, kernels: int) -> Any:
    """Return memory for the counters of `kernels` kernels."""
    wanted = structs.GetCounterDataSizeParams.sized(
        pRangeProfilerObject=profiler,
        pMetricNames=_names(),
        numMetrics=len(METRICS),
        maxNumOfRanges=kernels,
        maxNumRangeTreeNodes=kernels,
    )
    _check(call("cuptiRangeProfilerGetCounterDataSize", wanted))
    image = (c_uint8 * wanted.counterDataSize)()
    _check(
        call(
            "cuptiRangeProfilerCounterDataImageInitialize",
            structs.InitializeCounterDataParams.sized(
                pRangeProfilerObject=profiler, counterDataSize=len(image), pCounterData=_bytes(image)
            ),
        )
    )
    return image


def _evaluate(call: Call, host: int, image: Any, place: int) -> KernelCounters:
    values = (c_double * len(METRICS))()
    asked = structs.EvaluateParams.sized(
        pHostObject=host,
        pCounterDataImage=_bytes(image),
        counterDataImageSize=len(image),
        rangeIndex=place,
        ppMetricNames=_names(),
        numMetrics=len(METRICS),
        pMetricValues=ctypes.cast(values, POINTER(c_double)),
    )
    _check(call("cuptiProfilerHostEvaluateToGpuValues", asked))
    return counters_of(list(values))


@cache
def _names() -> Any:
    """Return the names of `METRICS` as C has them; kept, because structures hold their address alone."""
    return (c_char_p * len(METRICS))(*(name.encode() for name in METRICS))


def _bytes(image: Any) -> Any:
    return ctypes.cast(image, POINTER(c_uint8))


def _check(outcome: int) -> None:
    """Raise the error for what CUPTI answered, unless that is success."""
    if not outcome:
        return
    details = f"CUPTI error {outcome}"
    if outcome in _NO_PERMISSION:
        raise DeviceError(
            "The NVIDIA driver shows hardware counters to administrators only; to allow them, follow "
            "https://developer.nvidia.com/ERR_NVGPUCTRPERM and restart the computer.",
            details,
        )
    if outcome in _NOT_HERE:
        raise DeviceError("This GPU, or how it is shared, does not give hardware counters.", details)
    if outcome in _BUSY:
        raise DeviceError(
            "Another program reads this GPU's hardware counters; close it and measure them again.", details
        )
    raise DeviceError(f"The hardware counters cannot be read ({details}).", details)
