"""Looks for devices on its own thread: a driver may be slow, or never answer. No Qt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from explorer_app.rendering.backend import BackendLike
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import DeviceFailed, DevicesFound, RenderEvent

_END_S = 1.0
"""A driver that does not answer must not block the exit."""


class DeviceFinder:
    """Looks once, and then starts the GPU that is chosen, so that the first renderer need not.

    Parameters
    ----------
    backend
        Finds devices.
    condition
        Notified when it is done.
    report
        Receives `DevicesFound`, on the finder's thread.
    choice
        The chosen device.
    """

    def __init__(
        self,
        backend: BackendLike,
        condition: threading.Condition,
        report: Callable[[RenderEvent], None],
        choice: DeviceChoice,
    ) -> None:
        self._backend = backend
        self._condition = condition
        self._report = report
        self._choice = choice
        self._thread: threading.Thread | None = None
        self._began_s = 0.0
        self._is_done = False

    @property
    def has_begun(self) -> bool:
        """Whether looking has begun."""
        return self._thread is not None

    @property
    def is_done(self) -> bool:
        """Whether devices are known, so that asking for them does not block."""
        with self._condition:
            return self._is_done

    @property
    def seconds(self) -> float:
        """How long it has been looking; 0 before it began."""
        return time.monotonic() - self._began_s if self._thread is not None else 0.0

    def start(self) -> None:
        """Begin to look. Does nothing after the first time."""
        if self._thread is None:
            self._began_s = time.monotonic()
            self._thread = threading.Thread(target=self._run, name="looking for devices", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait a moment for an answer. May be called twice."""
        if self._thread is not None:
            self._thread.join(_END_S)

    def _run(self) -> None:
        try:
            event: RenderEvent = DevicesFound(tuple(self._backend.find_devices()))
        except Exception as error:
            event = DeviceFailed(error, was_rendering=False)
        self._report(event)
        with self._condition:
            self._is_done = True
            self._condition.notify_all()
        if self._choice.wants_gpu:
            self._backend.prepare_device(self._choice)
