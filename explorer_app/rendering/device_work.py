"""Decides which change of the renderer is due: a chosen device, compiled kernels, devices that were found."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer_app.rendering.backend import BackendLike
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.device_finder import DeviceFinder
from explorer_app.rendering.kernel_compiler import KernelCompiler
from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.render_events import RenderEvent
from explorer_app.rendering.renderer_manager import RendererManager

if TYPE_CHECKING:
    from gpu_backend import RenderOptions

PATIENCE_S = 3.0
"""A model waits this long for a slow driver; then the CPU renders until the driver answers."""


class DeviceWork:
    """Takes requests from the GUI thread, and gives the render thread the next change to make.

    Parameters
    ----------
    backend
        Finds devices, compiles kernels and makes renderers.
    condition
        The render thread's; notified whenever a change may be due.
    choice
        The first choice.
    report
        Receives events.

    Attributes
    ----------
    manager
        The renderer; used by the render thread alone.
    """

    def __init__(
        self,
        backend: BackendLike,
        condition: threading.Condition,
        choice: DeviceChoice,
        report: Callable[[RenderEvent], None],
    ) -> None:
        self._finder = DeviceFinder(backend, condition, report, choice)
        self._compiler = KernelCompiler(backend, condition, report)
        self._choices: Mailbox[DeviceChoice] = Mailbox(condition)
        self._options: Mailbox[RenderOptions] = Mailbox(condition)
        self.manager = RendererManager(backend, self._compiler, choice, report, knows_gpus=lambda: self._finder.is_done)

    # -- from the GUI thread ----------------------------------------------------------------------------------------

    def use(self, choice: DeviceChoice) -> None:
        """Request another device. The newest wins."""
        self._choices.put(choice)

    def set_options(self, options: RenderOptions) -> None:
        """Request another way of rendering. The newest wins."""
        self._options.put(options)

    # -- on the render thread ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look for devices if a GPU is chosen."""
        if self.manager.wants_gpu:
            self._finder.start()

    def look(self) -> None:
        """Look for devices while the renderer is idle: the menu offers them also where the CPU is chosen."""
        self._finder.start()

    @property
    def is_looking(self) -> bool:
        """Whether looking for devices has begun."""
        return self._finder.has_begun

    def has_change(self, *, is_model_waiting: bool) -> bool:
        """Return whether a change is due; changes that no choice requested come after a waiting model."""
        if self._is_choice_ready():
            return True
        return not is_model_waiting and (self._is_late_answer_there() or self._compiler.has_ended)

    def seconds_to_open(self) -> float:
        """Return how many seconds a model has to wait until a renderer may be made for it."""
        if not self.manager.wants_gpu or self._finder.is_done:
            return 0.0
        return max(0.0, PATIENCE_S - self._finder.seconds)

    def next_change(self, *, is_model_waiting: bool) -> Callable[[], None] | None:
        """Return the next change to make, None if none is due. It may replace the renderer."""
        choice = self._choices.take() if self._is_choice_ready() else None
        if choice is not None:
            return lambda: self.manager.use(choice)
        if is_model_waiting:
            return None
        if self._is_late_answer_there():
            return self.manager.use_found
        ended = self._compiler.take()
        return None if ended is None else lambda: self.manager.take_compiled(ended)

    @property
    def has_options(self) -> bool:
        """Whether options wait for `apply_options`."""
        return not self._options.is_empty

    def apply_options(self) -> None:
        """Apply the options requested last."""
        options = self._options.take()
        if options is not None:
            self.manager.set_options(options)

    def close(self) -> None:
        """Compile no more and free the device. May be called twice."""
        self.manager.close()
        self._finder.close()

    def _is_choice_ready(self) -> bool:
        """Return whether a choice can be applied without waiting for a driver; if not, begin to look for devices."""
        choice = self._choices.peek()
        if choice is None:
            return False
        if choice.wants_gpu and not self._finder.is_done:
            self._finder.start()
            return False
        return True

    def _is_late_answer_there(self) -> bool:
        return self.manager.is_provisional and self._finder.is_done
