"""The renderer, and the choice of its device: used by the render thread alone.

::

    a model, or another choice ──► is every kernel ready?
                                     │ yes ──► the renderer of the choice
                                     └ no ───► the CPU (a model) or the present renderer (a choice) answers meanwhile
                                               └─ kernels compiled, and checked one by one
                                                    └─► the renderer of the choice takes over
    the first model, few kernels missing ──► they are compiled before its first picture: torch takes longer to import
    a model whose kernels were never checked on the GPU ──► they are checked one by one before its renderer is made
    a GPU rendered a picture ──► the kernels that show layers are compiled as well, meanwhile
    the GPU fails ──► the CPU takes over with the same model; no request is lost
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from explorer_app.rendering.backend import BackendLike, ChecksLike
from explorer_app.rendering.device_choice import PROCESSOR, DeviceChoice
from explorer_app.rendering.kernel_compiler import CompilingEnded, KernelCompiler
from explorer_app.rendering.render_events import (
    DeviceChanged,
    DeviceFailed,
    KernelsChecking,
    KernelsCompiling,
    MemoryChanged,
    ModelOpened,
    ModelRefused,
    RenderEvent,
)
from explorer_app.rendering.renderer_like import PROCESSOR_ID, MemoryLike, RendererLike
from gpu_backend import CancelledError, DeviceLostError, DeviceMemoryError, TorchError, dataclass

if TYPE_CHECKING:
    from gpu_backend import Model, RenderOptions


@dataclass(frozen=True, slots=True)
class _Made:
    """A renderer, and why it is not the chosen one: kernels that are ready and needed, or an error."""

    renderer: RendererLike
    kernels: tuple[int, int] | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Opening:
    """A model whose renderer waits for self-checks of its kernels; the present renderer, if any, stays in use."""

    model: Model
    is_wanted: Callable[[], bool]
    checks: ChecksLike


class RendererManager:
    """Makes renderers, replaces one by another, and falls back on the CPU.

    Parameters
    ----------
    backend
        Makes renderers.
    compiler
        Compiles kernels; closed with this.
    choice
        The chosen device.
    report
        Receives events.
    knows_gpus
        Returns whether GPUs can be looked up without waiting. Until then the CPU renders.

    Attributes
    ----------
    renderer
        The present one; None before the first model.
    is_provisional
        The CPU renders because devices were not known yet.
    """

    def __init__(
        self,
        backend: BackendLike,
        compiler: KernelCompiler,
        choice: DeviceChoice,
        report: Callable[[RenderEvent], None],
        *,
        knows_gpus: Callable[[], bool],
    ) -> None:
        self._backend = backend
        self._compiler = compiler
        self._choice = choice
        self._report = report
        self._model: Model | None = None
        self._options: RenderOptions | None = None
        self._memory: MemoryLike | None = None
        self._checks: ChecksLike | None = None
        self._opening: _Opening | None = None
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
    def model(self) -> Model | None:
        """The open model; None before the first."""
        return self._model

    @property
    def wants_gpu(self) -> bool:
        """Whether a GPU is chosen."""
        return self._choice.wants_gpu

    def open(self, model: Model, is_wanted: Callable[[], bool]) -> None:
        """Make a renderer for a model and let it take over; on failure or cancelling, nothing changes.

        If its kernels are to be checked first, `check_next` does that in steps and then makes the renderer.
        """
        self._cancel_opening()
        try:
            made = self._make(model, is_wanted)
        except CancelledError:
            self._remake()
            return
        except Exception as error:
            self._remake()
            self._report(ModelRefused(model.facts.path, error))
            return
        if isinstance(made, _Opening):
            self._opening = made
        else:
            self._open_with(made, model, is_wanted)

    def _open_with(self, made: _Made, model: Model, is_wanted: Callable[[], bool]) -> None:
        """Let the renderer of a model take over, if the model is still the chosen one."""
        try:
            renderer = made.renderer
            opened = ModelOpened(renderer.facts, renderer.directions, renderer.device)
        except Exception as error:
            made.renderer.close()
            self._remake()
            self._report(ModelRefused(model.facts.path, error))
            return
        if not is_wanted():
            made.renderer.close()
            self._remake()
            return
        self._cancel_take_over()
        self._model = model
        former = self._take_over(made.renderer)
        self._report(opened)
        self._report_memory()
        self._report_shortcoming(made)
        _close(former)  # last, because the window requests its first picture meanwhile

    def use(self, choice: DeviceChoice) -> None:
        """Choose another device or precision, or try again; the present renderer stays until the new one is ready."""
        opening = self._opening
        self._use(choice)
        self._cancel_opening()
        if opening is not None and opening.is_wanted():
            self.open(opening.model, opening.is_wanted)

    def _use(self, choice: DeviceChoice) -> None:
        self._cancel_take_over()
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
            self._report(DeviceFailed(error, was_rendering=False))
            return
        if ready < total:
            self._compile(model, ready, total)
        else:
            self._check(model)

    def use_found(self) -> None:
        """Apply the choice now that devices are known."""
        self.use(self._choice)

    def take_compiled(self, ended: CompilingEnded) -> None:
        """Let the GPU take over: its kernels are compiled."""
        if ended.model is not self._model or ended.choice != self._choice:
            return
        if ended.error is not None:
            self._report(DeviceFailed(ended.error, was_rendering=False))
        else:
            self._check(ended.model)

    @property
    def is_checking(self) -> bool:
        """Whether `check_next` has a kernel to check."""
        return self._checks is not None or self._opening is not None

    def check_next(self) -> None:
        """Check one kernel of the chosen GPU; after the last, open the model that waits, or let the GPU take over."""
        if self._opening is not None:
            self._check_opening(self._opening)
            return
        checks, model = self._checks, self._model
        if checks is None or model is None:
            return
        before = checks.progress
        try:
            checks.step()
        except Exception as error:
            self._cancel_checks()
            self._report(DeviceFailed(error, was_rendering=False))
            return
        if checks.is_done:
            self._cancel_checks()
            self._replace(model)
        elif checks.progress != before:
            self._report(KernelsChecking(*checks.progress))

    def _check_opening(self, opening: _Opening) -> None:
        """Check one kernel for a model that is being opened; after the last, make its renderer."""
        checks, model = opening.checks, opening.model
        error: Exception | None = None
        before = checks.progress
        try:
            if opening.is_wanted():
                checks.step()
        except DeviceMemoryError:
            pass  # the renderer, which closes the present one if memory is short, makes the checks that are left
        except Exception as problem:
            error = problem
        else:
            if opening.is_wanted() and not checks.is_done:
                if self.renderer is None and checks.progress != before:
                    self._report(KernelsChecking(*checks.progress))
                return
        self._cancel_opening()
        if not opening.is_wanted():
            return
        try:
            made = self._make_chosen_or_cpu(model, error)
        except Exception as problem:
            self._remake()
            self._report(ModelRefused(model.facts.path, problem))
        else:
            self._open_with(made, model, opening.is_wanted)

    def fall_back(self, error: Exception) -> None:
        """Continue on the CPU after the GPU failed."""
        self._cancel_take_over()
        self._is_gpu_lost = isinstance(error, DeviceLostError)
        self._drop()
        self._report(DeviceFailed(error, was_rendering=True))
        self._restore()
        if self.renderer is not None:
            self._report(DeviceChanged(self.renderer.device))
            self._report_memory()

    def set_options(self, options: RenderOptions) -> None:
        """Render in another way, also with later renderers."""
        self._options = options
        if self.renderer is not None:
            self.renderer.options = options

    def note_picture(self) -> None:
        """Begin background work once there is a picture: on a GPU, compile the kernels that show layers."""
        if self.is_on_gpu and self._model is not None and not self._has_begun_layers:
            self._has_begun_layers = True
            self._compiler.start_layers(self._model, self._choice)

    def look_at_memory(self) -> None:
        """Report the renderer's memory if it has changed."""
        self._report_memory(only_news=True)

    def close(self) -> None:
        """Compile no more and free the device. May be called twice."""
        self._compiler.close()
        self._cancel_opening()
        self._cancel_checks()
        self._drop()

    # -- making -----------------------------------------------------------------------------------------------------

    def _make(self, model: Model, is_wanted: Callable[[], bool]) -> _Made | _Opening:
        """Return the best renderer that can be made at once, or the checks that its kernels need first.

        Raises the errors of the CPU's renderer.
        """
        try:
            return self._make_at_once(model, is_wanted)
        except TorchError:
            if not self._choice.wants_gpu or self._is_gpu_lost:
                raise
        # An installation without torch: the CPU cannot show pictures until the GPU's kernels are compiled.
        self.is_provisional = False
        ready, total = self._backend.kernels_ready(model, self._choice)
        self._has_kernels = total > 0
        if ready < total:
            self._compile_now(model, is_wanted)
        return self._make_checked(model, is_wanted)

    def _make_at_once(self, model: Model, is_wanted: Callable[[], bool]) -> _Made | _Opening:
        choice = self._choice
        self.is_provisional = choice.wants_gpu and not self._knows_gpus()
        if not choice.wants_gpu or self._is_gpu_lost or self.is_provisional:
            return _Made(self._backend.make_renderer(model, PROCESSOR))
        try:
            ready, total = self._backend.kernels_ready(model, choice)
            self._has_kernels = total > 0
            if ready < total and self.renderer is None and self._backend.compiles_soon(total - ready):
                self._compile_now(model, is_wanted)
                ready = total
            if ready >= total:
                return self._make_checked(model, is_wanted)
        except CancelledError:
            raise
        except Exception as error:
            return _Made(self._backend.make_renderer(model, PROCESSOR), error=error)
        return _Made(self._backend.make_renderer(model, PROCESSOR), kernels=(ready, total))

    def _compile_now(self, model: Model, is_wanted: Callable[[], bool]) -> None:
        """Compile the missing kernels on this thread, while there is no renderer that could show pictures meanwhile."""
        self._backend.compile_kernels(
            model,
            self._choice,
            progress=lambda done, total: self._report(KernelsCompiling(done, total)),
            should_cancel=lambda: not is_wanted(),
        )

    def _make_checked(self, model: Model, is_wanted: Callable[[], bool]) -> _Made | _Opening:
        """Return the chosen renderer if all of its kernels were checked before."""
        checks = self._backend.kernel_checks(model, self._choice)
        return _Made(self._make_chosen(model)) if checks is None else _Opening(model, is_wanted, checks)

    def _make_chosen_or_cpu(self, model: Model, error: Exception | None) -> _Made:
        """Return the chosen renderer; the CPU's if that fails, or failed with `error` before."""
        if error is None:
            try:
                return _Made(self._make_chosen(model))
            except Exception as problem:
                error = problem
        try:
            return _Made(self._backend.make_renderer(model, PROCESSOR), error=error)
        except TorchError:
            raise error from None

    def _make_chosen(self, model: Model) -> RendererLike:
        """Return the chosen renderer; where memory is short, close the present one first."""
        choice = self._choice
        if choice.device == "auto" and self._has_kernels:
            choice = replace(choice, device="cuda")  # there is a GPU, so its failure must be reported
        try:
            return self._backend.make_renderer(model, choice)
        except DeviceMemoryError:
            if not self.is_on_gpu:
                raise
            self._drop()
            return self._backend.make_renderer(model, choice)

    def _check(self, model: Model) -> None:
        """Begin to check kernels of the chosen renderer, which then takes over."""
        checks = None
        if self._choice.wants_gpu:
            try:
                checks = self._backend.kernel_checks(model, self._choice)
            except Exception as error:
                self._report(DeviceFailed(error, was_rendering=False))
                return
        if checks is None:
            self._replace(model)
        self._checks = checks

    def _cancel_take_over(self) -> None:
        """Compile and check nothing more for a GPU that was to take over."""
        self._compiler.cancel()
        self._cancel_checks()

    def _cancel_checks(self) -> None:
        checks, self._checks = self._checks, None
        if checks is not None:
            with contextlib.suppress(Exception):  # on a lost device even this may fail
                checks.close()

    def _cancel_opening(self) -> None:
        """End the checks for a model that is being opened, and do not open it."""
        opening, self._opening = self._opening, None
        if opening is not None:
            with contextlib.suppress(Exception):  # as above
                opening.checks.close()

    def _replace(self, model: Model) -> None:
        """Replace the renderer by the chosen one, with the open model."""
        try:
            renderer = self._make_chosen(model)
        except Exception as error:
            self._report(DeviceFailed(error, was_rendering=False))
            if self.renderer is not None:
                return
            self._restore()
        else:
            _close(self._take_over(renderer))
        if self.renderer is not None:
            self._report(DeviceChanged(self.renderer.device))
            self._report_memory()

    def _remake(self) -> None:
        """Make a renderer for the open model again, if its own was closed for one that failed."""
        if self.renderer is None and self._model is not None:
            self._replace(self._model)

    def _take_over(self, renderer: RendererLike) -> RendererLike | None:
        """Use a renderer from now on; return the former one, to be closed."""
        former, self.renderer = self.renderer, renderer
        if self._options is not None:
            renderer.options = self._options
        self._has_begun_layers = False
        return former

    def _restore(self) -> None:
        """Make a CPU renderer for the open model if there is none."""
        if self.renderer is None and self._model is not None:
            try:
                self._take_over(self._backend.make_renderer(self._model, PROCESSOR))
            except Exception as error:
                self._report(DeviceFailed(error, was_rendering=False))

    def _drop(self) -> None:
        """Close the renderer."""
        former, self.renderer = self.renderer, None
        _close(former)

    # -- events -----------------------------------------------------------------------------------------------------

    def _report_shortcoming(self, made: _Made) -> None:
        if made.error is not None:
            self._report(DeviceFailed(made.error, was_rendering=False))
        elif made.kernels is not None and self._model is not None:
            self._compile(self._model, *made.kernels)

    def _compile(self, model: Model, ready: int, total: int) -> None:
        self._report(KernelsCompiling(ready, total))
        self._has_begun_layers = True  # kernels of layers follow once the chosen renderer has taken over
        self._compiler.start(model, self._choice)

    def _report_memory(self, *, only_news: bool = False) -> None:
        memory = self.renderer.memory if self.renderer is not None else None
        if memory is not None and not (only_news and memory == self._memory):
            self._memory = memory
            self._report(MemoryChanged(memory))


def _close(renderer: RendererLike | None) -> None:
    """Close a renderer, if there is one."""
    if renderer is not None:
        # On a lost device even this may fail; the loss itself was reported.
        with contextlib.suppress(Exception):
            renderer.close()
