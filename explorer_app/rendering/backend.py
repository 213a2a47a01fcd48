"""The backend as the render thread uses it: the interface, which fakes implement too, and the real one.

Names of `gpu_backend` are looked up when they are called, on a thread that may wait: their modules, and with them torch
or the driver, are imported then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import gpu_backend
from explorer_app import start_times
from explorer_app.rendering.device_choice import DeviceChoice, Precision
from explorer_app.rendering.renderer_like import DeviceLike, RendererLike

if TYPE_CHECKING:
    from gpu_backend import LadderShare, Model, RungResult, TileFinding, TuningShare


class ChecksLike(Protocol):
    """Self-checks of kernels in bounded steps; one thread uses them."""

    @property
    def is_done(self) -> bool:
        """Whether there is no further step."""
        ...

    @property
    def progress(self) -> tuple[int, int]:
        """How many kernels of how many are checked; (0, 0) before that is known."""
        ...

    def step(self) -> None:
        """Check one kernel. Raises DeviceError."""
        ...

    def close(self) -> None:
        """Free the GPU; verdicts stay. May be called twice."""
        ...


class MeasurementLike(Protocol):
    """A measurement in bounded steps, which are those of one thread once it is made."""

    @property
    def is_waiting(self) -> bool:
        """Whether kernels are being compiled, so that there is no step to take yet."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether there is no further step."""
        ...

    def close(self) -> None:
        """Free the device; what was found stays. May be called twice."""
        ...


class LadderLike(MeasurementLike, Protocol):
    """A ladder of optimisations."""

    @property
    def state(self) -> LadderShare:
        """How much is done."""
        ...

    def step(self, should_yield: Callable[[], bool]) -> RungResult | None:
        """Take a few runs; return the result of a rung, if this step ended it. A rung that fails is a result too."""
        ...


class TuningLike(MeasurementLike, Protocol):
    """A search for the fastest tiles."""

    @property
    def state(self) -> TuningShare:
        """How much is done."""
        ...

    def step(self) -> TileFinding | None:
        """Time or check one tile; return what was found, if this step found it. Raises DeviceError."""
        ...


_KERNELS_A_THREAD = 2.5
"""On 16 threads of a server, 35 kernels take 2.2 s; importing torch's CUDA build takes 3.6 s there."""


class BackendLike(Protocol):
    """Devices, kernels, renderers."""

    def preload(self) -> None:
        """Load the CPU's libraries as far as that blocks no other thread; imports neither torch nor a driver."""
        ...

    def preload_gpu(self, choice: DeviceChoice) -> None:
        """Start the driver of the chosen GPU, if there is one, without importing anything; raises nothing."""
        ...

    def import_processor(self) -> None:
        """Import the CPU's modules, so that making a renderer need not; raises nothing."""
        ...

    def find_devices(self) -> Sequence[DeviceLike]:
        """Return all devices, the CPU among them."""
        ...

    def prepare_device(self, choice: DeviceChoice) -> None:
        """Import what a renderer on the chosen GPU needs and start that GPU, on any thread; raises nothing."""
        ...

    def compiles_soon(self, missing: int) -> bool:
        """Return whether `missing` kernels compile faster than torch is imported, which takes about two seconds."""
        ...

    def kernels_ready(self, model: Model, choice: DeviceChoice) -> tuple[int, int]:
        """Return how many of how many kernels need no compiling; (0, 0) where none are needed.

        Raises
        ------
        DeviceError
            If the chosen device cannot be used; the sentence says why.
        """
        ...

    def compile_kernels(
        self,
        model: Model,
        choice: DeviceChoice,
        *,
        progress: Callable[[int, int], None],
        should_cancel: Callable[[], bool],
    ) -> None:
        """Compile the missing kernels, on any thread; `progress` gets the number done and the total.

        Raises
        ------
        CancelledError
            Soon after `should_cancel` returns true.
        LoomError
            If it cannot be done.
        """
        ...

    def compile_layer_kernels(self, model: Model, choice: DeviceChoice, *, should_cancel: Callable[[], bool]) -> None:
        """Compile the kernels that show layers, at low priority; otherwise as `compile_kernels`."""
        ...

    def kernel_checks(self, model: Model, choice: DeviceChoice) -> ChecksLike | None:
        """Return the self-checks that a renderer of the choice would make; None if it would make none.

        Raises
        ------
        DeviceError
            If the chosen device cannot be used.
        """
        ...

    def make_tuning(self, model: Model, choice: DeviceChoice, budget_s: float) -> TuningLike:
        """Return a search for the fastest tiles of a model on a GPU in a precision, on any thread.

        Raises
        ------
        LoomError
            If there is no such GPU.
        """
        ...

    def make_ladder(self, model: Model, device: str) -> LadderLike:
        """Return a ladder of optimisations of a model on a device, on any thread. Raises LoomError without it."""
        ...

    def make_renderer(self, model: Model, choice: DeviceChoice) -> RendererLike:
        """Return a renderer for a model.

        Raises
        ------
        LoomError
            If the chosen device cannot be used, or not with this model.
        """
        ...


class Backend:
    """`gpu_backend`, through its front door."""

    def preload(self) -> None:
        """Load torch's largest library."""
        gpu_backend.preload_library()

    def preload_gpu(self, choice: DeviceChoice) -> None:
        """Start the driver, which takes half a second beside the window that is built."""
        if gpu_backend.preload_driver(choice.device):
            start_times.mark(start_times.DRIVER)

    def import_processor(self) -> None:
        """Import torch."""
        gpu_backend.import_torch()
        start_times.mark(start_times.TORCH)

    def find_devices(self) -> Sequence[DeviceLike]:
        """Look for devices."""
        devices = gpu_backend.find_devices()
        start_times.mark(start_times.DEVICES)
        return devices

    def prepare_device(self, choice: DeviceChoice) -> None:
        """Start the GPU, beside the reading of a model."""
        gpu_backend.prepare_device(choice.device)
        start_times.mark(start_times.DEVICE_STARTED)

    def compiles_soon(self, missing: int) -> bool:
        """Compare with the number of threads, each of which compiles about one kernel a second."""
        return missing <= _KERNELS_A_THREAD * (os.cpu_count() or 1)

    def kernels_ready(self, model: Model, choice: DeviceChoice) -> tuple[int, int]:
        """Look into the cache of kernels."""
        return gpu_backend.kernels_ready(model, choice.device, precision=choice.precision)

    def compile_kernels(
        self,
        model: Model,
        choice: DeviceChoice,
        *,
        progress: Callable[[int, int], None],
        should_cancel: Callable[[], bool],
    ) -> None:
        """Fill the cache of kernels."""
        gpu_backend.compile_kernels(
            model, choice.device, precision=choice.precision, progress=progress, should_cancel=should_cancel
        )

    def compile_layer_kernels(self, model: Model, choice: DeviceChoice, *, should_cancel: Callable[[], bool]) -> None:
        """Add the kernels of layers to the cache."""
        gpu_backend.compile_kernels(
            model, choice.device, precision=choice.precision, of_layers=True, should_cancel=should_cancel
        )

    def kernel_checks(self, model: Model, choice: DeviceChoice) -> ChecksLike | None:
        """Look into the record of verdicts."""
        return gpu_backend.kernel_checks(model, choice.device, precision=choice.precision)

    def make_tuning(self, model: Model, choice: DeviceChoice, budget_s: float) -> TuningLike:
        """Make a tuning that leaves a core to the window; where plain kernels render, which have no tiles, of fp16."""
        precision: Precision = "fp16" if choice.precision == "fp32" else choice.precision
        tuning = gpu_backend.TileTuning(model, choice.device, precision=precision, spare_cores=1)
        return gpu_backend.TuningRun(tuning, budget_s)

    def make_ladder(self, model: Model, device: str) -> LadderLike:
        """Make a ladder."""
        return gpu_backend.LadderRun(model, device)

    def make_renderer(self, model: Model, choice: DeviceChoice) -> RendererLike:
        """Make a renderer."""
        renderer = gpu_backend.Renderer(model, choice.device, precision=choice.precision)
        start_times.mark(start_times.RENDERER)
        return renderer
