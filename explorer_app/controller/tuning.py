"""Tuning from the window: progress and findings of the search on the render thread, and the renderer that uses them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.engine import Engine
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import TuningAdvanced, TuningEnded, TuningFound
from explorer_app.rendering.render_thread import RenderThread
from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import PredictionQuality, TileFinding, TileProgress


@dataclass(frozen=True, slots=True)
class TuningState:
    """State of a tuning.

    Attributes
    ----------
    share
        0..1 while one is under way, None otherwise.
    progress
        The convolution that is being searched for; None before the first step.
    is_stopping
        Whether it ends after the step under way.
    findings
        Results of the tuning under way, or of the last one.
    quality
        How well its timings predict those of shapes that are left out; None if unknown.
    """

    share: float | None = None
    progress: TileProgress | None = None
    is_stopping: bool = False
    findings: tuple[TileFinding, ...] = ()
    quality: PredictionQuality | None = None

    @property
    def gains(self) -> tuple[TileFinding, ...]:
        """Convolutions that another tile makes faster."""
        return tuple(item for item in self.findings if item.tile != item.before)


class Tuning(QObject):
    """Starts and stops a tuning of the open model on the GPU that renders.

    When it has ended with gains, the renderer is made again, so that pictures use them. During an export the renderer
    stays: frames of one sequence come from the same kernels.
    """

    changed = Signal()
    """`state`."""

    def __init__(
        self,
        renders: RenderThread,
        engine: Engine,
        export: ExportQueueController,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._engine = engine
        self._export = export
        self._messages = messages
        self._has_news = False
        self.state = TuningState()
        engine.model_changed.connect(self.stop)
        engine.devices.changed.connect(self._device_changed)
        export.changed.connect(self._use_findings)

    def start(self, budget_s: float) -> None:
        """Search for about `budget_s` seconds. Does nothing during a search, or without a GPU."""
        if self.state.share is None and self._engine.devices.state.is_on_gpu:
            self._show(TuningState(share=0.0))
            self._renders.tune(budget_s)

    @Slot()
    def stop(self) -> None:
        """End the search; what was found stays."""
        if self.state.share is not None and not self.state.is_stopping:
            self._show(replace(self.state, is_stopping=True))
            self._renders.stop_tuning()

    def take_advanced(self, event: TuningAdvanced) -> None:
        """Show progress."""
        if self.state.share is not None:
            state = event.state
            self._show(replace(self.state, share=state.share, progress=state.progress, quality=state.quality))

    def take_found(self, event: TuningFound) -> None:
        """Show what was found."""
        self._show(replace(self.state, findings=(*self.state.findings, event.found)))

    def take_ended(self, event: TuningEnded) -> None:
        """Show the end, and use what was found."""
        self._show(replace(self.state, share=None, progress=None, is_stopping=False))
        if event.error is not None:
            self._messages.exception(event.error)
        gains = len(self.state.gains)
        if gains:
            count = "1 convolution is" if gains == 1 else f"{gains} convolutions are"
            self._messages.info(f"{count} faster on this GPU from now on; their kernels are compiled first.")
            self._has_news = True
            self._use_findings()

    @Slot()
    def _device_changed(self) -> None:
        if not self._engine.devices.state.is_on_gpu:
            self.stop()

    @Slot()
    def _use_findings(self) -> None:
        if self._has_news and self._export.progress is None:
            self._has_news = False
            if self._engine.devices.state.is_on_gpu:
                self._engine.devices.try_again()

    def _show(self, state: TuningState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit()
