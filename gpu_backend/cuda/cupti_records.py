"""When each kernel began and ended, by CUPTI's own records. Linux, with the ``profile`` extra.

CUPTI has one client a process, which is this module. Only kernels are recorded, and only between `start` and `stop`: a
replay is slower meanwhile, and records that nobody fetches pile up. Whole-graph records are never asked for, since they
would take the place of those of the kernels for good.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from typing import Any

from gpu_backend.cuda.cupti_timer import KernelRecord

_BUFFER_NBYTES = 8 << 20


class CuptiRecords:
    """Keeps `gpu_backend.cuda.cupti_timer.KernelRecords`."""

    def __init__(self, cupti: Any) -> None:
        self._cupti = cupti
        self._kind = cupti.ActivityKind.CONCURRENT_KERNEL
        self._records: list[KernelRecord] = []
        cupti.activity_register_callbacks(lambda: (_BUFFER_NBYTES, 0), self._take)

    def start(self) -> None:
        """Record kernels from now on."""
        self._records = []
        self._cupti.activity_enable(self._kind)

    def stop(self) -> list[KernelRecord]:
        """Record no longer; return what was recorded, in no order."""
        self._cupti.activity_flush_all(1)
        self._cupti.activity_disable(self._kind)
        records, self._records = self._records, []
        return records

    def _take(self, activities: Iterable[Any]) -> None:
        """Keep plain numbers: the activities are CUPTI's own memory, and gone after this."""
        kind = int(self._kind)
        self._records += [
            KernelRecord(str(activity.name), int(activity.start), int(activity.end))
            for activity in activities
            if int(activity.kind) == kind
        ]


@functools.cache
def cupti_records() -> CuptiRecords | None:
    """Return the process's recorder; None where CUPTI is not installed or has another client."""
    if sys.platform != "linux":
        return None
    try:
        # The extra may be missing, and its library may not fit the driver: both are no reason to fail.
        from cupti import cupti

        return CuptiRecords(cupti)
    except Exception:
        return None
