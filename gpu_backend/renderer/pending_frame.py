"""Frames in flight: one or several of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.frame import Frame, FrameTimings, TappedLayer, ValueStatistics
from gpu_backend.model_runner import ModelRunner
from gpu_backend.plan.executor import FRAME_OUTPUTS, IMAGE_OUTPUT, TAP_OUTPUTS, TAP_VALUES, PendingRun
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.recipe import Tap
from gpu_backend.request import RenderRequest

_NOT_FINITE = ("The network gave numbers that are not finite, so parts of this picture mean nothing.",)


@dataclass(frozen=True, slots=True)
class FrameContext:
    """Facts of a frame that are known when its run was submitted. Times are from `time.perf_counter`.

    Attributes
    ----------
    start_s, rows_s, submitted_s
        When the request arrived, when its w rows were computed, and when the run was submitted.
    mapping_waited_ms
        Time before `rows_s` spent waiting for the device.
    tap_channels
        Channels of the tapped layer; 0 for a picture.
    ws
        The w rows, (num_ws, w_dim).
    """

    request: RenderRequest
    start_s: float
    rows_s: float
    submitted_s: float
    mapping_waited_ms: float
    is_draft: bool
    has_alpha: bool
    tap_channels: int = 0
    ws: NDArray[np.float32] | None = None


class PendingOutputs:
    """The outputs of a run of `count` frames, fetched once."""

    def __init__(self, runner: ModelRunner, run: PendingRun, count: int) -> None:
        self.run = run
        self.count = count
        self._runner = runner
        self._outputs: Mapping[str, NDArray[Any]] | None = None

    def wait(self) -> Mapping[str, NDArray[Any]]:
        """Wait for the run and return its outputs, batch axis first. Raises as `PendingFrame.wait`."""
        if self._outputs is None:
            self._runner.check_usable()
            self._outputs = self._runner.finish(self.run)
            for name in ("pixels", IMAGE_OUTPUT):
                if name in self._outputs:
                    self._outputs[name].flags.writeable = False
        return self._outputs


class PendingFrame:
    """A submitted frame, from `Renderer.submit` or `Renderer.submit_batch`. Use it on the renderer's thread only.

    Parameters
    ----------
    place
        Index of the frame in its run.
    """

    def __init__(self, pending: PendingOutputs, context: FrameContext, place: int = 0) -> None:
        self._pending = pending
        self._context = context
        self._place = place
        self._frame: Frame | None = None

    def wait(self) -> Frame:
        """Wait for the frame and return it. Later calls return the same frame.

        Raises
        ------
        CancelledError
            If the frame was cancelled.
        DeviceError
            If the device failed, or the renderer was closed before the first `wait`.
        """
        if self._frame is None:
            self._frame = self._finish()
        return self._frame

    def _finish(self) -> Frame:
        context, run, count = self._context, self._pending.run, self._pending.count
        start_s = time.perf_counter()
        outputs = self._pending.wait()
        done_s = time.perf_counter()
        tap = context.request.tap
        pixels: NDArray[np.uint8] = outputs["pixels"][self._place]
        worked_s = context.submitted_s - context.start_s + done_s - start_s
        return Frame(
            request=context.request,
            pixels=pixels,
            timings=FrameTimings(
                total_ms=(done_s - context.start_s) * 1e3,
                latent_ms=(context.rows_s - context.start_s) * 1e3,
                synthesis_ms=(done_s - context.rows_s) * 1e3,
                steps=run.steps,
                device_ms=None if run.device_ms is None else run.device_ms / count,
                host_ms=max(0.0, worked_s * 1e3 - run.waited_ms - context.mapping_waited_ms),
                timing_source=run.timing_source,
            ),
            is_draft=context.is_draft,
            has_alpha=context.has_alpha,
            warnings=_NOT_FINITE if outputs["flags"][self._place] else (),
            tap=None if tap is None else _tapped(tap, context.tap_channels, outputs),
            ws=context.ws,
            image=outputs[IMAGE_OUTPUT][self._place] if IMAGE_OUTPUT in outputs else None,
        )


def outputs_of(request: RenderRequest) -> tuple[str, ...]:
    """Return the names of the plan outputs that a request's frame needs."""
    if request.tap is None:
        return (*FRAME_OUTPUTS, IMAGE_OUTPUT) if request.wants_image else FRAME_OUTPUTS
    return (*FRAME_OUTPUTS, *TAP_OUTPUTS, *((TAP_VALUES,) if request.wants_tap_values else ()))


def _tapped(tap: Tap, channels: int, outputs: Mapping[str, NDArray[Any]]) -> TappedLayer:
    shown, whole = outputs["statistics"][0, :3], outputs["statistics"][0, 3]
    height, width = outputs["pixels"].shape[1:3]
    values: NDArray[np.float32] | None = None
    if TAP_VALUES in outputs:
        values = outputs[TAP_VALUES][0]
        values.flags.writeable = False
    return TappedLayer(
        layer=tap.layer,
        shape=(channels, height, width),
        shown=tuple(ValueStatistics(*row.tolist()) for row in shown[: len(tap.channels)]),
        whole=ValueStatistics(*whole.tolist()),
        values=values,
    )
