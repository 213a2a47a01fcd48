"""The renderer and what decides on which device it is: touched by the rendering thread alone.

::

    a model, or another wish ──► every kernel is ready?
                                   │ yes ──► the renderer that is wished for
                                   └ no ───► the processor (a model) or what there is (a wish) answers meanwhile
                                             └─ kernels compiled ──► the renderer that is wished for takes over
    a GPU gave a picture ──► the kernels that show layers are compiled as well, while it renders
    the GPU fails ──► the processor takes over, with the same model; nothing that was asked for is lost
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from explorer_app.rendering.backend import BackendLike
from explorer_app.rendering.device_choice import PROCESSOR, DeviceChoice
from explorer_app.rendering.kernel_compiler import CompilingEnded, KernelCompiler
from explorer_app.rendering.render_events import (
    DeviceChanged,
    DeviceFailed,
    KernelsCompiling,
    MemoryChanged,
    ModelOpened,
    ModelRefused,
    RenderEvent,
)
from explorer_app.rendering.renderer_like import PROCESSOR_ID, MemoryLike, RendererLike
from gpu_backend import DeviceLostError, DeviceMemoryError, TorchError

if TYPE_CHECKING:
    from gpu_backend import Model, RenderOptions


@dataclass(frozen=True, slots=True)
class _Made:
    """A renderer, and what kept it from being the one that is wished for: kernels, some of them ready, or an error."""

    renderer: RendererLike
    kernels: tuple[int, int] | None = None
    error: Exception | None = None


class RendererManager:
    """Makes renderers, lets one take over from another, and falls back on the processor.

    Parameters
    ----------
    backend
        Makes renderers.
    compiler
        Compiles kernels; closed with this.
    choice
        What is wished for.
    tell
        Takes event.
    knows_gpus
        Says whether asking for a GPU is answered at once. Until it is, the processor has to do.

    Attributes
    ----------
    renderer
        What renders; None before the first model.
    is_provisional
        The processor renders because it was not known yet what there is.
    """

    def __init__(
        self,
        backend: BackendLike,
        compiler: KernelCompiler,
        choice: DeviceChoice,
        tell: Callable[[RenderEvent], None],
        *,
        knows_gpus: Callable[[], bool],
    ) -> None:
        self._backend = backend
        self._compiler = compiler
        self._choice = choice
        self._tell = tell
        self._model: Model | None = None
        self._options: RenderOptions | None = None
        self._memory: MemoryLike | None = None
        self._is_gpu_lost = False
        self._has_kernels = False
        self._has_begun_layers = False
        self._knows_gpus = knows_gpus
        self.is_provisional = False
        self.renderer: RendererLike | None = None

    @property
    def is_on_gpu(self) -> bool:
        """Whether a GPU renders now."""
        return self.renderer is not None and self.renderer.device.id != PROCESSOR_ID

    @property
    def wants_gpu(self) -> bool:
        """Whether one is wished for."""
        return self._choice.wants_gpu

    def open(self, model: Model, is_wanted: Callable[[], bool]) -> None:
        """Make a renderer for a model and let it take over; on failure or cancelling, nothing changes."""
        try:
            made = self._make(model, is_wanted)
        except Exception as error:
            self._bring_back()
            self._tell(ModelRefused(model.facts.path, error))
            return
        try:
            renderer = made.renderer
            opened = ModelOpened(renderer.facts, renderer.directions, renderer.device)
        except Exception as error:
            made.renderer.close()
            self._bring_back()
            self._tell(ModelRefused(model.facts.path, error))
            return
        if not is_wanted():
            made.renderer.close()
            self._bring_back()
            return
        self._compiler.cancel()
        self._model = model
        former = self._take_over(made.renderer)
        self._tell(opened)
        self._tell_memory()
        self._tell_shortcoming(made)
        _close(former)  # last: meanwhile the window asks for its first picture

    def use(self, choice: DeviceChoice) -> None:
        """Wish for another device or precision, or try again: what renders goes on until the other one can."""
        self._compiler.cancel()
        self._choice = choice
        self._is_gpu_lost = self.is_provisional = False
        model = self._model
        if model is None:
            return
        ready = total = 0
        try:
            if choice.wants_gpu:
                ready, total = self._backend.kernels_ready(model, choice)
                self._has_kernels = total > 0
        except Exception as error:
            self._tell(DeviceFailed(error, was_rendering=False))
            return
        if ready < total:
            self._compile(model, ready, total)
        else:
            self._replace(model)

    def use_found(self) -> None:
        """Use what is wished for, now that it is known what there is."""
        self.use(self._choice)

    def take_compiled(self, ended: CompilingEnded) -> None:
        """Let the GPU take over whose kernels are compiled now."""
        if ended.model is not self._model or ended.choice != self._choice:
            return
        if ended.error is not None:
            self._tell(DeviceFailed(ended.error, was_rendering=False))
        else:
            self._replace(ended.model)

    def fall_back(self, error: Exception) -> None:
        """Go on with the processor after the GPU failed."""
        self._compiler.cancel()
        self._is_gpu_lost = isinstance(error, DeviceLostError)
        self._drop()
        self._tell(DeviceFailed(error, was_rendering=True))
        self._restore()
        if self.renderer is not None:
            self._tell(DeviceChanged(self.renderer.device))
            self._tell_memory()

    def set_options(self, options: RenderOptions) -> None:
        """Render in another way, now and with every renderer to come."""
        self._options = options
        if self.renderer is not None:
            self.renderer.options = options

    def note_picture(self) -> None:
        """Begin with work that nothing waits for, once there is a picture: on a GPU, the kernels that show layers."""
        if self.is_on_gpu and self._model is not None and not self._has_begun_layers:
            self._has_begun_layers = True
            self._compiler.start_layers(self._model, self._choice)

    def look_at_memory(self) -> None:
        """Tell what the renderer holds, if that has changed."""
        self._tell_memory(only_news=True)

    def close(self) -> None:
        """Compile no more and free the device. May be called twice."""
        self._compiler.close()
        self._drop()

    # -- making -----------------------------------------------------------------------------------------------------

    def _make(self, model: Model, is_wanted: Callable[[], bool]) -> _Made:
        """Return the best renderer that there can be at once. Raises what the processor raises."""
        try:
            return self._make_at_once(model)
        except TorchError:
            if not self._choice.wants_gpu or self._is_gpu_lost:
                raise
        # An installation without torch: the CPU cannot show pictures until the GPU's kernels are compiled.
        self.is_provisional = False
        ready, total = self._backend.kernels_ready(model, self._choice)
        self._has_kernels = total > 0
        if ready < total:
            self._backend.compile_kernels(
                model,
                self._choice,
                progress=lambda done, total: self._tell(KernelsCompiling(done, total)),
                should_cancel=lambda: not is_wanted(),
            )
        return _Made(self._make_wished(model))

    def _make_at_once(self, model: Model) -> _Made:
        choice = self._choice
        self.is_provisional = choice.wants_gpu and not self._knows_gpus()
        if not choice.wants_gpu or self._is_gpu_lost or self.is_provisional:
            return _Made(self._backend.make_renderer(model, PROCESSOR))
        try:
            ready, total = self._backend.kernels_ready(model, choice)
            self._has_kernels = total > 0
            if ready >= total:
                return _Made(self._make_wished(model))
        except Exception as error:
            return _Made(self._backend.make_renderer(model, PROCESSOR), error=error)
        return _Made(self._backend.make_renderer(model, PROCESSOR), kernels=(ready, total))

    def _make_wished(self, model: Model) -> RendererLike:
        """Return the renderer that is wished for; where memory is short the former one makes room."""
        choice = self._choice
        if choice.device == "auto" and self._has_kernels:
            choice = replace(choice, device="cuda")  # there is one: if it fails, that is to be told
        try:
            return self._backend.make_renderer(model, choice)
        except DeviceMemoryError:
            if not self.is_on_gpu:
                raise
            self._drop()
            return self._backend.make_renderer(model, choice)

    def _replace(self, model: Model) -> None:
        """Let the renderer that is wished for take over, with the model that is open."""
        try:
            renderer = self._make_wished(model)
        except Exception as error:
            self._tell(DeviceFailed(error, was_rendering=False))
            if self.renderer is not None:
                return
            self._restore()
        else:
            _close(self._take_over(renderer))
        if self.renderer is not None:
            self._tell(DeviceChanged(self.renderer.device))
            self._tell_memory()

    def _bring_back(self) -> None:
        """Have the model that is open rendered again, if it made room for one that is not used after all."""
        if self.renderer is None and self._model is not None:
            self._replace(self._model)

    def _take_over(self, renderer: RendererLike) -> RendererLike | None:
        """Render with this from now on; return the former one, to be closed."""
        former, self.renderer = self.renderer, renderer
        if self._options is not None:
            renderer.options = self._options
        self._has_begun_layers = False
        return former

    def _restore(self) -> None:
        """Have the model that is open rendered by the processor, if nothing renders it any more."""
        if self.renderer is None and self._model is not None:
            try:
                self._take_over(self._backend.make_renderer(self._model, PROCESSOR))
            except Exception as error:
                self._tell(DeviceFailed(error, was_rendering=False))

    def _drop(self) -> None:
        """Close the renderer."""
        former, self.renderer = self.renderer, None
        _close(former)

    # -- telling ----------------------------------------------------------------------------------------------------

    def _tell_shortcoming(self, made: _Made) -> None:
        if made.error is not None:
            self._tell(DeviceFailed(made.error, was_rendering=False))
        elif made.kernels is not None and self._model is not None:
            self._compile(self._model, *made.kernels)

    def _compile(self, model: Model, ready: int, total: int) -> None:
        self._tell(KernelsCompiling(ready, total))
        self._has_begun_layers = True  # those come after these, once the renderer that is wished for has taken over
        self._compiler.start(model, self._choice)

    def _tell_memory(self, *, only_news: bool = False) -> None:
        memory = self.renderer.memory if self.renderer is not None else None
        if memory is not None and not (only_news and memory == self._memory):
            self._memory = memory
            self._tell(MemoryChanged(memory))


def _close(renderer: RendererLike | None) -> None:
    """Close a renderer that is not used any more, if there was one."""
    if renderer is not None:
        # On a device that was lost even this may fail; it is gone all the same, and why was told.
        with contextlib.suppress(Exception):
            renderer.close()
