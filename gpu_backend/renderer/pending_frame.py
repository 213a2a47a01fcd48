"""A frame on its way."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.frame import Frame, FrameTimings
from gpu_backend.network import Network
from gpu_backend.plan.executor import PendingRun
from gpu_backend.request import RenderRequest

_NOT_FINITE = ("The network gave numbers that are not finite, so parts of this picture mean nothing.",)


@dataclass(frozen=True, slots=True)
class Departure:
    """What is known of a frame when its run was handed over. Times are those of `time.perf_counter`.

    Attributes
    ----------
    start_s, rows_s, submitted_s
        When the request was taken, when its w rows were there, when the run was on its way.
    mapping_waited_ms
        Of the time before `rows_s`, what was spent on waiting for the device.
    """

    request: RenderRequest
    start_s: float
    rows_s: float
    submitted_s: float
    mapping_waited_ms: float
    is_draft: bool
    has_alpha: bool


class PendingFrame:
    """Made by `Renderer.submit`; belongs to the same thread."""

    def __init__(self, network: Network, run: PendingRun, departure: Departure) -> None:
        self._network = network
        self._run = run
        self._departure = departure
        self._frame: Frame | None = None

    def wait(self) -> Frame:
        """Return the frame when it is there; again and again the same one.

        Raises
        ------
        CancelledError
            If it was given up.
        DeviceError
            If the device failed, or the renderer was closed before the first `wait`.
        """
        if self._frame is None:
            self._frame = self._finish()
        return self._frame

    def _finish(self) -> Frame:
        departure, run = self._departure, self._run
        self._network.check_usable()
        start_s = time.perf_counter()
        outputs = self._network.finish(run)
        done_s = time.perf_counter()
        pixels: NDArray[np.uint8] = outputs["pixels"][0]
        pixels.flags.writeable = False
        worked_s = departure.submitted_s - departure.start_s + done_s - start_s
        return Frame(
            request=departure.request,
            pixels=pixels,
            timings=FrameTimings(
                total_ms=(done_s - departure.start_s) * 1e3,
                latent_ms=(departure.rows_s - departure.start_s) * 1e3,
                synthesis_ms=(done_s - departure.rows_s) * 1e3,
                steps=run.steps,
                device_ms=run.device_ms,
                host_ms=max(0.0, worked_s * 1e3 - run.waited_ms - departure.mapping_waited_ms),
                timing_source=run.timing_source,
            ),
            is_draft=departure.is_draft,
            has_alpha=departure.has_alpha,
            warnings=_NOT_FINITE if outputs["flags"].any() else (),
        )
