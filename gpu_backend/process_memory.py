"""The memory that this process holds in the machine's RAM, as the system counts it."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")
_RUSAGE_INFO_V0 = 0


def process_nbytes() -> int:
    """Return the resident memory of this process in bytes, shared libraries included; 0 if unknown.

    GPU memory is not included; page-locked host memory is.
    """
    try:
        if sys.platform == "win32":
            return _windows()
        if sys.platform == "darwin":
            return _macos()
        pages = int(_STATM.read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def _macos() -> int:
    """Call ``proc_pid_rusage``: `ri_resident_size` of struct rusage_info_v0 (sys/resource.h)."""

    class RusageInfo(ctypes.Structure):
        _fields_ = (
            ("uuid", ctypes.c_uint8 * 16),
            ("user_time", ctypes.c_uint64),
            ("system_time", ctypes.c_uint64),
            ("package_idle_wakeups", ctypes.c_uint64),
            ("interrupt_wakeups", ctypes.c_uint64),
            ("pageins", ctypes.c_uint64),
            ("wired_size", ctypes.c_uint64),
            ("resident_size", ctypes.c_uint64),
            ("phys_footprint", ctypes.c_uint64),
            ("process_start", ctypes.c_uint64),
            ("process_exit", ctypes.c_uint64),
        )

    info = RusageInfo()
    library = ctypes.CDLL("/usr/lib/libproc.dylib")
    failed = library.proc_pid_rusage(os.getpid(), _RUSAGE_INFO_V0, ctypes.byref(info))
    return 0 if failed else int(info.resident_size)


def _windows() -> int:
    """Call ``K32GetProcessMemoryInfo``: `WorkingSetSize` of PROCESS_MEMORY_COUNTERS (psapi.h)."""

    class Counters(ctypes.Structure):
        _fields_ = (
            ("size", ctypes.c_uint32),
            ("page_faults", ctypes.c_uint32),
            ("peak_working_set", ctypes.c_size_t),
            ("working_set", ctypes.c_size_t),
            ("quota_peak_paged_pool", ctypes.c_size_t),
            ("quota_paged_pool", ctypes.c_size_t),
            ("quota_peak_nonpaged_pool", ctypes.c_size_t),
            ("quota_nonpaged_pool", ctypes.c_size_t),
            ("pagefile", ctypes.c_size_t),
            ("peak_pagefile", ctypes.c_size_t),
        )

    kernel32 = getattr(ctypes, "windll").kernel32  # noqa: B009 - there is no windll for the type checker elsewhere
    kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    counters = Counters(size=ctypes.sizeof(Counters))
    is_known = kernel32.K32GetProcessMemoryInfo(
        ctypes.c_void_p(kernel32.GetCurrentProcess()), ctypes.byref(counters), counters.size
    )
    return int(counters.working_set) if is_known else 0
