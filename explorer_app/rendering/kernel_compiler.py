"""Compiles kernels on its own thread; the CPU shows pictures meanwhile. No Qt.

Once a GPU renders pictures, the kernels that show and edit layers are compiled silently, so that choosing a layer or
painting a blend compiles nothing on the render thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer_app.rendering.backend import BackendLike
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.mailbox import Mailbox
from explorer_app.rendering.render_events import KernelsCompiling, RenderEvent
from gpu_backend import CancelledError, dataclass

if TYPE_CHECKING:
    from gpu_backend import Model

_END_S = 10.0
"""Compiling a kernel cannot be interrupted and takes under a second; a compiler that hangs must not block the exit."""


@dataclass(frozen=True, slots=True)
class CompilingEnded:
    """The kernels are in the cache, or `error` says why not. A cancelled compilation reports nothing."""

    model: Model
    choice: DeviceChoice
    error: Exception | None


class _Compiling:
    """A compilation under way."""

    def __init__(self, model: Model, choice: DeviceChoice) -> None:
        self.model = model
        self.choice = choice
        self.should_cancel = threading.Event()


class KernelCompiler:
    """Compiles for one model at a time; starting anything cancels what was before.

    Parameters
    ----------
    backend
        Compiles.
    condition
        Notified when a compilation has ended.
    report
        Receives the progress of compiling, on the compiling thread.
    """

    def __init__(
        self, backend: BackendLike, condition: threading.Condition, report: Callable[[RenderEvent], None]
    ) -> None:
        self._backend = backend
        self._report_progress = report
        self._lock = threading.Lock()
        self._ended: Mailbox[CompilingEnded] = Mailbox(condition)
        self._compiling: _Compiling | None = None
        self._threads: list[threading.Thread] = []

    @property
    def has_ended(self) -> bool:
        """Whether `take` has a result."""
        return not self._ended.is_empty

    def start(self, model: Model, choice: DeviceChoice) -> None:
        """Begin to compile the missing kernels."""
        self._begin(self._run, model, choice)

    def start_layers(self, model: Model, choice: DeviceChoice) -> None:
        """Begin to compile the kernels that show layers. Errors are dropped: showing a layer reports them."""
        self._begin(self._run_layers, model, choice)

    def take(self) -> CompilingEnded | None:
        """Take the result of a compilation that has ended, None if there is none."""
        return self._ended.take()

    def cancel(self) -> None:
        """Stop soon, without a result. Does nothing if nothing is being compiled."""
        with self._lock:
            if self._compiling is not None:
                self._compiling.should_cancel.set()
                self._compiling = None
            self._ended.clear()

    def close(self) -> None:
        """Stop, and wait until the kernels under way are done. May be called twice."""
        self.cancel()
        for thread in self._threads:
            thread.join(_END_S)
        self._threads = []

    def _begin(self, run: Callable[[_Compiling], None], model: Model, choice: DeviceChoice) -> None:
        self.cancel()
        compiling = _Compiling(model, choice)
        with self._lock:
            self._compiling = compiling
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=run, args=(compiling,), name="compiling kernels", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run_layers(self, compiling: _Compiling) -> None:
        with contextlib.suppress(Exception):
            self._backend.compile_layer_kernels(
                compiling.model, compiling.choice, should_cancel=compiling.should_cancel.is_set
            )

    def _run(self, compiling: _Compiling) -> None:
        error: Exception | None = None
        try:
            self._backend.compile_kernels(
                compiling.model,
                compiling.choice,
                progress=lambda done, total: self._report(compiling, done, total),
                should_cancel=compiling.should_cancel.is_set,
            )
        except CancelledError:
            return
        except Exception as problem:
            error = problem
        with self._lock:
            if compiling is self._compiling:
                self._compiling = None
                self._ended.put(CompilingEnded(compiling.model, compiling.choice, error))

    def _report(self, compiling: _Compiling, done: int, total: int) -> None:
        with self._lock:
            if compiling is self._compiling:
                self._report_progress(KernelsCompiling(done, total))
