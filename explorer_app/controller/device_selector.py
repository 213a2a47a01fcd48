"""Devices: which there are, which one is chosen, which one renders, and what went wrong with it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.device_state import Compiling, DeviceState
from explorer_app.messages import Action, MessageLog, describe, without_cpu_advice
from explorer_app.rendering.device_choice import DeviceChoice, Precision
from explorer_app.rendering.likely_device import RENDERED_LAST, preferred_choice
from explorer_app.rendering.render_events import (
    DeviceChanged,
    DeviceFailed,
    DevicesFound,
    KernelsChecking,
    KernelsCompiling,
    MemoryChanged,
    ModelOpened,
)
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.renderer_like import PROCESSOR_ID, DeviceLike
from explorer_app.settings import Settings

_TOLD = "devices.told"
"""The last message about an unusable GPU."""


class DeviceSelector(QObject):
    """Passes choices to the render thread, and its events about devices to the window.

    Parameters
    ----------
    choice
        The first choice; that of the preferences if None. A choice of the command line is not remembered.
    """

    changed = Signal()
    """`state`."""

    def __init__(
        self,
        renders: RenderThread,
        settings: Settings,
        messages: MessageLog,
        choice: DeviceChoice | None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._settings = settings
        self._messages = messages
        self._state = DeviceState(choice=choice or preferred_choice(settings))

    @property
    def state(self) -> DeviceState:
        """The state of all devices."""
        return self._state

    @Slot(str)
    def choose_device(self, device: str) -> None:
        """Render on another device from now on: "auto", "cpu", "cuda:0". Session and picture stay."""
        self._choose(replace(self._state.choice, device=device))

    @Slot(str)
    def choose_precision(self, precision: Precision) -> None:
        """Render with activations of another precision on GPUs: "fp16", "fp8", "tf32", "bf16x3" or "fp32"."""
        self._choose(replace(self._state.choice, precision=precision))

    @Slot()
    def try_again(self) -> None:
        """Try the chosen device again, after it failed."""
        self._show(replace(self._state, compiling=None, problem=""))
        self._renders.use(self._state.choice)

    def _choose(self, choice: DeviceChoice) -> None:
        """Request a device and a precision, from now on and at every start."""
        self._settings.change(device=choice.device, precision=choice.precision)
        self._show(replace(self._state, choice=choice, compiling=None, problem=""))
        self._renders.use(choice)

    def take_found(self, event: DevicesFound) -> None:
        """Show the devices that were found. An unusable GPU is reported, but not at every start."""
        self._show(replace(self._state, devices=event.devices))
        why = self._state.why_no_gpu if self._state.is_gpu_out_of_use else ""
        if why and self._state.choice.device == "auto" and self._settings.choice(_TOLD) != why:
            self._messages.warning(f"{why.rstrip('.')} – the CPU renders meanwhile.")
        self._settings.choose(_TOLD, why)

    def take_opened(self, event: ModelOpened) -> None:
        """Show the device of a renderer that is ready for another model."""
        self._show_renderer(event.device)

    def take_changed(self, event: DeviceChanged) -> None:
        """Show that another device renders."""
        self._show_renderer(event.device)

    def take_compiling(self, event: KernelsCompiling) -> None:
        """Show how many kernels are compiled."""
        self._show(replace(self._state, compiling=Compiling(event.done, event.total)))

    def take_checking(self, event: KernelsChecking) -> None:
        """Show how many kernels are checked."""
        self._show(replace(self._state, compiling=Compiling(event.done, event.total, is_checking=True)))

    def take_memory(self, event: MemoryChanged) -> None:
        """Show how much memory the renderer uses."""
        self._show(replace(self._state, memory=event.memory))

    def take_failed(self, event: DeviceFailed) -> None:
        """Report once that a GPU cannot be used, and offer to try it again."""
        sentence, details = describe(event.error)
        device = self._state.device
        renderer = (
            device.name if device is not None and not event.was_rendering and self._state.is_on_gpu else "the CPU"
        )
        end = ", and the session is saved" if event.was_rendering else ""
        self._show(replace(self._state, compiling=None, problem=sentence))
        self._messages.warning(
            f"{without_cpu_advice(sentence)} – rendering continues on {renderer}{end}.",
            f"{sentence}\n{details}".rstrip(),
            Action("Try the GPU again", self.try_again, lambda: self._state.can_try_again),
        )

    def _show_renderer(self, device: DeviceLike) -> None:
        self._settings.choose(RENDERED_LAST, device.id)
        problem = "" if device.id != PROCESSOR_ID else self._state.problem
        self._show(replace(self._state, device=device, memory=None, compiling=None, problem=problem))

    def _show(self, state: DeviceState) -> None:
        if state != self._state:
            self._state = state
            self.changed.emit()
