"""What the window may ask about how pictures are rendered: on which device, how exactly, in which way, at what cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from explorer_app.controller.state import ControllerState
from explorer_app.exporting.chrome_trace import write_trace
from explorer_app.rendering.device_choice import Precision
from explorer_app.rendering.render_events import (
    Compared,
    CompareFailed,
    DeviceChanged,
    DeviceFailed,
    DevicesFound,
    KernelsCompiling,
    MemoryChanged,
    RenderEvent,
)
from explorer_app.session.resolve import resolve
from gpu_backend import Frame

if TYPE_CHECKING:
    from gpu_backend import Comparison, RenderOptions


class EngineControl(ControllerState):
    """Orders for the rendering thread, and what it tells about devices. `Controller` adds what a session needs."""

    # -- devices ----------------------------------------------------------------------------------------------------

    @Slot(str)
    def choose_device(self, device: str) -> None:
        """Render on another device from now on: "auto", "cpu", "cuda:0". Session and picture stay."""
        self._devices.choose(replace(self._devices.state.choice, device=device))

    @Slot(str)
    def choose_precision(self, precision: Precision) -> None:
        """Render with activations of another precision on GPUs: "fp16", "fp32"."""
        self._devices.choose(replace(self._devices.state.choice, precision=precision))

    @Slot()
    def try_device_again(self) -> None:
        """Try the device that is wished for again, after it failed."""
        self._devices.try_again()

    # -- in which way, and what it costs ----------------------------------------------------------------------------

    @Slot(object)
    def set_render_options(self, options: RenderOptions) -> None:
        """Render in another way: with or without the graph, with fused or plain kernels. The picture is made again."""
        if options != self.render_options:
            self._options = options
            self._renders.set_options(options)
            self._preview.refresh()
            self.render_options_changed.emit()

    @Slot()
    def compare(self) -> None:
        """Have the picture as it is now rendered in every way there is; `comparison_changed` tells when it is done."""
        if self.facts is not None and not self._is_comparing:
            self._is_comparing = True
            self.comparison_changed.emit()
            self._renders.compare(resolve(self.session))

    @Slot(object)
    def frame_painted(self, frame: Frame) -> None:
        """Tell that a frame is on the screen: this is where gesture-to-screen latency is measured."""
        self._preview.frame_painted(frame)

    @Slot(float)
    def input_came(self, age_s: float) -> None:
        """Tell that an input event of this age is about to be handled: a gesture begins where the hand does."""
        self._preview.input_came(self._clock() - age_s)

    def save_trace(self, path: Path | str) -> None:
        """Write the frames of the last seconds as a Chrome trace, in the background; a message tells when."""
        path, frames = Path(path), self.statistics.traced
        device = f"{self.device.name} ({self.device.precision})" if self.device is not None else ""
        self._worker.submit(
            lambda: write_trace(path, frames, device),
            done=f"The trace {path.name} is saved; ui.perfetto.dev or chrome://tracing opens it.",
        )

    @Slot(bool)
    def set_measuring(self, on: bool) -> None:
        """Have steps measured about twice a second while pictures change: the performance panel is visible."""
        self._settings.change(performance_visible=on)
        self._preview.set_measuring(on)

    @Slot(bool)
    def set_reading_values(self, on: bool) -> None:
        """Have the numbers of a layer that is shown brought along with its frames: its spectrum is visible."""
        self._preview.set_reading_values(on)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _take_engine_event(self, event: RenderEvent) -> None:
        match event:
            case DevicesFound():
                self._devices.take_found(event)
            case DeviceChanged():
                self._devices.take_changed(event)
                self._preview.show_device(self._devices.state.is_on_gpu)
                self._forget_comparison()
            case DeviceFailed():
                self._devices.take_failed(event)
                self._forget_comparison()
                self._save_now()
            case KernelsCompiling():
                self._devices.take_compiling(event)
            case MemoryChanged():
                self._devices.take_memory(event)
            case Compared(comparison=comparison):
                self._show_comparison(comparison)
            case CompareFailed(error=error):
                self._show_comparison(None)
                self._messages.exception(error)

    def _save_now(self) -> None:
        """Write the session at once: where a device fails, more may."""
        if self.facts is not None:
            self._autosave.remember(self.session, self._editor.history)
            self._autosave.flush()

    def _show_comparison(self, comparison: Comparison | None) -> None:
        self._is_comparing = False
        self._comparison = comparison
        self.comparison_changed.emit()

    def _forget_comparison(self) -> None:
        """What was compared, or is being compared, was another device or model."""
        if self._is_comparing or self._comparison is not None:
            self._show_comparison(None)
