"""Tasks that change the renderer: another device, a model, other options. `DeviceWork` decides which is due."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import TYPE_CHECKING

from explorer_app.rendering.device_work import DeviceWork
from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.renderer_like import RendererLike
from explorer_app.rendering.tasks.task import Priority, RenderTask

if TYPE_CHECKING:
    from gpu_backend import Model

Swap = Callable[[Callable[[], None]], None]
"""Runs a function that may change the renderer, and renders the newest picture again with the new one."""


class DeviceTask(RenderTask):
    """A device that was chosen, or found late, or whose kernels have been compiled."""

    priority = Priority.DEVICE
    needs_renderer = False

    def __init__(self, device: DeviceWork, opening: OpenModelTask, swap: Swap) -> None:
        self._device = device
        self._opening = opening
        self._swap = swap

    def seconds_until_ready(self) -> float | None:
        """Return 0 while there is a change to make."""
        return 0.0 if self._device.has_change(is_model_waiting=self._opening.is_waiting) else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Make the change that is due."""
        change = self._device.next_change(is_model_waiting=self._opening.is_waiting)
        if change is not None:
            self._swap(change)
        return True


class SelfCheckTask(RenderTask):
    """Self-checks of kernels, one per step, before a GPU takes over or a model opens on it.

    The present renderer, if there is one, shows pictures meanwhile. While pictures move, the checks get a share of the
    time, so that they end.
    """

    priority = Priority.SELF_CHECK
    needs_renderer = False
    preview_share = 0.25

    def __init__(self, device: DeviceWork, swap: Swap) -> None:
        self._device = device
        self._swap = swap

    def seconds_until_ready(self) -> float | None:
        """Return 0 while kernels are to be checked."""
        return 0.0 if self._device.manager.is_checking else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Check one kernel. After the last, the GPU takes over or the model opens."""
        self._swap(self._device.manager.check_next)
        return True


class OptionsTask(RenderTask):
    """Render options; the newest win."""

    priority = Priority.OPTIONS
    needs_renderer = False

    def __init__(self, device: DeviceWork, swap: Swap) -> None:
        self._device = device
        self._swap = swap

    def seconds_until_ready(self) -> float | None:
        """Return 0 while options wait."""
        return 0.0 if self._device.has_options else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Apply the newest options."""
        self._swap(self._device.apply_options)
        return True


class OpenModelTask(RenderTask):
    """A model to make a renderer for; the newest wins.

    Parameters
    ----------
    condition
        The render thread's.
    device
        Makes renderers, and says how long a driver may keep a model waiting.
    is_running
        Whether the thread is not to end.
    """

    priority = Priority.MODEL
    needs_renderer = False

    def __init__(self, condition: Condition, device: DeviceWork, is_running: Callable[[], bool]) -> None:
        self._condition = condition
        self._models: Mailbox[Model] = Mailbox(condition)
        self._wanted: Model | None = None
        self._device = device
        self._is_running = is_running

    @property
    def is_waiting(self) -> bool:
        """Whether a model waits to be opened."""
        return not self._models.is_empty

    def open(self, model: Model) -> None:
        """Replace the waiting model."""
        with self._condition:
            self._wanted = model
            self._models.put(model)

    def cancel(self) -> None:
        """Open none; a renderer that is being prepared is dropped when it is ready."""
        with self._condition:
            self._wanted = None
            self._models.clear()

    def close(self) -> None:
        """Accept no more models."""
        self._models.close()

    def seconds_until_ready(self) -> float | None:
        """Return how long the model that waits has to wait for a driver."""
        return self._device.seconds_to_open() if self.is_waiting else None

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Make a renderer for the model that waits."""
        model = self._models.take()
        if model is not None:
            self._device.manager.open(model, lambda: self._is_wanted(model))
        return True

    def _is_wanted(self, model: Model) -> bool:
        with self._condition:
            return model is self._wanted and self._is_running()


class FindDevicesTask(RenderTask):
    """Looks for devices while the renderer is idle: the menu offers them also where the CPU is chosen."""

    priority = Priority.IDLE

    def __init__(self, device: DeviceWork) -> None:
        self._device = device

    def seconds_until_ready(self) -> float | None:
        """Return 0 until it has begun to look."""
        return None if self._device.is_looking else 0.0

    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Begin to look, on another thread."""
        self._device.look()
        return True
