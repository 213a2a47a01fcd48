"""Makes the renderer of a command: kernels are compiled first; the CPU renders where no GPU can."""

from __future__ import annotations

from explorer_app.cli.console import Console
from explorer_app.messages import without_cpu_advice
from explorer_app.rendering.backend import Backend, BackendLike
from explorer_app.rendering.device_choice import PROCESSOR, DeviceChoice, precision_of
from explorer_app.rendering.renderer_like import RendererLike
from gpu_backend import DeviceError, Model, TorchError


def start_renderer(
    model: Model, choice: DeviceChoice, console: Console, *, backend: BackendLike | None = None
) -> RendererLike:
    """Return a renderer for a model, and print its device.

    Raises
    ------
    DeviceError
        If a device that was named cannot be used; with "auto" the CPU replaces it.
    """
    backend = backend or Backend()
    try:
        renderer = _make(backend, model, choice, console)
    except DeviceError as error:
        if choice.device != "auto" or isinstance(error, TorchError):  # the CPU failed already
            raise
        console.warn(f"{without_cpu_advice(error.sentence)} – the CPU renders instead.")
        renderer = backend.make_renderer(model, PROCESSOR)
    facts, device = model.facts, renderer.device
    if device.id != PROCESSOR.device and device.precision != choice.precision:
        console.warn(device.reason)
    console.note(f"{facts.name}: {facts.family}, {facts.resolution} px, on {device.name}.")
    return renderer


def _make(backend: BackendLike, model: Model, choice: DeviceChoice, console: Console) -> RendererLike:
    if choice.wants_gpu:
        ready, total = backend.kernels_ready(model, choice)
        if ready < total:
            backend.compile_kernels(
                model,
                choice,
                progress=lambda done, total: console.status(f"Compiling {total} kernels: {done} done"),
                should_cancel=lambda: False,
            )
            console.end_progress()
        if total and choice.device == "auto":
            choice = DeviceChoice("cuda", choice.precision)  # there is a GPU, so its failure must be reported
    return backend.make_renderer(model, choice)


def chosen(device: str, precision: str) -> DeviceChoice:
    """Return the device and precision of ``--device`` and ``--precision``."""
    return DeviceChoice(device, precision_of(precision))
