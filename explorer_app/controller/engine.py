"""What makes pictures: the open model, the device, the preview, the ways of rendering and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

import gpu_backend
from explorer_app.controller.device_selector import DeviceSelector
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.known_model import KnownModel
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.preview import Preview
from explorer_app.exporting.chrome_trace import write_trace
from explorer_app.messages import MessageLog
from explorer_app.rendering.likely_device import may_need_processor
from explorer_app.rendering.render_events import (
    Compared,
    CompareFailed,
    CountersMeasured,
    DeviceChanged,
    DeviceFailed,
    DevicesFound,
    KernelsChecking,
    KernelsCompiling,
    MemoryChanged,
    ModelOpened,
    RenderEvent,
    RenderFailed,
)
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.resolve import resolve
from explorer_app.settings import Settings
from gpu_backend import Frame

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from gpu_backend import Comparison, RenderOptions


class Engine(QObject):
    """Joins the model, the device and the preview, so that a change of one reaches the others.

    Attributes
    ----------
    model
        The open model, and the model that is being opened.
    devices
        Which devices there are, and which one renders.
    preview
        The newest frame, and what frames cost.
    stored_picture
        The picture of the last start, or of a first session, to show until the first frame; None afterwards.
    """

    model_changed = Signal()
    """`model.facts`, `model.directions`, `model.is_bundled`."""
    options_changed = Signal()
    comparison_changed = Signal()
    """`comparison`, `is_comparing`."""
    counting_changed = Signal()
    """`is_counting`."""

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
        devices: DeviceSelector,
        preview: Preview,
        worker: FileWorker,
        settings: Settings,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.model = model
        self.devices = devices
        self.preview = preview
        self.stored_picture: QImage | None = None
        self._renders = renders
        self._worker = worker
        self._settings = settings
        self._messages = messages
        self._options: RenderOptions | None = None
        self._comparison: Comparison | None = None
        self._is_comparing = False
        self._is_counting = False
        self._warned: set[str] = set()
        self._has_failed = False
        """Whether the last picture failed: a gesture requests it a hundred times, and one message is enough."""
        model.withdrawn.connect(self._model_withdrawn)

    @property
    def options(self) -> RenderOptions:
        """In which way pictures are rendered."""
        return self._options or gpu_backend.RenderOptions()

    @property
    def comparison(self) -> Comparison | None:
        """The result of the last comparison on this device with this model; None before."""
        return self._comparison

    @property
    def is_comparing(self) -> bool:
        """Whether a comparison is under way."""
        return self._is_comparing

    @property
    def is_counting(self) -> bool:
        """Whether hardware counters are being measured."""
        return self._is_counting

    @property
    def whole_frame(self) -> Frame | None:
        """The frame on the screen if it is a full picture: no draft, no layer, no transparency; None otherwise."""
        frame = self.preview.frame
        is_whole = frame is not None and not frame.is_draft and frame.tap is None and not frame.has_alpha
        return frame if is_whole else None

    # -- what the window requests -----------------------------------------------------------------------------------

    @Slot(object)
    def set_options(self, options: RenderOptions) -> None:
        """Render in another way: with or without the graph, with fused or plain kernels. The picture is made again."""
        if options != self.options:
            self._options = options
            self._renders.set_options(options)
            self.preview.refresh()
            self.options_changed.emit()

    @Slot()
    def compare(self) -> None:
        """Render the current picture in every possible way; `comparison_changed` reports the end."""
        session = self.preview.session
        if self.model.facts is not None and session is not None and not self._is_comparing:
            self._is_comparing = True
            self.comparison_changed.emit()
            self._renders.compare(resolve(session))

    @Slot()
    def measure_counters(self) -> None:
        """Measure the hardware counters of the current picture's kernels; the next measured frame reports them."""
        session = self.preview.session
        if self.model.facts is not None and session is not None and not self._is_counting:
            self._is_counting = True
            self.counting_changed.emit()
            self._renders.measure_counters(resolve(session))

    @Slot(bool)
    def set_measuring(self, on: bool) -> None:
        """Measure steps about twice a second while pictures change: the performance panel is visible."""
        self._settings.change(performance_visible=on)
        self.preview.set_measuring(on)

    def save_trace(self, path: Path | str) -> None:
        """Write the frames of the last seconds as a Chrome trace, in the background; a message reports the end."""
        path, frames, device = Path(path), self.preview.statistics.traced, self.devices.state.device
        name = f"{device.name} ({device.precision})" if device is not None else ""
        self._worker.submit(
            lambda: write_trace(path, frames, name),
            done=f"The trace {path.name} is saved; ui.perfetto.dev or chrome://tracing opens it.",
            failed=f"{path.name} could not be saved",
        )

    # -- what the other parts of the controller request -------------------------------------------------------------

    def expect(self, known: KnownModel) -> None:
        """Show the model of the last start before its file is read; requests wait until there is a renderer."""
        self.model.expect(known)
        self.preview.show_model(
            known.facts,
            is_gpu=not may_need_processor(self._settings, self.devices.state.choice),
            has_picture=self.stored_picture is not None,
        )
        self.model_changed.emit()

    def warn_once(self, sentence: str) -> None:
        """Show a warning, unless it was shown since the model was opened."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            self._messages.warning(sentence)

    def take_opened(self, event: ModelOpened) -> None:
        """A renderer is ready: for the model that `expect` announced, which is on show already, or for another one."""
        is_expected = self.model.is_expected(event)
        self.model.take_opened(event)
        self.devices.take_opened(event)
        if is_expected:
            self.preview.show_device(self.devices.state.is_on_gpu)
        else:
            self._warned.clear()
            self._has_failed = False
            self.preview.show_model(event.facts, is_gpu=self.devices.state.is_on_gpu)
            self._forget_comparison()
            self.model_changed.emit()
        for warning in event.facts.warnings:
            self.warn_once(warning)

    def take(self, event: RenderEvent) -> None:
        """Handle an event about devices, comparisons or failed pictures; ignore others."""
        match event:
            case DevicesFound():
                self.devices.take_found(event)
            case DeviceChanged():
                self.devices.take_changed(event)
                self.preview.show_device(self.devices.state.is_on_gpu)
                self._forget_comparison()
            case DeviceFailed():
                self.devices.take_failed(event)
                self._forget_comparison()
            case KernelsCompiling():
                self.devices.take_compiling(event)
            case KernelsChecking():
                self.devices.take_checking(event)
            case MemoryChanged():
                self.devices.take_memory(event)
            case Compared(comparison=comparison):
                self._show_comparison(comparison)
            case CompareFailed(error=error):
                self._show_comparison(None)
                self._messages.exception(error)
            case CountersMeasured(error=error):
                self._end_counting()
                if error is None:
                    self.preview.measure_again()
                else:
                    self._messages.exception(error)
            case RenderFailed(error=error):
                self.preview.render_failed()
                if not self._has_failed:
                    self._has_failed = True
                    self._messages.exception(error)

    def frame_arrived(self) -> None:
        """Take note of a new frame: it replaces the stored picture, and its warnings are shown."""
        self._has_failed = False
        self.stored_picture = None
        for warning in self.preview.frame.warnings if self.preview.frame else ():
            self.warn_once(warning)

    # -- inside -----------------------------------------------------------------------------------------------------

    @Slot()
    def _model_withdrawn(self) -> None:
        self.stored_picture = None
        self.preview.show_no_model()
        self.model_changed.emit()

    def _show_comparison(self, comparison: Comparison | None) -> None:
        self._is_comparing = False
        self._comparison = comparison
        self.comparison_changed.emit()

    def _forget_comparison(self) -> None:
        """Drop a comparison, and counters under way, that belong to another device or model."""
        if self._is_comparing or self._comparison is not None:
            self._show_comparison(None)
        self._end_counting()

    def _end_counting(self) -> None:
        if self._is_counting:
            self._is_counting = False
            self.counting_changed.emit()
