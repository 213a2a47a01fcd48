"""When each kernel began and ended, by CUPTI's own records. Linux, with the ``profile`` extra.

CUPTI has one client a process, which is this module. Only kernels are recorded, and only between `start` and `stop`:
replays are slower meanwhile, and records that are not fetched pile up. Whole-graph records are never requested, since
they would replace those of the kernels for good.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from typing import Any

from gpu_backend.cuda.timing.cupti_timer import KernelRecord

_BUFFER_NBYTES = 8 << 20


class CuptiRecords:
    """Implements `gpu_backend.cuda.timing.cupti_timer.KernelRecords`. CUPTI is loaded by the first `start`.

    An exception of any kind means that it does not work: its library may not fit the driver, or have another client.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._cupti: Any = None
        self._kind = 0
        self._records: list[KernelRecord] = []

    def start(self) -> None:
        """Record kernels from now on."""
        if self._cupti is None:
            cupti = self._load()
            cupti.activity_register_callbacks(lambda: (_BUFFER_NBYTES, 0), self._take)
            self._kind = int(cupti.ActivityKind.CONCURRENT_KERNEL)
            self._cupti = cupti
        self._records = []
        self._cupti.activity_enable(self._kind)

    def stop(self) -> list[KernelRecord]:
        """Record no longer; return what was recorded, in no order."""
        try:
            self._cupti.activity_flush_all(1)
        finally:
            self._cupti.activity_disable(self._kind)
        records, self._records = self._records, []
        return records

    def _take(self, activities: Iterable[Any]) -> None:
        """Keep plain numbers: the activities are CUPTI's own memory, and gone after this."""
        self._records += [
            KernelRecord(str(activity.name), int(activity.start), int(activity.end))
            for activity in activities
            if int(activity.kind) == self._kind
        ]


@functools.cache
def cupti_records() -> CuptiRecords | None:
    """Return the process's recorder; None where CUPTI is not installed."""
    if sys.platform != "linux" or importlib.util.find_spec("cupti") is None:
        return None
    return CuptiRecords(lambda: importlib.import_module("cupti.cupti"))
