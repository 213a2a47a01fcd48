"""A run that was handed to the GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.interface import Event
from gpu_backend.cuda.driver.pinned import Memory, address_of, array_over
from gpu_backend.errors import DeviceError
from gpu_backend.frame import StepTime, TimingSource


@dataclass(slots=True, eq=False)
class Lane:
    """What a run in flight has for itself: events, inputs on their way in, outputs on their way out.

    `outputs` has, by name, the memory of every output requested so far. `beside` is memory of the device for pixels
    that are copied while the next run overwrites the plan's own; 0 until there was such a run.
    """

    start: Event
    end: Event
    copied: Event
    done: Event
    staging: Memory
    outputs: dict[str, Memory] = field(default_factory=dict)
    beside: int = 0
    staging_array: NDArray[np.uint8] = field(init=False)
    staging_address: int = field(init=False)

    def __post_init__(self) -> None:
        self.staging_array = array_over(self.staging, (len(self.staging),), "uint8")
        self.staging_address = address_of(self.staging)


class DeviceRun:
    """Implements `gpu_backend.plan.executor.PendingRun`. The bound plan fills it in when it is over.

    Parameters
    ----------
    done
        Event after which its outputs are on the host.
    wanted
        Outputs that are copied to the lane's own memory.
    finish
        Waits for the run and calls `succeed` or `fail`.

    Attributes
    ----------
    picture
        Outputs that are copied to a slot of pinned memory, the pixels and what lies behind them, by name; empty if all
        slots are lent or no pixels are requested.
    first
        The schedule's launch that it began with.
    """

    def __init__(self, lane: Lane, done: Event, wanted: tuple[str, ...], finish: Callable[[DeviceRun], None]) -> None:
        self.lane = lane
        self.done = done
        self.wanted = wanted
        self.picture: Mapping[str, NDArray[Any]] = {}
        self.is_replay = False
        self.is_measured = False
        self.first = 0
        self.waited_ms = 0.0
        self.steps: tuple[StepTime, ...] = ()
        self.timing_source: TimingSource = "events"
        self.device_ms: float | None = None
        self._finish = finish
        self._outputs: Mapping[str, NDArray[Any]] | None = None
        self._error: DeviceError | None = None

    @property
    def is_over(self) -> bool:
        """Whether it succeeded or failed, and its outcome was read."""
        return self._outputs is not None or self._error is not None

    def wait(self) -> Mapping[str, NDArray[Any]]:
        """Wait for this run and return the requested outputs.

        Raises
        ------
        DeviceMemoryError, DeviceLostError
            If the device failed.
        """
        if not self.is_over:
            self._finish(self)
        if self._error is not None:
            # A new one each time: an error that is kept would keep the frames that it went through.
            raise type(self._error)(self._error.sentence, self._error.details)
        return {} if self._outputs is None else self._outputs

    def succeed(self, outputs: Mapping[str, NDArray[Any]]) -> None:
        """Say what it gave."""
        self._outputs = outputs

    def fail(self, error: DeviceError) -> None:
        """Say why it gave nothing. The slot of its picture is free again."""
        self._error = error.with_traceback(None)
        self.picture = {}
